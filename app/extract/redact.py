"""Masks secrets with blocks of equal length, so that offsets and lines stay true.

In: any text that will be shown, answered or kept. Out: the masked text and what was masked, by kind.
The rules are `lists/secrets.toml`. A public issue is masked for secrets only; a pasted log for what
names a person or a host as well. Each rule reads the text on its own and the places they find are
joined: what one rule takes for a stand-in cannot hide from another. So that thirty rules cost little
more than one, they read only the lines in which all of them together, tried as one pattern, meet.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

from app.extract.lists import load
from app.extract.patterns import pattern

BLOCK = "█"

SHORT_CHARS = 4_000
"""A text of this length is read whole as soon as one rule meets in it."""
LINES_AFTER = 4
"""How far a value may stand below its name."""
APART = "\n\x00\n"
"""Stands between lines that are no neighbours; no rule's blanks reach over it."""

_HOLLOW = frozenset(BLOCK + "*xX.<>$-_")
"""Signs that blot a value out."""
_SUFFIX = re.compile(r"_\d$")
_BETWEEN_WORDS = re.compile(r"[-_:. ]")


@dataclass(frozen=True, slots=True)
class Redacted:
    """The masked text, and how often each kind of secret stood in it."""

    text: str
    counts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class _SecretRule:
    """One or several joined rules, ready for use; `kinds` are the kinds of its groups."""

    pattern: Any
    kinds: dict[int, str]
    is_mixed: bool
    not_after: str
    spares: str


@dataclass(frozen=True, slots=True)
class _Rules:
    """The rules: `lines` read the lines in which `any_of` meets, `whole` and `private` the whole text."""

    any_of: Any
    lines: tuple[_SecretRule, ...]
    whole: tuple[_SecretRule, ...]
    private: tuple[_SecretRule, ...]


@dataclass(frozen=True, slots=True)
class _Place:
    """A secret in a text; `rank` is its rule's place in the list."""

    start: int
    rank: int
    end: int
    kind: str


def redact(text: str, *, private: bool = False) -> Redacted:
    """Mask secrets.

    Args:
        private: mask addresses of hosts and people too, as is due to a log that is not public.
    """
    places = sorted(_places(text, private), key=lambda place: (place.start, place.rank))
    counts: Counter[str] = Counter()
    pieces: list[str] = []
    at = 0
    for place in places:
        if place.start >= at:
            counts[place.kind] += 1
        start = max(place.start, at)
        if place.end > start:
            pieces += [text[at:start], _blocks(text[start : place.end])]
            at = place.end
    if not pieces:
        return Redacted(text, ())
    return Redacted("".join([*pieces, text[at:]]), tuple(sorted(counts.items())))


def mask_secrets(text: str) -> str:
    """A public text as it may be shown."""
    return redact(text).text


def _blocks(value: str) -> str:
    if "\n" not in value:
        return BLOCK * len(value)
    return "\n".join(BLOCK * len(line) for line in value.split("\n"))


def _places(text: str, private: bool) -> list[_Place]:
    """What the rules find, in no order; places overlap where several rules find the same."""
    rules = _rules()
    places: list[_Place] = []
    if spans := _lines_of_interest(text, rules.any_of):
        part = APART.join(text[start:end] for start, end in spans)
        places += _moved(_found_by(rules.lines, part), spans)
    if "PRIVATE KEY" in text:
        places += _found_by(rules.whole, text)
    return places + _found_by(rules.private, text) if private else places


def _lines_of_interest(text: str, any_of: Any) -> list[tuple[int, int]]:
    """The spans of the lines in which any rule meets, and of some below; in order, apart from each other."""
    if len(text) <= SHORT_CHARS:
        return [(0, len(text))] if any_of.search(text) else []
    spans: list[tuple[int, int]] = []
    last = 0
    for found in any_of.finditer(text):
        start, end = found.span()
        if last >= len(text):
            break
        if end <= last:
            continue
        start = max(last, text.rfind("\n", last, start) + 1)
        for _ in range(LINES_AFTER + 1):
            end = text.find("\n", end) + 1 or len(text)
        if spans and spans[-1][1] == start:
            start = spans.pop()[0]
        spans.append((start, end))
        last = end
    return spans


def _moved(places: Iterable[_Place], spans: list[tuple[int, int]]) -> Iterator[_Place]:
    """Places of the joined spans as places of the whole text."""
    starts, at = [], 0
    for start, end in spans:
        starts.append(at)
        at += end - start + len(APART)
    for place in places:
        index = bisect_right(starts, place.start) - 1
        offset = spans[index][0] - starts[index]
        yield _Place(place.start + offset, place.rank, place.end + offset, place.kind)


def _found_by(rules: Iterable[_SecretRule], text: str) -> list[_Place]:
    places: list[_Place] = []
    if not text:
        return places
    for rank, rule in enumerate(rules):
        if not rule.spares:
            places += _found(rule, rank, text)
        elif any(place.kind == rule.spares for place in places):
            spared = {found.start(found.lastindex) for found in rule.pattern.finditer(text)}
            places = [item for item in places if item.kind != rule.spares or item.start not in spared]
    return places


def _found(rule: _SecretRule, rank: int, text: str) -> Iterator[_Place]:
    for found in rule.pattern.finditer(text):
        group = found.lastindex
        start, end = found.span(group)
        value = text[start:end]
        kind = rule.kinds[group]
        if rule.is_mixed and not _is_mixed(value):
            continue
        if rule.not_after and start and text[start - 1] in rule.not_after:
            continue
        if not _is_stand_in(value, kind):
            yield _Place(start, rank, end, kind)


def _is_mixed(value: str) -> bool:
    has_digit = any(char in "0123456789" for char in value)
    return has_digit and any(char.isalpha() for char in value)


@lru_cache(maxsize=4096)
def _is_stand_in(value: str, kind: str) -> bool:
    if set(value) <= _HOLLOW:
        return True
    known = load("secrets")["stand_in"]
    lowered = value.lower()
    if kind == "user_name":
        return lowered.partition("@")[0] in known["user_names"]
    if kind == "ip_address":
        return pattern(known["addresses"]).fullmatch(value) is not None
    if kind == "email":
        return lowered.startswith("git@")
    if lowered in known["whole"] or pattern(known["reference"]).fullmatch(lowered) is not None:
        return True
    return all(word in known["words"] or set(word) <= _HOLLOW for word in _BETWEEN_WORDS.split(lowered))


@lru_cache(maxsize=1)
def _rules() -> _Rules:
    rows = load("secrets")["rule"]
    public = [row for row in rows if not row.get("private")]
    lines = [row for row in public if not row.get("whole")]
    return _Rules(
        any_of=pattern("|".join(re.sub(r"\?P<\w+>", "?:", row["pattern"]) for row in lines)),
        lines=_compiled(lines),
        whole=_compiled(row for row in public if row.get("whole")),
        private=_compiled(row for row in rows if row.get("private")),
    )


def _compiled(rows: Iterable[dict[str, Any]]) -> tuple[_SecretRule, ...]:
    """The rules, those that stand next to each other and are `joined` by the same name as one."""
    numbered = enumerate(rows)
    return tuple(
        _one_rule([row for _, row in group])
        for _, group in groupby(numbered, key=lambda item: item[1].get("joined") or item[0])
    )


def _one_rule(rows: list[dict[str, Any]]) -> _SecretRule:
    parts: list[str] = []
    kinds: dict[int, str] = {}
    for row in rows:
        for name in re.findall(r"\?P<(\w+)>", row["pattern"]):
            kinds[len(kinds) + 1] = _SUFFIX.sub("", name)
        parts.append(re.sub(r"\?P<\w+>", "", row["pattern"]))
    first = rows[0]
    return _SecretRule(
        pattern("|".join(parts)), kinds, first.get("mixed", False), first.get("not_after", ""),
        first.get("spares", ""),
    )  # fmt: skip
