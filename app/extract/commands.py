"""Reads settings: flags of a command line, keyword arguments, log dumps of a configuration, variables.

In: a `Document`. Out: `Setting`s in reading order, their names in one form (`--tensor_parallel_size`,
`-tp` and `tensor_parallel_size=` are all `tensor-parallel-size`), each with the span of its value.

`origin` tells what the setting proves: `Namespace(...)` and `with config:` print every setting there is,
so what stands there was in force but nobody need have chosen it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from app.extract.document import Document
from app.extract.lists import load
from app.extract.patterns import pattern
from app.extract.sections import windows

Origin = Literal["command", "keyword", "nondefault", "namespace", "config", "variable"]
"""`namespace` and `config` are dumps of all settings, `nondefault` is the log's list of chosen ones."""

MAX_VALUE_CHARS = 1_000
MAX_DUMP_CHARS = 12_000
MAX_SETTINGS = 4_000
"""A log that repeats its command line for ever is read this far."""

_LIST = load("commands")
_ALIASES: dict[str, str] = _LIST["aliases"]
_SWITCHES = frozenset(_LIST["switches"]["names"])
_FLAG = pattern(r"(?:^|[^\w.\-])(?:--([A-Za-z][A-Za-z0-9_.\-]*)|-(tp|pp|dp|dcp|pcp|q|sc|ac|cc)\b)")
_KEY = pattern(
    r"(?:^|[^\w.\-])[\"'`]?(" + "|".join(_LIST["keys"]["names"]) + r")\b[\"'`]?(?:[ \t]?[=:][ \t]?)(\S)"
)
_SERVE = pattern(
    r"\bvllm(?:[ \t]+|[\"'], ?[\"'])serve"
    r"(?:[ \t]+|[ \t]*\\\s+|[\"'], ?[\"'])([^\s\-\"'\\<`][^\s\"'`,]*)"
)
_VARIABLE = pattern(
    r"\b(VLLM_[A-Z0-9_]+|" + "|".join(_LIST["variables"]["names"]) + r")[\"'`]?\]?"
    r"(?:[ \t]*[=:][ \t]*|[\"'], ?[\"']|\s+value:[ \t]*)[\"'`]?([\w.\-/@:,]+)"
)
_DUMPS: tuple[tuple[str, Origin], ...] = (
    ("Namespace(", "namespace"), ("with config:", "config"), ("non-default args:", "nondefault"),
)  # fmt: skip
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_ENDS = frozenset(" \t\r\n\"'`,;)]}\\<>|")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `value` is "" for a bare switch; then the span is the name's.

    Variables keep their own name (`VLLM_USE_V1`); all other names are in the flags' long form.
    """

    name: str
    value: str
    span: tuple[str, int, int]
    origin: Origin

    @property
    def is_chosen(self) -> bool:
        """Whether somebody wrote it, rather than a dump of all settings."""
        return self.origin not in ("namespace", "config")


def read_settings(document: Document) -> tuple[Setting, ...]:
    """All settings that a document's bodies and comments state, in reading order."""
    found: list[Setting] = []
    for source, offset, text in windows(document):
        dumps = _find_dumps(text)
        spans = [
            *(_flags(text) if "-" in text else ()),
            *_keys(text, dumps),
            *(_served(text) if "serve" in text else ()),
            *(_variables(text) if "VLLM_" in text or "VISIBLE_DEVICES" in text else ()),
        ]
        spans.sort(key=lambda item: item[1])
        for name, start, end, origin in spans:
            is_switch = origin == "command" and (name in _SWITCHES or name.startswith("no-"))
            value = "" if is_switch else text[start:end]
            found.append(Setting(name, value, (source, offset + start, offset + end), origin))
    return tuple(found)


def normalise_name(name: str) -> str:
    """A flag's name in the form settings are kept under."""
    bare = name.strip("-").replace("_", "-")
    bare = bare if bare in _ALIASES else bare.lower()
    return _ALIASES.get(bare, bare)


_Found = tuple[str, int, int, Origin]


def _flags(text: str) -> Iterator[_Found]:
    count = 0
    for match in _FLAG.finditer(text):
        group = 1 if match.group(1) else 2
        name, end = normalise_name(match.group(group)), match.end(group)
        count += 1
        if count > MAX_SETTINGS:
            return
        if name in _SWITCHES or name.startswith("no-"):
            yield name, match.start(group), end, "command"
            continue
        span = _flag_value(text, end)
        yield name, *(span or (end, end)), "command"


def _flag_value(text: str, at: int) -> tuple[int, int] | None:
    """The value after a flag's name: behind `=`, white space, a continued line, or the next list item."""
    if at < len(text) and text[at] == "=":
        return _token(text, at + 1)
    start, crossed_line, quoted = at, False, False
    while start < len(text) and start - at < 80:
        char = text[start]
        if char == "\n":
            if not crossed_line and (quoted or text[start - 1] == "\\" or text[start - 2 : start] == "\\\r"):
                crossed_line = True
            else:
                return None
        elif char in "\"'":
            quoted = True
        elif char == "-" and crossed_line and text[start + 1 : start + 2] == " ":
            pass
        elif char not in " \t\r\\,":
            break
        start += 1
    if start == at or start >= len(text) or text[start] in "-`#<)|":
        return None
    if quoted and text[start - 1] in "\"'" and start - at > 1:
        start -= 1
    return _token(text, start)


def _token(text: str, start: int) -> tuple[int, int] | None:
    """The span of one value: quoted, bracketed or a bare word."""
    while start < len(text) and text[start] in " \t":
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
    """Where the log prints whole configurations: start, end, kind."""
    found: list[tuple[int, int, Origin]] = []
    for mark, origin in _DUMPS:
        at = text.find(mark)
        while at >= 0 and len(found) < 50:
            line_end = text.find("\n", at, at + MAX_DUMP_CHARS)
            end = line_end if line_end >= 0 else min(len(text), at + MAX_DUMP_CHARS)
            found.append((at, end, origin))
            at = text.find(mark, end)
    return found


def _keys(text: str, dumps: list[tuple[int, int, Origin]]) -> Iterator[_Found]:
    """Keys with a value. Outside a dump a bare word is a variable of somebody's program: not a value."""
    for count, match in enumerate(_KEY.finditer(text)):
        if count > MAX_SETTINGS:
            return
        at, first = match.start(2), match.group(2)
        origin: Origin = next((kind for a, b, kind in dumps if a <= at < b), "keyword")
        if first in "([{":
            continue
        span = _token(text, at)
        if span is None or text[span[0] : span[1]] in ("None", "null"):
            continue
        if origin == "keyword" and first not in "\"'" and not _is_literal(text, span, text[at - 1]):
            continue
        yield normalise_name(match.group(1)), *span, origin


def _is_literal(text: str, span: tuple[int, int], before: str) -> bool:
    value = text[span[0] : span[1]]
    if value in ("True", "true", "False", "false") or value.isdigit():
        return True
    if text[span[1] : span[1] + 1] in ("(", "[") or value.startswith(("args", "self", "$", "http")):
        return False
    return value.startswith(("/", "~/", "./")) or (before in "= :" and "/" in value and value.count("/") == 1)


def _served(text: str) -> Iterator[_Found]:
    for match in _SERVE.finditer(text):
        yield "model", match.start(1), match.end(1), "command"


def _variables(text: str) -> Iterator[_Found]:
    for count, match in enumerate(_VARIABLE.finditer(text)):
        if count > MAX_SETTINGS:
            return
        yield match.group(1), match.start(2), match.end(2), "variable"
