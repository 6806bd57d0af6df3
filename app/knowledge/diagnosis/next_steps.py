"""What to do when no stored issue is known to be the failure. Kinds and steps are data: `next_steps.toml`.

Whether a pasted text is a question in words rather than a log.
"""

from __future__ import annotations

import tomllib
from functools import lru_cache
from importlib.resources import files
from typing import Any

from app.extract.reader import LogReading
from app.extract.rules.patterns import pattern
from app.extract.text.blocks import read_document
from app.extract.text.document import IssueText
from app.knowledge.diagnosis.shapes import NextStep

MAX_STEPS = 4
LAST_LINES = 60
"""Where a log without an error is looked at: it stops where it went wrong."""
MAX_SAID_CHARS = 8_000


@lru_cache(maxsize=1)
def rows() -> list[dict[str, Any]]:
    """The steps as they stand in the data, in the order in which they are offered."""
    steps: list[dict[str, Any]] = _data()["step"]
    return steps


@lru_cache(maxsize=1)
def _data() -> dict[str, Any]:
    return tomllib.loads((files(__package__) / "next_steps.toml").read_text(encoding="utf-8"))


@lru_cache(maxsize=1)
def _kinds() -> dict[str, tuple[Any, Any]]:
    """Each kind of failure with what an error says of it and what a question says."""
    return {row["name"]: (_pattern(row.get("error")), _pattern(row.get("asked"))) for row in _data()["kind"]}


def _pattern(text: str | None) -> Any:
    return pattern(text, ignore_case=True) if text else None


def next_steps(reading: LogReading) -> tuple[NextStep, ...]:
    """Steps that fit what the log says and what it lacks, the most telling first."""
    told = conditions_of(reading)
    fitting = [row for row in rows() if set(row["when"]) <= told]
    return tuple(NextStep(text=row["text"], command=row.get("command", "")) for row in fitting[:MAX_STEPS])


def conditions_of(reading: LogReading) -> frozenset[str]:
    """The names of the conditions that hold of a log; `next_steps.toml` says what each means."""
    cause = reading.errors.cause
    around = reading.surroundings
    told: set[str] = set()
    if is_question(reading):
        told.add("question")
    elif cause is None:
        told.add("only_wrappers" if reading.errors.wrappers else "no_error")
    told |= _kinds_of(reading)
    missing = [
        name
        for name, value in (
            ("version", around.versions.get("vllm")),
            ("gpu", around.gpus),
            ("model", around.models),
        )
        if not value
    ]
    told |= {f"no_{name}" for name in missing}
    if missing:
        told.add("environment_missing")
    return frozenset(told)


def _kinds_of(reading: LogReading) -> set[str]:
    """The kinds of failure of which the error speaks, or the question."""
    if is_question(reading):
        return {name for name, (_, asked) in _kinds().items() if asked and asked.search(reading.log)}
    said = _said(reading)
    return {name for name, (error, _) in _kinds().items() if error and error.search(said)}


def _said(reading: LogReading) -> str:
    """The cause in its words; without one what wraps it, or the last lines of the log."""
    cause = reading.errors.cause
    if cause is not None:
        return f"{cause.type or ''}: {cause.message}\n{cause.line.text}"[:MAX_SAID_CHARS]
    apparent = reading.errors.apparent
    told = [text for text, _ in reading.errors.wrappers]
    if apparent is not None:
        told.append(f"{apparent.type or ''}: {apparent.message}")
    told = told or [line.text for line in reading.lines[-LAST_LINES:]]
    return "\n".join(told)[-MAX_SAID_CHARS:]


MAX_QUESTION_CHARS = 300
MAX_QUESTION_LINES = 3
"""A longer text without an error is the log of something, or a story."""


def is_question(reading: LogReading) -> bool:
    """No error in it, no line of a program's output, and short enough to be asked."""
    if reading.errors.cause is not None or reading.errors.wrappers:
        return False
    if len(reading.log) > MAX_QUESTION_CHARS or len(reading.lines) > MAX_QUESTION_LINES:
        return False
    if any(line.process or line.level for line in reading.lines):
        return False
    return all(block.kind != "code" for block in read_document(IssueText(0, "", reading.log)).blocks)
