"""The lines of a log that a page shows: the cause, its neighbours, the wrappers; secrets masked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from app.extract.document import Line
from app.extract.redact import redact
from app.extract.sections import cut_lines
from app.knowledge.answers import Diagnosis
from app.knowledge.logtext import clean_log

BEFORE, AFTER = 3, 1
MAX_LINES = 14
MAX_LINE_CHARS = 600
AROUND_CHARS = 8_000
"""Longer than any key block."""

_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")


@dataclass(frozen=True, slots=True)
class ExcerptLine:
    """One line; `number` counts from 1, `role` "hot" is the cause."""

    number: int
    text: str
    role: Literal["hot", "dim"]
    remark: str = ""


def excerpt(log: str, diagnosis: Diagnosis) -> tuple[ExcerptLine, ...]:
    """The telling lines in the order of the log; at most 14."""
    cleaned = clean_log(log)
    cut = list(cut_lines(cleaned))
    lines = [line.text for line in cut]
    hot = diagnosis.root_cause.line if diagnosis.root_cause else 0
    wanted: dict[int, str] = {}
    if hot:
        for number in range(max(1, hot - BEFORE), min(len(lines), hot + AFTER) + 1):
            if lines[number - 1].strip():
                wanted[number] = ""
    for number in _wrapper_numbers(lines, diagnosis.wrappers):
        if number != hot:
            wanted[number] = "wrapper, not the cause"
    chosen = sorted(wanted)[:MAX_LINES]
    if hot and hot not in chosen:
        chosen = sorted([*chosen[: MAX_LINES - 1], hot])
    return tuple(
        ExcerptLine(
            number, _masked(cleaned, cut[number - 1])[:MAX_LINE_CHARS],
            "hot" if number == hot else "dim", wanted.get(number, ""),
        )
        for number in chosen
    )  # fmt: skip


def without_colours(line: str) -> str:
    """A line without a terminal's colours, which a page can only show as odd signs."""
    return _COLOUR.sub("", line) if "\x1b" in line else line


def _masked(log: str, line: Line) -> str:
    """A line masked within its surroundings: the lines of a key block are secret only together."""
    start = max(0, line.start - AROUND_CHARS)
    text = redact(log[start : line.end + AROUND_CHARS], private=True).text
    return text[line.start - start : line.end - start]


def _wrapper_numbers(lines: Sequence[str], wrappers: Sequence[str]) -> list[int]:
    """Where each wrapper stands for the first time."""
    found: list[int] = []
    for wrapper in wrappers[:5]:
        head = wrapper[:80]
        number = next((n for n, line in enumerate(lines, 1) if head and head in line), None)
        if number is not None:
            found.append(number)
    return found
