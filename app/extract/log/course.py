"""The course of a run: which errors it survived, and how it ended.

In: a log's lines. Out: a `Course`, which tells for each error whether the program continued after it, whether
only a request failed, or whether shutdown had already been requested. The marks (lines that show progress,
readiness, the end, …) are rules of `lists/course.toml`.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from app.extract.log.lines import LogLine, first_hits
from app.extract.log.process_stream import ANSWER, ErrorRecord
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import load_rules

Outcome = Literal["stopped", "refused", "none"]
"""stopped: a program ended, or did not start, because of the root cause.
refused: only a request failed; the server answered with an error and kept running.
none: nothing failed."""

Fate = Literal["open", "request", "survived", "stopping"]
"""open: nothing shows that the program continued. request: only a request failed. survived: the program
continued after the error. stopping: shutdown had already been requested."""

REQUEST_ERRORS = frozenset({"BadRequestError", "NotFoundError", "UnprocessableEntityError"})
REFUSED = "course.answered"
"""The rule id of a refused request that only the server's access log shows."""
DEATH = "death"
"""The rule id of a process's death, which is the cause if the process prints no error of its own."""
QUIET = frozenset({"INFO", "DEBUG", "WARNING", "WARN"})
_STATES = frozenset({"ready", "stopping"})
_REFUSED_ROLES = frozenset({"answered", "failed"})
_PROGRESS_ROLES = frozenset({"ready", "progress", "served", "done"})
NEAR_LINES = 300
"""Maximum distance between an error and the message that the process ended; tracebacks are long."""


@dataclass(frozen=True, slots=True)
class _Mark:
    number: int
    role: str
    process: str
    text: str


class Course:
    """The marks along a log."""

    def __init__(self, lines: Sequence[LogLine]) -> None:
        self._marks = _marks(lines)
        self._numbers = [mark.number for mark in self._marks]

    @property
    def ended(self) -> bool:
        """True if an engine process ended because of an error."""
        return any(mark.role == "end" for mark in self._marks)

    def fate(self, record: ErrorRecord) -> Fate:
        """Return what followed an error."""
        library, _, kind = (record.type or "").rpartition(".")
        if record.rule == ANSWER or (kind in REQUEST_ERRORS and not library.startswith("huggingface")):
            return "request"
        if self.ends_program(record):
            return "open"
        if record.rule == DEATH and self._is_done(record.line.number):
            return "stopping"
        return self.fate_of_line(record.line)

    @staticmethod
    def ends_program(record: ErrorRecord) -> bool:
        """True if an error propagated to module level and so ended the program."""
        return bool(record.frames) and record.frames[0].function == "<module>"

    def _is_done(self, number: int) -> bool:
        """True if the program had finished its work before a line and no engine process fails after it."""
        done = any(mark.role == "done" and mark.number < number for mark in self._marks)
        return done and not any(mark.role == "end" and mark.number > number for mark in self._marks)

    def fate_of_line(self, line: LogLine) -> Fate:
        """Return what followed a line that reports a failure."""
        if self._is_stopping(line):
            return "stopping"
        at = bisect_right(self._numbers, line.number)
        own = self._marks[at - 1] if at and self._numbers[at - 1] == line.number else None
        if own is not None and own.role in _REFUSED_ROLES and not self.ended:
            return "request"
        if any(
            mark.role == "end" and mark.process == line.process and mark.number >= line.number - NEAR_LINES
            for mark in self._marks[:at]
        ):
            return "open"
        return self._fate_from_later_marks(line, at)

    def _fate_from_later_marks(self, line: LogLine, at: int) -> Fate:
        """Return a line's fate according to the marks from index `at` on."""
        after = self._marks[at:]
        end = next((mark.number for mark in after if mark.role == "end"), None)
        inner = "Worker" in line.process or "EngineCore" in line.process or line.process.startswith("rank")
        if inner and end is not None and end - line.number <= NEAR_LINES:
            return "open"
        for mark in after:
            if mark.role == "end":
                break
            if mark.role in _PROGRESS_ROLES:
                serves = mark.role == "served" or self._was_serving(line)
                return "request" if line.level not in QUIET and serves else "survived"
            if not inner and (mark.role == "answered" or (mark.role == "failed" and end is None)):
                return "request"
        return "open"

    def _is_stopping(self, line: LogLine) -> bool:
        """True if shutdown had been requested before a line."""
        before = self._marks[: bisect_right(self._numbers, line.number - 1)]
        return next((mark.role for mark in reversed(before) if mark.role in _STATES), "") == "stopping"

    def _was_serving(self, line: LogLine) -> bool:
        """True if the server was handling requests when it printed a line."""
        before = self._marks[: bisect_right(self._numbers, line.number)]
        return any("HTTP/" in mark.text for mark in before)

    def refusal(self, lines: Sequence[LogLine]) -> ErrorRecord | None:
        """Return the first refused request, as shown in the access log."""
        refused = {mark.number for mark in self._marks if mark.role in _REFUSED_ROLES}
        found = (line for line in lines if line.number in refused and not self._is_stopping(line))
        line = next(found, None)
        if line is None:
            return None
        return ErrorRecord(None, line.text[line.text.find('"') :].strip(), line, rule=REFUSED)


def _marks(lines: Sequence[LogLine]) -> list[_Mark]:
    """Return the marks of a log in order."""
    roles, table = _table()
    return [
        _Mark(line.number, roles[hit.lastindex - 1], line.process, hit.group())
        for line, hit in first_hits(lines, table)
    ]


@lru_cache(maxsize=1)
def _table() -> tuple[tuple[str, ...], Any]:
    """Return the roles of all rules, and one pattern with a group for each."""
    rules = load_rules("course")
    parts = "|".join(f"({rule.pattern.pattern})" for rule in rules)
    return tuple(rule["role"] for rule in rules), pattern(parts, multiline=True)


UNKNOWN_COURSE = Course(())
"""The course of lines that may not belong to one log."""
