"""What to do when no stored issue is known to be the failure, and whether a text is a question, not a log.

Kinds of failures and steps are data: `next_steps.toml`.
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
MAX_WORDS_CHARS = 8_000
MAX_QUESTION_CHARS, MAX_QUESTION_LINES = 300, 3
"""A longer text without an error is the log of something, or a story."""


@lru_cache(maxsize=1)
def _data() -> dict[str, Any]:
    return tomllib.loads((files(__package__) / "next_steps.toml").read_text(encoding="utf-8"))


def rows() -> list[dict[str, Any]]:
    """The steps as they stand in the data, in the order in which they are offered."""
    steps: list[dict[str, Any]] = _data()["step"]
    return steps


@lru_cache(maxsize=2)
def _kinds(column: str) -> dict[str, Any]:
    """Each kind of failure with the pattern of what an error says of it, or of what is asked about it."""
    return {row["name"]: pattern(row[column], ignore_case=True) for row in _data()["kind"] if row.get(column)}


def next_steps(reading: LogReading) -> tuple[NextStep, ...]:
    """Steps that fit what the log says and what it lacks, the most telling first."""
    known = conditions_of(reading)
    fitting = [row for row in rows() if set(row["when"]) <= known]
    return tuple(NextStep(text=row["text"], command=row.get("command", "")) for row in fitting[:MAX_STEPS])


def conditions_of(reading: LogReading) -> frozenset[str]:
    """The names of the conditions that hold of a log; `next_steps.toml` says what each means."""
    around = reading.surroundings
    found: set[str] = set()
    if is_question(reading):
        found.add("question")
        patterns, words = _kinds("asked"), reading.log
    else:
        if reading.errors.cause is None:
            found.add("only_wrappers" if reading.errors.wrappers else "no_error")
        patterns, words = _kinds("error"), _error_words(reading)
    found |= {name for name, kind in patterns.items() if kind.search(words)}
    missing = {"no_version": around.versions.get("vllm"), "no_gpu": around.gpus, "no_model": around.models}
    found |= {name for name, value in missing.items() if not value}
    if not all(missing.values()):
        found.add("environment_missing")
    return frozenset(found)


def _error_words(reading: LogReading) -> str:
    """The cause in its words; without one what wraps it, or the last lines of the log."""
    errors = reading.errors
    if errors.cause is not None:
        return f"{errors.cause.type or ''}: {errors.cause.message}\n{errors.cause.line.text}"[
            :MAX_WORDS_CHARS
        ]
    words = [text for text, _ in errors.wrappers]
    if errors.apparent is not None:
        words.append(f"{errors.apparent.type or ''}: {errors.apparent.message}")
    return "\n".join(words or [line.text for line in reading.lines[-LAST_LINES:]])[-MAX_WORDS_CHARS:]


def is_question(reading: LogReading) -> bool:
    """No error in it, no line of a program's output, and short enough to be asked."""
    if reading.errors.cause is not None or reading.errors.wrappers:
        return False
    if len(reading.log) > MAX_QUESTION_CHARS or len(reading.lines) > MAX_QUESTION_LINES:
        return False
    if any(line.process or line.level for line in reading.lines):
        return False
    return all(block.kind != "code" for block in read_document(IssueText(0, "", reading.log)).blocks)
