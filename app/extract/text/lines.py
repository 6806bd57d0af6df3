"""The lines of a text by their position, each made when it is asked for.

In: a text. Out: the lines that `app.extract.text.blocks.cut_lines` gives. Who needs five lines of a thousand
does not wait for the others.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from app.extract.text.blocks import cut_lines, is_flattened
from app.extract.text.document import Line


class LinesAt:
    """The lines of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._cut = tuple(cut_lines(text)) if is_flattened(text) else None
        if self._cut is not None:
            self._starts = [line.start for line in self._cut]
        else:
            lengths = (len(line) + 1 for line in text.split("\n"))
            self._starts = list(accumulate(lengths, initial=0))

    def __getitem__(self, at: int) -> Line:
        """The line at a position, from 0."""
        if self._cut is not None:
            return self._cut[at]
        start, end = self._starts[at], self._starts[at + 1] - 1
        if end > start and self._text[end - 1] == "\r":
            end -= 1
        return Line(self._text[start:end], start, end)

    def at(self, spot: int) -> int | None:
        """The position of the line that holds a place of the text; None for a place between lines."""
        last = len(self._starts) - (1 if self._cut is not None else 2)
        found = min(bisect_right(self._starts, spot) - 1, last)
        return found if found >= 0 and spot <= self[found].end else None
