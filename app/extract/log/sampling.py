"""Sample a very long log: its beginning, its end, and the lines around errors.

A server's log may have 100,000 lines of requests around one crash. One linear pass finds marks of errors;
only the lines near them are parsed. Line numbers refer to the whole log.
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
"""Maximum length of a log that is read in full."""
EDGE_LINES = 400
"""Lines read at the beginning, where a server logs its configuration, and at the end."""
STRONG_MARKS = 60
"""Strong marks (an error starts here) used: this many from the start, and from the end of the final part."""
BEFORE_LINES, AFTER_LINES = 4, 120
"""Lines read around a strong mark."""
WEAK_MARKS = 1_500
"""Weak marks (a line names an error) used, in the same way."""

_STRONG = pattern(
    r"Traceback \(most recent call last\)|terminate called|Fatal Python error|Segmentation fault|SIGSEGV"
    r"|core dumped|illegal memory access|out of memory|died unexpectedly|Watchdog caught"
)
_WEAK = pattern(r"(?m)^.{0,120}?(?:\b(?:ERROR|CRITICAL|FATAL)\b|(?:Error|Exception)\b)")


def informative_lines(log: str) -> Iterator[tuple[int, Line]]:
    """Yield the sampled lines with their numbers from 1; all lines if the log is not very long."""
    if len(log) <= LONG_LOG_CHARS:
        yield from enumerate(cut_lines(log), 1)
    elif is_flattened(log):  # `cut_lines` restores lost line breaks
        pieces = list(cut_lines(log))
        for at in _sample(log, [piece.start for piece in pieces]):
            yield at + 1, pieces[at]
    else:
        form, size = ("ascii", 1) if log.isascii() else ("utf-32-le", 4)
        signs = np.frombuffer(log.encode(form, "surrogatepass"), dtype=f"<u{size}")
        ends = np.flatnonzero(signs == ord("\n")).astype(np.int32)
        starts = np.concatenate((np.zeros(1, np.int32), ends + 1))
        for at in _sample(log, starts):
            start, end = int(starts[at]), log.find("\n", int(starts[at]))
            end = end if end >= 0 else len(log)
            stop = end - 1 if end > start and log[end - 1] == "\r" else end
            yield at + 1, Line(log[start:stop], start, stop)


def _sample(log: str, starts: Sequence[int] | np.ndarray) -> list[int]:
    """Return the indices of lines to read (edges and surroundings of errors), given the lines' starts."""
    chosen = np.zeros(len(starts), dtype=bool)
    chosen[:EDGE_LINES] = chosen[-EDGE_LINES - 1 :] = True
    for at in _lines_with(_STRONG, log, STRONG_MARKS, starts):
        chosen[max(0, at - BEFORE_LINES) : at + AFTER_LINES + 1] = True
    chosen[_lines_with(_WEAK, log, WEAK_MARKS, starts)] = True
    found: list[int] = np.flatnonzero(chosen).tolist()
    return found


def _lines_with(marks: Any, log: str, count: int, starts: Sequence[int] | np.ndarray) -> list[int]:
    """Return the indices of the lines with the first marks of a log, and the last ones of its final part."""
    found = [mark.end() - 1 for mark in islice(marks.finditer(log), count)]
    offset = len(log) - LONG_LOG_CHARS
    found += [offset + mark.end() - 1 for mark in deque(marks.finditer(log[offset:]), maxlen=count)]
    lines: list[int] = (np.searchsorted(starts, np.array(found, np.int32), side="right") - 1).tolist()
    return lines
