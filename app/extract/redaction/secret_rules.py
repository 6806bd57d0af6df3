"""Where secrets stand in a text, by the rules of `secret_rules`.

In: a text as UTF-8. Out: places in the order in which they begin; they overlap where several rules find
the same. Each rule reads the text on its own: what one rule takes for a stand-in cannot hide from another.
So that thirty rules cost little more than one, they read only the lines in which all of them together, tried
as a few patterns, meet. A text may hold a million secrets: so places are numbers, read only as far as asked
for.

The rules that find secrets, ready for use, and what only stands in a secret's place.

In: `lists/secrets.toml`. Out: `rules()`; `is_stand_in` for a value that a rule found.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import merge
from itertools import chain, groupby
from typing import Any, TypeAlias

from app.extract.lists import load
from app.extract.rules.patterns import escape, pattern

LINES_AFTER = 4
"""How far a value may stand below its name."""
KEY_BLOCK = "PRIVATE KEY"
"""What every rule that reads over many lines looks for."""
APART = b"\n\x00\n"
"""Stands between lines that are no neighbours; no rule's blanks reach over it."""

_LENGTH_BITS, _SLOT_BITS = 28, 8
_LENGTH, _SLOT = (1 << _LENGTH_BITS) - 1, (1 << _SLOT_BITS) - 1
_START = _LENGTH_BITS + _SLOT_BITS
_END = 1 << 64
_AT_A_TIME = 4_096
"""What is looked for stand-ins together."""
_STRETCH_BYTES = 1 << 17
"""How much of a text is put in order at a time."""
_DIGITS = frozenset("0123456789")

Places: TypeAlias = "array[int]"
"""Start, slot and length in one number each, ascending; see `start_of`, `end_of`, `slot_of`."""
_Spans = Sequence[tuple[int, int]]


def start_of(place: int) -> int:
    """Where a secret begins."""
    return place >> _START


def end_of(place: int) -> int:
    """Where it ends."""
    return (place >> _START) + (place & _LENGTH)


def slot_of(place: int) -> int:
    """By which group of which rule it was found."""
    return place >> _LENGTH_BITS & _SLOT


def find_places(
    data: bytes, *, private: bool, is_short: bool, most: int | None = None
) -> Iterator[tuple[int, list[int]]]:
    """Stretches of a text, one after the other: where it ends, and the places that begin in it, in order.

    Args:
        private: by the rules for hosts and people too.
        is_short: the text is read whole as soon as one rule meets in it.
        most: the stretches may end where so many were found.
    """
    known = rules()
    groups: list[_Group] = []
    spans, searched = _lines_of_interest(data, most, is_short=is_short)
    if spans:
        is_whole = spans == [(0, len(data))]
        part = data if is_whole else APART.join(data[start:end] for start, end in spans)
        groups.append(_Group(known.lines, part, None if is_whole else spans))
    if KEY_BLOCK.encode() in data:
        groups.append(_Group(known.whole, data))
    if private and data:
        groups.append(_Group(known.private, data))
    count = 0
    for start in range(0, searched, _STRETCH_BYTES):
        end = min(start + _STRETCH_BYTES, searched)
        found = chain.from_iterable(group.before(end << _START) for group in groups)
        places = sorted(chain.from_iterable(found))
        yield end, places
        count += len(places)
        if most is not None and count > most:
            return


def _lines_of_interest(data: bytes, most: int | None, *, is_short: bool) -> tuple[list[tuple[int, int]], int]:
    """The spans of the lines in which any rule meets, and of some below; in order, apart from each other.

    And up to where they are known: to the end, or to that line in which more rules met than `most`.
    """
    any_of = rules().any_of
    if is_short:
        return [(0, len(data))] if any(some.search(data) for some in any_of) else [], len(data)
    spans: list[tuple[int, int]] = []
    last = 0
    met = merge(*(some.finditer(data) for some in any_of), key=lambda found: found.start())
    for number, found in enumerate(met):
        start, end = found.span()
        if number == most:
            return spans, data.rfind(b"\n", 0, start) + 1
        if last >= len(data):
            break
        if end <= last:
            continue
        start = max(last, data.rfind(b"\n", last, start) + 1)
        for _ in range(LINES_AFTER + 1):
            end = data.find(b"\n", end) + 1 or len(data)
        if spans and spans[-1][1] == start:
            start = spans.pop()[0]
        spans.append((start, end))
        last = end
    return spans, len(data)


class _Group:
    """Rules that read the same text, from its beginning on, as far as they are asked."""

    def __init__(self, group: Iterable[SecretRule], data: bytes, spans: _Spans | None = None) -> None:
        self._readers = [
            _Spared(rule, data) if rule.spares else _Reader(_found(rule, data, spans)) for rule in group
        ]

    def before(self, limit: int) -> list[Places]:
        """What each rule finds further on, up to a limit."""
        found: list[Places] = []
        for reader in self._readers:
            if isinstance(reader, _Spared):
                found = [reader.without(places, limit) for places in found]
            else:
                found.append(reader.before(limit))
        return found


class _Reader:
    """What one rule finds; `batches` bring it with the place up to which they have read."""

    def __init__(self, batches: Iterator[tuple[int, Places]]) -> None:
        self._batches = batches
        self._read_to = -1
        self._ready = array("Q")

    def before(self, limit: int) -> Places:
        while self._read_to < limit:
            self._read_to, batch = next(self._batches)
            self._ready.extend(batch)
        cut = bisect_left(self._ready, limit)
        asked, self._ready = self._ready[:cut], self._ready[cut:]
        return asked


class _Spared:
    """What a rule says is no secret of a kind after all."""

    def __init__(self, rule: SecretRule, data: bytes) -> None:
        self._slots = {slot for slot, kind in enumerate(rules().kinds) if kind == rule.spares}
        self._starts = (found.start(1) for found in rule.pattern.finditer(data))
        self._known: set[int] = set()
        self._last = -1

    def without(self, places: Places, limit: int) -> Places:
        """The places up to a limit that are not spared."""
        if not any(slot_of(place) in self._slots for place in places):
            return places
        while self._last << _START < limit:
            self._last = next(self._starts, limit)
            self._known.add(self._last)
        known, slots = self._known, self._slots
        return array("Q", (p for p in places if start_of(p) not in known or slot_of(p) not in slots))


def _found(rule: SecretRule, data: bytes, spans: _Spans | None) -> Iterator[tuple[int, Places]]:
    """What one rule finds and is no stand-in, in batches: how far was read, and the places until there."""
    move = _mover(spans) if spans is not None else int
    batch = array("Q")
    group, slot = 1, rule.slots[0] << _LENGTH_BITS
    for number, found in enumerate(rule.pattern.finditer(data), 1):
        start, end = found.span(group)
        if start < 0:  # of its groups the one that met is seldom another than before
            group = found.lastindex
            start, end = found.span(group)
            slot = rule.slots[group - 1] << _LENGTH_BITS
        place = start << _START | slot | end - start
        if not (start and data[start - 1] in rule.not_after) and not (
            rule.is_mixed and not _is_mixed(data[start:end].decode())
        ):
            batch.append(place)
        if not number % _AT_A_TIME:
            kept = array("Q", map(move, _secrets(batch, data)))
            yield move(place), kept
            batch = array("Q")
    yield _END, array("Q", map(move, _secrets(batch, data)))


def _mover(spans: _Spans) -> Callable[[int], int]:
    """Turns places of the joined spans, which ascend, into places of the whole text."""
    rest = iter(spans)
    offset = until = -len(APART)

    def move(place: int) -> int:
        nonlocal offset, until
        while place >> _START >= until:
            start, end = next(rest)
            offset = start - until - len(APART)
            until += end - start + len(APART)
        return place + (offset << _START)

    return move


def _secrets(places: Places, data: bytes) -> Iterable[int]:
    """The places whose values are no stand-ins."""
    values = [data[start_of(place) : end_of(place)] for place in places]
    doubtful = may_be_stand_ins(values) if values else ()
    if not doubtful:
        return places
    kinds = rules().kinds
    return [
        place
        for place, value in zip(places, values, strict=True)
        if value not in doubtful or not is_stand_in(value.decode(), kinds[slot_of(place)])
    ]


def _is_mixed(value: str) -> bool:
    return any(map(_DIGITS.__contains__, value)) and any(map(str.isalpha, value))


BLOCK = "█"

_HOLLOW = frozenset(BLOCK + "*xX.<>$-_")
"""Signs that blot a value out."""
_SUFFIX = re.compile(r"_\d$")
_BETWEEN_WORDS = re.compile(r"[-_:. ]")


@dataclass(frozen=True, slots=True)
class SecretRule:
    """One or several joined rules; `slots` are those of its groups, see `Rules`."""

    pattern: Any
    slots: tuple[int, ...]
    is_mixed: bool
    not_after: bytes
    spares: str


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules: `lines` read the lines in which one of `any_of` meets, `whole` and `private` the whole text.

    Every group has a slot; of two secrets that begin at the same place that of the lower slot is counted.
    `kinds` are those of the slots.
    """

    any_of: tuple[Any, ...]
    lines: tuple[SecretRule, ...]
    whole: tuple[SecretRule, ...]
    private: tuple[SecretRule, ...]
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _StandIns:
    any_of: Any
    whole: frozenset[str]
    words: frozenset[str]
    reference: Any
    user_names: frozenset[str]
    addresses: Any


def may_be_stand_ins(values: Sequence[bytes]) -> set[bytes]:
    """The values for which `is_stand_in` is worth asking: one look at all is cheaper than one at each."""
    return {found.group() for found in _stand_ins().any_of.finditer(b"\n".join(values))}


@lru_cache(maxsize=4096)
def is_stand_in(value: str, kind: str) -> bool:
    """Whether a value of a kind is no secret but what stands in its place in defaults, examples and code."""
    if set(value) <= _HOLLOW:
        return True
    known = _stand_ins()
    lowered = value.lower()
    if kind == "user_name":
        return lowered.partition("@")[0] in known.user_names
    if kind == "ip_address":
        return known.addresses.fullmatch(value) is not None
    if kind == "email":
        return lowered.startswith("git@")
    if lowered in known.whole or known.reference.fullmatch(lowered) is not None:
        return True
    return all(word in known.words or set(word) <= _HOLLOW for word in _BETWEEN_WORDS.split(lowered))


@lru_cache(maxsize=1)
def _stand_ins() -> _StandIns:
    known = load("secrets")["stand_in"]
    word = f"(?:{_one_of(known['words'])}|[{escape(''.join(sorted(_HOLLOW)))}]*)"
    names = f"(?:{_one_of([*known['user_names'], 'git'])})(?:@.*)?"
    words = f"{word}(?:[-_:. ]{word})*"
    rest = (_one_of(known["whole"]), words, known["reference"], names, known["addresses"])
    return _StandIns(
        pattern(f"(?mi)^(?:{'|'.join(rest)})$"),
        frozenset(known["whole"]),
        frozenset(known["words"]),
        pattern(known["reference"]),
        frozenset(known["user_names"]),
        pattern(known["addresses"]),
    )


def _one_of(words: Iterable[str]) -> str:
    return "|".join(map(escape, words))


@lru_cache(maxsize=1)
def rules() -> Rules:
    """All rules of the list."""
    rows = load("secrets")["rule"]
    public = [row for row in rows if not row.get("private")]
    lines = [row for row in public if not row.get("whole")]
    parts = [
        _joined(lines),
        _joined(row for row in public if row.get("whole")),
        _joined(row for row in rows if row.get("private")),
    ]
    kinds: list[str] = []
    compiled: dict[tuple[int, int], SecretRule] = {}
    for rank in range(max(map(len, parts))):
        for part, joined in enumerate(parts):
            if rank < len(joined):
                compiled[part, rank] = _one_rule(joined[rank], kinds)
    of_lines, of_whole, of_private = (
        tuple(compiled[part, rank] for rank in range(len(joined))) for part, joined in enumerate(parts)
    )
    return Rules(_any_of(lines), of_lines, of_whole, of_private, tuple(kinds))


def _any_of(rows: Iterable[dict[str, Any]]) -> tuple[Any, ...]:
    """All rules as a few patterns, each from a rule that stands `apart` to the next."""
    texts: list[list[str]] = [[]]
    for row in rows:
        if row.get("apart"):
            texts.append([])
        texts[-1].append(re.sub(r"\?P<\w+>", "?:", row["pattern"]))
    return tuple(pattern("|".join(together)) for together in texts)


def _joined(rows: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The rules, those that stand next to each other and are `joined` by the same name together."""
    numbered = enumerate(rows)
    return [
        [row for _, row in group]
        for _, group in groupby(numbered, key=lambda item: item[1].get("joined") or item[0])
    ]


def _one_rule(rows: Sequence[dict[str, Any]], kinds: list[str]) -> SecretRule:
    """Rules as one; the kinds of its groups are appended to `kinds`."""
    first = len(kinds)
    parts: list[str] = []
    for row in rows:
        kinds += (_SUFFIX.sub("", name) for name in re.findall(r"\?P<(\w+)>", row["pattern"]))
        parts.append(re.sub(r"\?P<\w+>", "", row["pattern"]))
    row = rows[0]
    return SecretRule(
        pattern("|".join(parts)),
        tuple(range(first, len(kinds))),
        row.get("mixed", False),
        row.get("not_after", "").encode(),
        row.get("spares", ""),
    )
