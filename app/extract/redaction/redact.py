"""Masks secrets with blocks of equal length, so that offsets and lines stay true.

In: any text that will be shown, answered or kept. Out: the masked text and what was masked, by kind.
The rules are `lists/secrets.toml`. A public issue is masked for secrets only; a pasted log for what
names a person or a host as well.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence

from app.extract.redaction.secret_rules import (
    BLOCK,
    KEY_BLOCK,
    Places,
    end_of,
    find_places,
    rules,
    slot_of,
    start_of,
)

__all__ = ["BLOCK", "SHORT_CHARS", "Redacted", "mask_part", "mask_secrets", "redact"]

SHORT_CHARS = 4_000
"""A text of this length is read whole as soon as one rule meets in it."""
AROUND_CHARS = 8_000
"""Longer than any key block: what is masked apart from its text is masked with so much on both sides."""
NEAR_CHARS = 1_000
"""With so much, and whole lines, where there is no key block: longer than what stands between a secret's name
and its value."""


class Redacted:
    """A text without its secrets, masked where it is asked for, and how often each kind stood in it.

    `counts` are by kind, in its order; of a text of which only the beginning was searched, those of that.
    """

    __slots__ = ("_ends", "_private", "_searched", "_source", "_starts", "counts")

    def __init__(
        self,
        source: str,
        starts: Sequence[int],
        ends: Sequence[int],
        counts: tuple[tuple[str, int], ...],
        *,
        searched: int,
        private: bool,
    ) -> None:
        self._source, self._starts, self._ends = source, starts, ends
        self._searched, self._private = searched, private
        self.counts = counts

    @property
    def text(self) -> str:
        """The whole masked text; made anew each time."""
        if self._searched < len(self._source):
            return redact(self._source, private=self._private).text
        return self._part(0, len(self._source)) if self._starts else self._source

    def part(self, start: int, end: int) -> str:
        """`text[start:end]`, for two places within the text, without masking the rest of it."""
        if end <= self._searched:
            return self._part(start, end)
        first = max(0, start - AROUND_CHARS)
        around = redact(self._source[first : end + AROUND_CHARS], private=self._private)
        return around.part(start - first, end - first)

    def _part(self, start: int, end: int) -> str:
        source, at = self._source, start
        pieces: list[str] = []
        for position in range(bisect_right(self._ends, start), len(self._starts)):
            if self._starts[position] >= end:
                break
            first, last = max(self._starts[position], start), min(self._ends[position], end)
            pieces += [source[at:first], _blocks(source[first:last])]
            at = last
        return "".join([*pieces, source[at:end]])


def redact(text: str, *, private: bool = False, most: int | None = None) -> Redacted:
    """Mask secrets.

    Args:
        private: mask addresses of hosts and people too, as is due to a log that is not public.
        most: places to search for. A text of more is masked all the same, but its `counts` are those of its
            beginning: that of a log of nothing but secrets would take seconds.
    """
    data = text.encode()
    starts, ends = array("Q"), array("Q")
    slots: Counter[int] = Counter()
    searched = at = 0
    is_short = len(text) <= SHORT_CHARS
    for end, places in find_places(data, private=private, is_short=is_short, most=most):
        at = _join(places, at, starts, ends, slots)
        searched = end
    if len(data) != len(text):
        searched = _count_in_signs(data, starts, ends, searched)
    kinds = rules().kinds
    counts: Counter[str] = Counter()
    for slot, count in slots.items():
        counts[kinds[slot]] += count
    return Redacted(text, starts, ends, tuple(sorted(counts.items())), searched=searched, private=private)


def mask_secrets(text: str) -> str:
    """A public text as it may be shown."""
    return redact(text).text


def mask_part(text: str, start: int, end: int) -> str:
    """`text[start:end]` of a public text as it may be shown: as it is masked in the whole text."""
    first, last = max(0, start - AROUND_CHARS), min(end + AROUND_CHARS, len(text))
    if text.find(KEY_BLOCK, first, last) < 0:
        first = text.rfind("\n", first, max(first, start - NEAR_CHARS)) + 1 or first
        last = text.find("\n", end + NEAR_CHARS, last) + 1 or last
    return redact(text[first:last]).part(start - first, end - first)


def _join(places: Sequence[int], at: int, starts: Places, ends: Places, slots: Counter[int]) -> int:
    """Add places as spans that lie apart, from where the last one ended; count those that begin anew."""
    for place in places:
        start, end = start_of(place), end_of(place)
        if start >= at:
            slots[slot_of(place)] += 1
        else:
            start = at
        if end > start:
            starts.append(start)
            ends.append(end)
            at = end
    return at


def _count_in_signs(data: bytes, starts: Places, ends: Places, last: int) -> int:
    """Turn places among bytes, which ascend and lie apart, into places among signs, and the last one too."""
    bytes_at = signs_at = 0
    for position, (start, end) in enumerate(zip(starts, ends, strict=True)):
        starts[position] = signs_at = signs_at + len(data[bytes_at:start].decode())
        ends[position] = signs_at = signs_at + len(data[start:end].decode())
        bytes_at = end
    return signs_at + len(data[bytes_at:last].decode(errors="ignore"))


def _blocks(value: str) -> str:
    if "\n" not in value:
        return BLOCK * len(value)
    return "\n".join(BLOCK * len(line) for line in value.split("\n"))
