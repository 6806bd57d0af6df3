"""The distinctive lines of a very long log: where it begins and ends, and what stands around its errors.

A server's log may hold 100,000 lines of requests around one crash. One linear pass finds the marks of
errors; only the lines near them are read any further. Line numbers stay those of the whole log.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from app.extract.rules.patterns import pattern
from app.extract.text.blocks import cut_lines, is_flattened
from app.extract.text.document import Line

LONG_LOG_CHARS = 1 << 20
"""A shorter log is read whole."""
EDGE_LINES = 400
"""Read at the beginning, where a server states its settings, and at the end."""
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


def informative_lines(log: str) -> Iterator[Numbered]:
    """The lines of a log worth reading, each with its number from 1; all of them if it is not very long."""
    if len(log) <= LONG_LOG_CHARS:
        yield from enumerate(cut_lines(log), 1)
    elif is_flattened(log):
        yield from _of_pieces(log)
    else:
        yield from _lines_of(log, sorted(_chosen(log)))


@dataclass(frozen=True, slots=True, order=True)
class _Run:
    """Neighbouring lines: the number of the first one, where it begins, and the number of the last."""

    first: int
    start: int
    last: int


def _lines_of(log: str, runs: Iterable[_Run]) -> Iterator[Numbered]:
    """The lines of the runs, each once; a run past the log's end stops there."""
    number, start = 1, 0
    for run in runs:
        if run.first > number:
            number, start = run.first, run.start
        while number <= run.last and start <= len(log):
            end = log.find("\n", start)
            end = end if end >= 0 else len(log)
            stop = end - 1 if end > start and log[end - 1] == "\r" else end
            yield number, Line(log[start:stop], start, stop)
            number, start = number + 1, end + 1


def _chosen(log: str) -> Iterator[_Run]:
    """The lines to read, in no order; they overlap."""
    last = log.count("\n") + 1
    yield _Run(1, 0, EDGE_LINES)
    yield _above(log, _Run(last, log.rfind("\n") + 1, last), EDGE_LINES)
    for line in _lines_at(log, _near_edges(_STRONG, log, STRONG_MARKS)):
        yield _above(log, _Run(line.first, line.start, line.last + AFTER_LINES), BEFORE_LINES)
    yield from _lines_at(log, _near_edges(_WEAK, log, WEAK_MARKS))


def _above(log: str, run: _Run, count: int) -> _Run:
    """The run with so many lines above it."""
    first, start = run.first, run.start
    while start and first > run.first - count:
        first, start = first - 1, log.rfind("\n", 0, start - 1) + 1
    return _Run(first, start, run.last)


def _near_edges(marks: Any, log: str, count: int) -> list[int]:
    """Places of the first marks of a log, and of the last ones within its final part, in order."""
    found = {mark.end() - 1 for mark in islice(marks.finditer(log), count)}
    offset = len(log) - LONG_LOG_CHARS
    found.update(offset + mark.end() - 1 for mark in deque(marks.finditer(log[offset:]), maxlen=count))
    return sorted(found)


def _lines_at(log: str, places: Iterable[int]) -> Iterator[_Run]:
    """The lines that hold these places of a log, which ascend; none of them is a line's end."""
    number, start, end = 1, 0, -1
    for place in places:
        if place > end:
            number += log.count("\n", max(end, 0), place)
            start = log.rfind("\n", max(end, 0), place) + 1
            end = log.find("\n", place)
            end = end if end >= 0 else len(log)
        yield _Run(number, start, number)


def _of_pieces(log: str) -> Iterator[Numbered]:
    """The same choice among the lines of a log that lost its line breaks, as far as they are found again."""
    strong = _Marks(_near_edges(_STRONG, log, STRONG_MARKS))
    weak = _Marks(_near_edges(_WEAK, log, WEAK_MARKS))
    edge: deque[_Piece] = deque()
    reach = EDGE_LINES
    for number, line in enumerate(cut_lines(log), 1):
        edge.append(_Piece(number, line, weak.meet(line) or number <= reach))
        if strong.meet(line):
            reach = max(reach, number + AFTER_LINES)
            for at in range(max(0, len(edge) - 1 - BEFORE_LINES), len(edge)):
                edge[at].is_chosen = True
        if len(edge) > EDGE_LINES + 1 and (first := edge.popleft()).is_chosen:
            yield first.number, first.line
    yield from ((piece.number, piece.line) for piece in edge)


@dataclass(slots=True)
class _Piece:
    """A line that may still be chosen by what stands below it, or for standing at the end."""

    number: int
    line: Line
    is_chosen: bool


class _Marks:
    """Places, asked in the order of the lines whether any of them lies in one."""

    def __init__(self, places: Iterable[int]) -> None:
        self._places = deque(places)

    def meet(self, line: Line) -> bool:
        """Whether a line holds a place."""
        while self._places and self._places[0] < line.start:
            self._places.popleft()
        return bool(self._places) and self._places[0] < line.end
