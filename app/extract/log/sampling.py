"""The distinctive lines of a very long log: where it begins and ends, and what stands around its errors.

A server's log may hold 100,000 lines of requests around one crash. One linear pass finds the marks of
errors; only the lines near them are read any further. Line numbers stay those of the whole log.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

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


def informative_lines(log: str) -> Iterator[tuple[int, Line]]:
    """The lines of a log worth reading, each with its number from 1; all of them if it is not very long."""
    if len(log) <= LONG_LOG_CHARS:
        yield from enumerate(cut_lines(log), 1)
    elif is_flattened(log):  # its line breaks are found again as far as they can be
        pieces = list(cut_lines(log))
        for at in _worth_reading(log, [piece.start for piece in pieces]):
            yield at + 1, pieces[at]
    else:
        form, size = ("ascii", 1) if log.isascii() else ("utf-32-le", 4)
        signs = np.frombuffer(log.encode(form, "surrogatepass"), dtype=f"<u{size}")
        ends = np.flatnonzero(signs == ord("\n")).astype(np.int32)
        starts = np.concatenate((np.zeros(1, np.int32), ends + 1))
        for at in _worth_reading(log, starts):
            start, end = int(starts[at]), log.find("\n", int(starts[at]))
            end = end if end >= 0 else len(log)
            stop = end - 1 if end > start and log[end - 1] == "\r" else end
            yield at + 1, Line(log[start:stop], start, stop)


def _worth_reading(log: str, starts: Sequence[int] | np.ndarray) -> list[int]:
    """Which of the lines that begin at these places to read: the edges, and what stands around errors."""
    chosen = np.zeros(len(starts), dtype=bool)
    chosen[:EDGE_LINES] = chosen[-EDGE_LINES - 1 :] = True
    for at in _lines_with(_STRONG, log, STRONG_MARKS, starts):
        chosen[max(0, at - BEFORE_LINES) : at + AFTER_LINES + 1] = True
    chosen[_lines_with(_WEAK, log, WEAK_MARKS, starts)] = True
    found: list[int] = np.flatnonzero(chosen).tolist()
    return found


def _lines_with(marks: Any, log: str, count: int, starts: Sequence[int] | np.ndarray) -> list[int]:
    """The lines of the first marks of a log, and of the last ones within its final part."""
    found = [mark.end() - 1 for mark in islice(marks.finditer(log), count)]
    offset = len(log) - LONG_LOG_CHARS
    found += [offset + mark.end() - 1 for mark in deque(marks.finditer(log[offset:]), maxlen=count)]
    lines: list[int] = (np.searchsorted(starts, np.array(found, np.int32), side="right") - 1).tolist()
    return lines
