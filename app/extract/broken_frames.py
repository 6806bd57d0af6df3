"""Frames that a narrow screen broke over two lines, put together again.

In: `LogLine`s in the order of the log. Out: the same, where the first line of a broken frame holds the whole
of it and the rest is left out. Known are Python's own form behind a log prefix, which stands only before
the first part, and rich's boxes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from app.extract.error_lines import terminal
from app.extract.frames import PYTHON, other_frame
from app.extract.loglines import LogLine
from app.extract.patterns import pattern

MAX_PARTS = 3
MIN_SCREEN = 70
"""A shorter line was not broken by a screen."""
_REST_OF_NAME = pattern(r"^[A-Za-z0-9_]{1,60}>?$")
_WORDS = frozenset({"pass", "return", "raise", "break", "continue", "yield", "try", "else"})
_BOX = " \t│┃║|"


def join_frames(told: Sequence[LogLine]) -> Sequence[LogLine]:
    """The lines with every broken frame in one."""
    joined: list[LogLine] = []
    skip = 0
    for at, line in enumerate(told):
        if skip:
            skip -= 1
            continue
        whole = line
        if at + 1 < len(told):
            if 'File "' in line.text:
                whole, skip = _python(told, at)
            elif "│" in line.raw and line.text.lstrip()[:1] in {"/", "~"}:
                whole, skip = _boxed(told, at)
        joined.append(whole)
    return joined


def _python(told: Sequence[LogLine], at: int) -> tuple[LogLine, int]:
    """A frame in Python's own form, and how many lines below it were part of it."""
    line = told[at]
    if not _goes_on(told[at + 1]) or len(line.raw) < MIN_SCREEN:
        return line, 0
    text = line.text.rstrip("\r")
    found = PYTHON.search(text)
    if found is not None and found.group(2) and found.end() == len(text):
        rest = told[at + 1].text
        open_ended = bool(line.level or line.process) and found.group(2)[-1:] != ">"
        whole = open_ended and _REST_OF_NAME.match(rest) and rest not in _WORDS and terminal(rest) is None
        return (replace(line, text=text + rest), 1) if whole else (line, 0)
    for parts in range(1, min(MAX_PARTS, len(told) - at)):
        if not _goes_on(told[at + parts]):
            break
        text += told[at + parts].text
        whole = PYTHON.search(text)
        if whole is not None and whole.group(2) and whole.end() > len(line.text):
            return replace(line, text=text), parts
    return line, 0


def _goes_on(line: LogLine) -> bool:
    """Whether a line has neither a prefix of its own nor the indentation of code."""
    text = line.text
    return not line.level and not line.process and text[:2] != "  " and 'File "' not in text


def _boxed(told: Sequence[LogLine], at: int) -> tuple[LogLine, int]:
    """A frame within a box, and how many lines below it were part of it."""
    line = told[at]
    text = line.text.strip(_BOX)
    if other_frame(text) is not None:
        return line, 0
    for parts in range(1, min(MAX_PARTS, len(told) - at)):
        rest = told[at + parts].text.strip(_BOX)
        if "│" not in told[at + parts].raw or not rest or (other_frame(rest) and rest[0] == "/"):
            break
        for glue in ("", " "):
            if other_frame(text + glue + rest) is not None:
                return replace(line, text=text + glue + rest), parts
        text += rest
    return line, 0
