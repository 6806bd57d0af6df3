"""The lines of a text, found by their place in it."""

from __future__ import annotations

from bisect import bisect_right

from app.extract.text.blocks import cut_lines
from app.extract.text.document import Line


class LinesAt:
    """The lines of one text, as `cut_lines` gives them."""

    def __init__(self, text: str) -> None:
        self._lines = tuple(cut_lines(text))

    def __getitem__(self, at: int) -> Line:
        """The line at a position, from 0."""
        return self._lines[at]

    def at(self, spot: int) -> int | None:
        """The position of the line that holds a place of the text; None for a place between lines."""
        found = bisect_right(self._lines, spot, key=lambda line: line.start) - 1
        return found if found >= 0 and spot <= self._lines[found].end else None
