"""The course of a run: which of a log's errors it survived, and what became of it.

In: a log's lines. Out: a `Course`, which knows for each error whether the program went on behind it, whether
only a request got it, or whether it came when the program was already asked to stop. The marks are rules of
`lists/course.toml`.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from app.extract.log.lines import LogLine
from app.extract.log.process_stream import ANSWER, ErrorRecord
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import load_rules

Outcome = Literal["stopped", "refused", "none"]
"""stopped: a program ended, or did not come up, for the root cause.
refused: only a request failed; the server answered it with an error and goes on.
none: nothing failed."""

Fate = Literal["open", "request", "survived", "stopping"]
"""open: nothing is known to have followed the error. request: only a request got it. survived: the program
went on behind it. stopping: the program was already asked to stop."""

REQUEST_ERRORS = frozenset({"BadRequestError", "NotFoundError", "UnprocessableEntityError"})
REFUSED = "course.answered"
"""The rule of a refused request that only the server's access log shows."""
DEATH = "death"
"""The rule of a process's death, which is the cause where the process prints no error of its own."""
QUIET = frozenset({"INFO", "DEBUG", "WARNING", "WARN"})
_TURNS = frozenset({"ready", "stopping"})
_REFUSED = frozenset({"answered", "failed"})
_PROGRESS = frozenset({"ready", "progress", "served", "done"})
NEAR_LINES = 300
"""How far a process's words on its end stand from the error that ended it; tracebacks are long."""
MIN_KNOWN_LINES = 20
"""A shorter log need not name the program that printed it."""
_VLLM = pattern(r"(?i)\bvllm\b|\((?:EngineCore|APIServer)\w* pid=")


@dataclass(frozen=True, slots=True)
class _Mark:
    number: int
    role: str
    process: str
    text: str


class Course:
    """The marks along a log."""

    def __init__(self, lines: Sequence[LogLine]) -> None:
        self._marks = list(_marks(lines))
        self._numbers = [mark.number for mark in self._marks]

    @property
    def ended(self) -> bool:
        """Whether a process of the engine ended for an error."""
        return any(mark.role == "end" for mark in self._marks)

    def fate(self, record: ErrorRecord) -> Fate:
        """What followed an error."""
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
        """Whether an error left the program itself, which ended with it."""
        return bool(record.frames) and record.frames[0].function == "<module>"

    def _is_done(self, number: int) -> bool:
        """Whether a program had got what it wanted before a line, and nobody missed its engine behind it."""
        done = any(mark.role == "done" and mark.number < number for mark in self._marks)
        return done and not any(mark.role == "end" and mark.number > number for mark in self._marks)

    def fate_of_line(self, line: LogLine) -> Fate:
        """What followed a line that reports a failure."""
        if self._is_stopping(line):
            return "stopping"
        at = bisect_right(self._numbers, line.number)
        own = self._marks[at - 1] if at and self._numbers[at - 1] == line.number else None
        if own is not None and own.role in _REFUSED and not self.ended:
            return "request"
        if any(
            mark.role == "end" and mark.process == line.process and mark.number >= line.number - NEAR_LINES
            for mark in self._marks[:at]
        ):
            return "open"
        return self._behind(line, at)

    def _behind(self, line: LogLine, at: int) -> Fate:
        """What the marks behind a line say of it."""
        after = self._marks[at:]
        end = next((mark.number for mark in after if mark.role == "end"), None)
        inner = "Worker" in line.process or "EngineCore" in line.process or line.process.startswith("rank")
        if inner and end is not None and end - line.number <= NEAR_LINES:
            return "open"
        for mark in after:
            if mark.role == "end":
                break
            if mark.role in _PROGRESS:
                serves = mark.role == "served" or self._serves(line)
                return "request" if line.level not in QUIET and serves else "survived"
            if not inner and (mark.role == "answered" or (mark.role == "failed" and end is None)):
                return "request"
        return "open"

    def _is_stopping(self, line: LogLine) -> bool:
        """Whether the program had been asked to stop before a line."""
        before = self._marks[: bisect_right(self._numbers, line.number - 1)]
        return next((mark.role for mark in reversed(before) if mark.role in _TURNS), "") == "stopping"

    def _serves(self, line: LogLine) -> bool:
        """Whether the server took requests when it printed a line."""
        before = self._marks[: bisect_right(self._numbers, line.number)]
        return any("HTTP/" in mark.text for mark in before)

    def refusal(self, lines: Sequence[LogLine]) -> ErrorRecord | None:
        """The first request that was refused, as the access log states it."""
        refused = {mark.number for mark in self._marks if mark.role in _REFUSED}
        found = (line for line in lines if line.number in refused and not self._is_stopping(line))
        line = next(found, None)
        if line is None:
            return None
        return ErrorRecord(None, line.text[line.text.find('"') :].strip(), line, rule=REFUSED)


def _marks(lines: Sequence[LogLine]) -> list[_Mark]:
    """The marks of a log in its order: one look at the whole finds the lines that hold one."""
    text = "\n".join(line.text for line in lines)
    found: list[_Mark] = []
    at, end = -1, 0
    roles, table = _table()
    for hit in table.finditer(text):
        while end <= hit.start():
            at += 1
            end += len(lines[at].text) + 1
        line = lines[at]
        if not found or found[-1].number != line.number:
            found.append(_Mark(line.number, roles[hit.lastindex - 1], line.process, hit.group()))
    return found


@lru_cache(maxsize=1)
def _table() -> tuple[tuple[str, ...], Any]:
    """The roles, and the marks of all but mentions as one pattern with a group each."""
    rules = [rule for rule in load_rules("course") if rule["role"] != "mention"]
    parts = "|".join(f"({rule.pattern.pattern})" for rule in rules)
    return tuple(rule["role"] for rule in rules), pattern(parts, multiline=True)


def is_of_vllm(log: str) -> bool | None:
    """Whether vLLM printed a log, or a program that runs vLLM; None if the log is too short to know."""
    if _VLLM.search(log):
        return True
    return False if log.count("\n") >= MIN_KNOWN_LINES else None


@lru_cache(maxsize=1)
def _mentions() -> Any:
    rules = [rule for rule in load_rules("course") if rule["role"] == "mention"]
    return pattern("|".join(f"(?:{rule.pattern.pattern})" for rule in rules))


def is_mention(before: str) -> bool:
    """Whether the words in front of an error's name only speak of such errors."""
    return _mentions().search(before) is not None


UNKNOWN_COURSE = Course(())
"""That of lines of which nobody knows whether they are one log."""
