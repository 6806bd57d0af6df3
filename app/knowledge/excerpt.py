"""The lines of a log that a page shows: the cause, its neighbours, the wrappers; secrets masked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from app.extract.document import Line
from app.extract.redact import redact
from app.extract.sections import cut_lines, is_flattened, split_lines
from app.knowledge.answers import Diagnosis
from app.knowledge.logtext import clean_log

BEFORE, AFTER = 3, 1
MAX_LINES = 14
MAX_LINE_CHARS = 600
AROUND_CHARS = 8_000
"""Longer than any key block."""
_STEP_CHARS = 1 << 16

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
    lines = _Lines(cleaned)
    hot = diagnosis.root_cause.line if diagnosis.root_cause else 0
    wanted: dict[int, str] = {}
    if hot:
        for number in range(max(1, hot - BEFORE), hot + AFTER + 1):
            line = lines.find(number)
            if line is not None and line.text.strip():
                wanted[number] = ""
    for number in _wrapper_numbers(lines, diagnosis.wrappers):
        if number != hot:
            wanted[number] = "wrapper, not the cause"
    chosen = sorted(wanted)[:MAX_LINES]
    if hot and hot not in chosen:
        chosen = sorted([*chosen[: MAX_LINES - 1], hot])
    return tuple(
        ExcerptLine(
            number, _masked(cleaned, line)[:MAX_LINE_CHARS], "hot" if number == hot else "dim",
            wanted.get(number, ""),
        )
        for number in chosen
        if (line := lines.find(number)) is not None
    )  # fmt: skip


def without_colours(line: str) -> str:
    """A line without a terminal's colours, which a page can only show as odd signs."""
    return _COLOUR.sub("", line) if "\x1b" in line else line


def _masked(log: str, line: Line) -> str:
    """A line masked within its surroundings: the lines of a key block are secret only together."""
    start = max(0, line.start - AROUND_CHARS)
    text = redact(log[start : line.end + AROUND_CHARS], private=True).text
    return text[line.start - start : line.end - start]


class _Lines:
    """The lines of a log by their numbers, from 1, without a list of them: a log may have millions."""

    def __init__(self, log: str) -> None:
        self._log = log
        self._cut = list(cut_lines(log)) if is_flattened(log) else None

    def find(self, number: int) -> Line | None:
        """The line of a number."""
        if self._cut is not None:
            return self._cut[number - 1] if number <= len(self._cut) else None
        start = self._start_of(number)
        return None if start is None else next(split_lines(self._log[start : self._end_of(start)], start))

    def number_of(self, words: str) -> int | None:
        """The number of the first line that holds these words."""
        if self._cut is not None:
            return next((number for number, line in enumerate(self._cut, 1) if words in line.text), None)
        at = self._log.find(words)
        return self._log.count("\n", 0, at) + 1 if at >= 0 else None

    def _end_of(self, start: int) -> int:
        end = self._log.find("\n", start)
        return end if end >= 0 else len(self._log)

    def _start_of(self, number: int) -> int | None:
        at, left = 0, number - 1
        while left and (ends := self._log.count("\n", at, at + _STEP_CHARS)) < left:
            at, left = at + _STEP_CHARS, left - ends
            if at >= len(self._log):
                return None
        for _ in range(left):
            at = self._log.find("\n", at) + 1
        return at


def _wrapper_numbers(lines: _Lines, wrappers: Sequence[str]) -> list[int]:
    """Where each wrapper stands for the first time."""
    found: list[int] = []
    for wrapper in wrappers[:5]:
        head = wrapper[:80]
        number = lines.number_of(head) if head else None
        if number is not None:
            found.append(number)
    return found
