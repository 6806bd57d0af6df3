"""Where versions stand: the environment dump, logs, commands, lists of packages, the author's words.

In: a `Document` and its `Environment`. Out: every version found, with the place it was found in and the rule
that read it; which of them to believe is told by `versions.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from app.extract.fields.environment import Entry, Environment
from app.extract.lists import load
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import Rule, load_rule_set
from app.extract.text.blocks import Places, windows
from app.extract.text.document import Document, Span

MAX_HITS = 60
"""What one rule may find in one text; people name fewer."""

DUMP_LABELS = {
    "vllm": "vLLM Version",
    "torch": "PyTorch version",
    "cuda": "CUDA used to build PyTorch",
    "python": "Python version",
    "driver": "Nvidia driver version",
}
_PACKAGES = ("vllm", "torch", "transformers")
_SPOKEN = frozenset(["said", "plain", "major", "used"])
_MANY = frozenset(["image", *_SPOKEN])
_LIST = load("versions")
_PRODUCTS = frozenset(_LIST["products"])
_NOT_INSTALLED: tuple[str, ...] = tuple(_LIST["not_installed"])
_GLUE = frozenset(
    ["and", "or", "v", "to", "->", "from", "version", "==", "=", ":", "&", "/", "is", "vs", "than"]
)
_TOLD_UNDER = ("environment", "version", "setup", "installing", "software", "hardware", "system")
_RANGE_AFTER = pattern(
    r"^[`*]*(?:\+(?:\W|$)| ?(?:⇄|↔|<->)|,? (?:or|and|to) (?:\d|later|newer|above|higher|greater|up)"
    r"| (?:was|were|is|are) (?:\w+ )?supported)"
)
_MORE = pattern(r"^(?:[`* ]*(?:,|/|、|and|or|&)[`* ]*)v?(\d+\.\d+\.\d+(?:[.\-]?post\d+)?(?:rc\d+)?)")
MAX_TOLD_CODE_CHARS = 3_000
"""Longer code below a heading on the environment is a log, not what somebody states."""


@dataclass(frozen=True, slots=True)
class FoundVersion:
    """A version, where it stands, and the rule that read it."""

    value: str
    span: Span
    rule: str


def all_versions(document: Document, environment: Environment) -> Iterator[tuple[str, str, FoundVersion]]:
    """(key, place, version) of everything that looks like one of the versions asked for.

    What the dump states of another package than vLLM is not looked for elsewhere: it is believed first.
    """
    dumped = list(_from_dump(environment))
    yield from dumped
    yield from _from_title(document)
    settled = {key for key, where, _ in dumped if key != "vllm" and where in ("dump", "package")}
    places = Places(document)
    for source, offset, text in windows(document):
        for rule in load_rule_set("versions").meeting(text):
            if rule["where"] == "title" or rule["key"] in settled:
                continue
            for item in _told(rule, places, source, offset, text):
                yield rule["key"], rule["where"], item
                if rule["key"] == "torch" and (cuda := cuda_of(item.value, item.span)):
                    yield "cuda", "torch", cuda


def cuda_of(torch: str, span: Span) -> FoundVersion | None:
    """The CUDA version in a torch build: `2.6.0+cu124` is 12.4."""
    at = torch.find("+cu")
    digits = torch[at + 3 : at + 6]
    if at < 0 or len(digits) != 3 or not digits.isdigit():
        return None
    source, start, _ = span
    return FoundVersion(
        f"{digits[:2]}.{digits[2]}", (source, start + at + 1, start + at + 6), "cuda.torch_build"
    )


def _from_dump(environment: Environment) -> Iterator[tuple[str, str, FoundVersion]]:
    """The environment dump's own lines and its package lists."""
    for key, label in DUMP_LABELS.items():
        entry = environment.entries.get(label)
        if entry is not None and (item := _first_word(entry, f"{key}.dump")):
            yield key, "dump", item
    for name in _PACKAGES:
        entry = environment.packages.get(name)
        if entry is not None and (item := _first_word(entry, f"{name}.package")):
            yield name, "package", item
    runtime = environment.entries.get("CUDA runtime version")
    has_torch = "PyTorch version" in environment.entries
    if runtime is not None and not has_torch and (item := _first_word(runtime, "cuda.runtime")):
        yield "cuda", "runtime", item
    torch = environment.entries.get("PyTorch version") or environment.packages.get("torch")
    if torch is not None and (item := cuda_of(torch.value, torch.span)):
        yield "cuda", "torch", item


def _first_word(entry: Entry, rule: str) -> FoundVersion | None:
    """A value up to the first blank, if it is a version; a commit that was never filled in is left out."""
    word = entry.value.split(None, 1)[0].rstrip(",;") if entry.value else ""
    base, sign, commit = word.partition("@")
    if sign and not all(char in "0123456789abcdef" for char in commit.lower()):
        word = base
    bare = word.lstrip("vV")
    if bare == "dev" and entry.value == "dev":
        return FoundVersion(bare, entry.span, rule)
    if not bare[:1].isdigit() or "." not in bare:
        return None
    source, start, _ = entry.span
    begin = start + len(word) - len(bare)
    return FoundVersion(bare, (source, begin, begin + len(bare)), rule)


def _from_title(document: Document) -> Iterator[tuple[str, str, FoundVersion]]:
    """A title's versions: vLLM's by the title's own rules, the others' as anybody says them."""
    title = document.sources["title"]
    for rule in load_rule_set("versions").meeting(title):
        is_own = rule["where"] == "title"
        if not is_own and (rule["where"] != "said" or rule["key"] == "vllm"):
            continue
        for item in _hits(rule, "title", 0, title):
            if not (is_own and _is_foreign(title, item.span[1])):
                yield rule["key"], "title", item


def _told(rule: Rule, places: Places, source: str, offset: int, text: str) -> Iterator[FoundVersion]:
    """What a rule finds in a body: the first, or of what people say all that is about their machine."""
    if rule["where"] == "stated":
        for item in islice(_hits(rule, source, offset, text), 1):
            yield item
            yield from _listed_with(item, offset, text)
        return
    if rule["where"] not in _MANY:
        yield from islice(_hits(rule, source, offset, text), 1)
        return
    for item in _hits(rule, source, offset, text):
        is_theirs = rule["key"] == "vllm" and _is_foreign(text, item.span[1] - offset)
        if not is_theirs and (rule["where"] == "image" or _is_statement(places, item.span)):
            yield item


def _listed_with(item: FoundVersion, offset: int, text: str) -> Iterator[FoundVersion]:
    """The versions that stand in one row with a stated one."""
    source, _, end = item.span
    for _ in range(MAX_HITS):
        more = _MORE.match(text[end - offset : end - offset + 40])
        if more is None:
            return
        start, end = end + more.start(1), end + more.end(1)
        yield FoundVersion(more.group(1), (source, start, end), item.rule)


def _is_foreign(text: str, start: int) -> bool:
    """Whether the word before a version, or before a list of versions, names another product."""
    before = text[max(0, start - 48) : start].rsplit("\n", maxsplit=1)[-1]
    for word in reversed(before.replace(",", " ").split()):
        bare = word.lower().strip("`*()[]:=<>~!")
        if bare and bare not in _GLUE and not bare[0].isdigit():
            return bare in _PRODUCTS
    return False


def _is_statement(places: Places, span: Span) -> bool:
    """Whether somebody tells the version of his environment there, rather than a program of something."""
    block = places.block_at(span[0], span[1])
    if block is None or block.kind in ("prose", "heading"):
        return True
    heading = block.heading.lower()
    is_short = len(block.text) < MAX_TOLD_CODE_CHARS
    return block.kind == "code" and is_short and any(word in heading for word in _TOLD_UNDER)


def _hits(rule: Rule, source: str, offset: int, text: str) -> Iterator[FoundVersion]:
    for match in islice(rule.pattern.finditer(text), MAX_HITS):
        group = next((g for g in range(1, rule.pattern.groups + 1) if match.group(g)), None)
        if group is None:
            continue
        start = match.start(group)
        value = match.group(group).rstrip(".")
        if value.startswith("0.0.") or _is_only_named(rule, text, match, start + len(value)):
            continue  # an address, or a version that is only spoken of
        yield FoundVersion(
            value.replace("%2B", "+"), (source, offset + start, offset + start + len(value)), rule.id
        )


def _is_only_named(rule: Rule, text: str, match: Any, end: int) -> bool:
    """Whether another package's version is asked for, or one end of a range, and not what is installed."""
    if rule["key"] == "vllm" or rule["where"] not in _SPOKEN:
        return False
    before = text[max(0, match.start() - 24) : match.start() + 1].lower().rstrip(" `*(")
    return before.endswith(_NOT_INSTALLED) or _RANGE_AFTER.match(text[end : end + 12]) is not None
