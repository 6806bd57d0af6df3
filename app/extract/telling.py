"""The telling lines of a very long log: where it begins and ends, and what stands around its errors.

A server's log may hold 100,000 lines of requests around one crash. One linear pass finds the marks of
errors; only the lines near them are read any further. Line numbers stay those of the whole log.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from app.extract.document import Line
from app.extract.patterns import pattern
from app.extract.sections import cut_lines, is_flattened

LONG_LOG_CHARS = 1 << 20
"""A shorter log is read whole."""
EDGE_LINES = 400
"""Read at the beginning, where a server tells its settings, and at the end."""
STRONG_MARKS = 60
"""Of the places where an error surely begins, the first so many are read, and the last of the final part."""
BEFORE_LINES, AFTER_LINES = 4, 120
"""Read around such a place."""
WEAK_MARKS = 1_500
"""The same for lines that only name an error."""

_STRONG = pattern(
    r"Traceback \(most recent call last\)|terminate called|Fatal Python error|Segmentation fault|SIGSEGV"
    r"|core dumped|illegal memory access|out of memory|died unexpectedly|Watchdog caught"
)
_WEAK = pattern(r"(?m)^.{0,120}?(?:\b(?:ERROR|CRITICAL|FATAL)\b|(?:Error|Exception)\b)")

Numbered = tuple[int, Line]


def telling_lines(log: str) -> Iterator[Numbered]:
    """The lines of a log worth reading, each with its number from 1; all of them if it is not very long."""
    if len(log) <= LONG_LOG_CHARS or is_flattened(log):
        yield from enumerate(cut_lines(log), 1)
        return
    ends = _line_ends(log)
    for number in sorted(_chosen(log, ends)):
        start = ends[number - 2] + 1 if number > 1 else 0
        end = ends[number - 1]
        stop = end - 1 if end > start and log[end - 1] == "\r" else end
        yield number, Line(log[start:stop], start, stop)


def _line_ends(log: str) -> list[int]:
    ends = []
    at = log.find("\n")
    while at >= 0:
        ends.append(at)
        at = log.find("\n", at + 1)
    return [*ends, len(log)]


def _chosen(log: str, ends: Sequence[int]) -> set[int]:
    """Numbers of the lines to read."""
    last = len(ends)
    chosen = {*range(1, min(EDGE_LINES, last) + 1), *range(max(1, last - EDGE_LINES), last + 1)}
    for number in _near_edges(_STRONG, log, ends, STRONG_MARKS):
        chosen.update(range(max(1, number - BEFORE_LINES), min(last, number + AFTER_LINES) + 1))
    chosen.update(_near_edges(_WEAK, log, ends, WEAK_MARKS))
    return chosen


def _near_edges(marks: Any, log: str, ends: Sequence[int], count: int) -> Iterator[int]:
    """Line numbers of the first marks of a log, and of the last ones within its final part."""
    for found in islice(marks.finditer(log), count):
        yield bisect_right(ends, found.end() - 1) + 1
    offset = len(log) - LONG_LOG_CHARS
    for found in deque(marks.finditer(log[offset:]), maxlen=count):
        yield bisect_right(ends, offset + found.end() - 1) + 1
