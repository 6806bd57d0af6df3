"""Parse settings: command-line flags, keyword arguments, configurations in logs, environment variables.

In: a `Document`. Out: `Setting`s in reading order, with normalised names (`--tensor_parallel_size`,
`-tp` and `tensor_parallel_size=` are all `tensor-parallel-size`), each with the span of its value.

`origin` tells chosen settings from defaults: `Namespace(...)` and `with config:` print every setting,
so their values were in force but may be defaults.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from app.extract.lists import load
from app.extract.rules.patterns import pattern
from app.extract.text.blocks import windows
from app.extract.text.document import Document

Origin = Literal["command", "keyword", "nondefault", "namespace", "config", "variable"]
"""`namespace` and `config` are dumps of all settings, `nondefault` is the log's list of chosen ones."""

MAX_VALUE_CHARS = 1_000
MAX_DUMP_CHARS = 12_000
MAX_DUMPS = 50
MAX_INDENT = 60
"""Length of text in which the next item of a list is looked for."""
MAX_SETTINGS = 4_000
"""Matches read per pattern and text; some logs repeat their command line endlessly."""

_LIST = load("commands")
_ALIASES: dict[str, str] = _LIST["aliases"]
_SWITCHES = frozenset(_LIST["switches"]["names"])
KNOWN_OPTIONS: tuple[str, ...] = tuple(_LIST["options"]["names"].split())
"""The options of `vllm serve`."""
_FLAG = pattern(r"(?:^|[^\w.\-])(?:--([A-Za-z][A-Za-z0-9_.\-]*)|-(tp|pp|dp|dcp|pcp|q|sc|ac|cc)\b)")
_ITEM = pattern(r"[\"']?\s+- ([\"']?[^\s\-\"'])")
_KEY = pattern(
    r"(?:^|[^\w.\-])[\"'`]?(" + "|".join(_LIST["keys"]["names"]) + r")\b[\"'`]?(?:[ \t]?[=:][ \t]?)(\S)"
)
_SERVE = pattern(
    r"\bvllm(?:[ \t]+|[\"'], ?[\"'])serve"
    r"(?:[ \t]+|[ \t]*\\\s+|[\"'], ?)[\"']?([^\s\-\"'\\<`][^\s\"'`,]*)"
)
_IMAGE = pattern(
    r"\bvllm-openai[\w\-]*(?:[:@][\w.\-:]+)?(?:[ \t]+|[ \t]*\\\s+)"
    r"([A-Za-z~./][\w.\-]*/[\w./\-]*\d[\w./\-]*)(?:[\s\\\"'`]|$)"
)
"""The model behind the name of vLLM's image, whose entry point is `vllm serve`."""
_CALL = pattern(r"\b(?:LLM|AsyncEngineArgs|EngineArgs)\(\s*[\"']([^\s\"']{3,300})[\"']")
_VARIABLE = pattern(
    r"\b(VLLM_[A-Z0-9_]+|" + "|".join(_LIST["variables"]["names"]) + r")[\"'`]?\]?"
    r"(?:[ \t]*[=:][ \t]*|[\"'], ?[\"']|\s+value:[ \t]*)[\"'`]?([\w.\-/@:,]+)"
)
_CALLS: tuple[tuple[tuple[str, ...], Any, Origin], ...] = (
    (("serve",), _SERVE, "command"),
    (("vllm-openai",), _IMAGE, "command"),
    (("LLM(", "EngineArgs("), _CALL, "keyword"),
    (("VLLM_", "VISIBLE_DEVICES"), _VARIABLE, "variable"),
)
_DUMPS: tuple[tuple[str, Origin], ...] = (
    ("Namespace(", "namespace"),
    ("args: AsyncEngineArgs(", "namespace"),
    ("with config:", "config"),
    ("non-default args:", "nondefault"),
)
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_ENDS = frozenset(" \t\r\n\"'`,;)]}\\<>|‘’“”")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. For a switch without a value, `value` is "" and `span` is the name's.

    Environment variables keep their name (`VLLM_USE_V1`); all other names are long flag names.
    """

    name: str
    value: str
    span: tuple[str, int, int]
    origin: Origin

    @property
    def is_chosen(self) -> bool:
        """True if it was set explicitly, not printed in a dump of all settings."""
        return self.origin not in ("namespace", "config")


def read_settings(document: Document) -> tuple[Setting, ...]:
    """Return all settings in a document's body and comments, in reading order."""
    found: list[Setting] = []
    for source, offset, text in windows(document):
        dumps = _find_dumps(text)
        spans = [
            *(_flags(text) if "-" in text else ()),
            *_keys(text, dumps),
            *_calls(text),
        ]
        spans.sort(key=lambda item: item[1])
        for name, start, end, origin in spans:
            is_switch = origin == "command" and (name in _SWITCHES or name.startswith("no-"))
            value = "" if is_switch else text[start:end]
            found.append(Setting(name, value, (source, offset + start, offset + end), origin))
    return tuple(found)


def normalise_name(name: str) -> str:
    """Return the normalised name of a flag: lower case, dashes, aliases resolved."""
    bare = name.strip("-").replace("_", "-")
    bare = bare if bare in _ALIASES else bare.lower()
    return _ALIASES.get(bare, bare)


_Found = tuple[str, int, int, Origin]


def _flags(text: str) -> Iterator[_Found]:
    for match in islice(_FLAG.finditer(text), MAX_SETTINGS):
        start, end = match.span(1 if match.group(1) else 2)
        name = normalise_name(text[start:end])
        if name in _SWITCHES or name.startswith("no-"):
            yield name, start, end, "command"
        else:
            value = _flag_value(text, end) or _listed_value(text, match.start(), end)
            yield name, *(value or (end, end)), "command"


def _flag_value(text: str, at: int) -> tuple[int, int] | None:
    """Return the value's span after a flag: after `=`, space or a continued line."""
    if at < len(text) and text[at] == "=":
        return _token(text, at + 1)
    start, crossed_line, quoted = at, False, False
    while start < len(text) and start - at < 80:
        char = text[start]
        if char == "\n":
            is_continued = text[start - 1] == "\\" or text[start - 2 : start] == "\\\r"
            if crossed_line or not is_continued:
                return None
            crossed_line = True
        elif char in "\"'":
            quoted = True
        elif char not in " \t\r\\,":
            break
        start += 1
    if start == at or start >= len(text) or text[start] in "-`#<)|&;":
        return None
    if quoted and text[start - 1] in "\"'" and start - at > 1:
        start -= 1
    return _token(text, start)


def _listed_value(text: str, before: int, at: int) -> tuple[int, int] | None:
    """Return the value's span in the next item of a YAML list; the flag begins after `before`."""
    item = _ITEM.match(text[at : at + MAX_INDENT])
    is_listed = text[max(0, before - 2) : before + 1].rstrip(" \"'").endswith("-")
    return _token(text, at + item.start(1)) if item and is_listed else None


def _token(text: str, start: int) -> tuple[int, int] | None:
    """Return the span of one value: quoted, bracketed or a bare word."""
    while start < len(text) and text[start] in " \t‘“":
        start += 1
    if start >= len(text):
        return None
    limit = min(len(text), start + MAX_VALUE_CHARS)
    char = text[start]
    if char in "\"'":
        end = text.find(char, start + 1, limit)
        return (start + 1, end) if end > start + 1 else None
    if char in _CLOSING:
        depth = 0
        for position in range(start, limit):
            depth += (text[position] == char) - (text[position] == _CLOSING[char])
            if depth == 0:
                return start, position + 1
        return start, limit
    end = start
    while end < limit and text[end] not in _ENDS:
        end += 1
    while end > start and text[end - 1] in ".:":
        end -= 1
    return (start, end) if end > start else None


def _find_dumps(text: str) -> list[tuple[int, int, Origin]]:
    """Return start, end and origin of each configuration that the log prints."""
    found: list[tuple[int, int, Origin]] = []
    for mark, origin in _DUMPS:
        at = text.find(mark)
        while at >= 0 and len(found) < MAX_DUMPS:
            end = text.find("\n", at, at + MAX_DUMP_CHARS)
            found.append((at, end if end >= 0 else min(len(text), at + MAX_DUMP_CHARS), origin))
            at = text.find(mark, found[-1][1])
    return found


def _keys(text: str, dumps: list[tuple[int, int, Origin]]) -> Iterator[_Found]:
    """Yield `key=value` settings, without commented-out ones.

    Outside a dump a bare word is a variable of the author's program, not a value.
    """
    for match in islice(_KEY.finditer(text), MAX_SETTINGS):
        at, first = match.start(2), match.group(2)
        origin: Origin = next((kind for a, b, kind in dumps if a <= at < b), "keyword")
        if first in "([{" or _is_comment(text, match.start()):
            continue
        span = _token(text, at)
        if span is None or text[span[0] : span[1]] in ("None", "null"):
            continue
        name = normalise_name(match.group(1))
        if origin != "keyword" or first in "\"'" or _is_literal(text, span, text[at - 1]):
            yield name, *span, origin


def _is_comment(text: str, at: int) -> bool:
    """True if it is commented out by a `#` right before it or at the start of its line."""
    before = text[max(0, at - 3) : at + 1].rstrip()
    if before.endswith("#") and (len(before) < 2 or before[-2].isspace()):
        return True
    line = text.rfind("\n", max(0, at - 120), at)
    return line >= 0 and text[line + 1 : at + 1].lstrip(" >\t").startswith("#")


def _is_literal(text: str, span: tuple[int, int], before: str) -> bool:
    value = text[span[0] : span[1]]
    if value in ("True", "true", "False", "false") or value.isdigit():
        return True
    return value.startswith(("/", "~/", "./")) or (before in "= :" and "/" in value and value.count("/") == 1)


def _calls(text: str) -> Iterator[_Found]:
    """Yield models of `vllm serve` or passed positionally to `LLM()`, and environment variables."""
    for words, rule, origin in _CALLS:
        if any(word in text for word in words):
            for match in islice(rule.finditer(text), MAX_SETTINGS):
                name = match.group(1) if origin == "variable" else "model"
                yield name, *match.span(match.re.groups), origin
