"""What to do when no stored issue is known to be the failure, and whether a text is a question, not a log.

Steps are data: `next_steps.toml`; the kinds of failures that they are for: `failure_kinds.toml`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from shlex import quote
from typing import Any

from app.extract.reader import LogReading
from app.extract.rules.patterns import pattern
from app.extract.text.blocks import read_document
from app.extract.text.document import IssueText
from app.knowledge.diagnosis.error_text import message_lines
from app.knowledge.diagnosis.failures import asked_kinds, find_kinds, find_outcome
from app.knowledge.diagnosis.quoted_advice import advice_data
from app.knowledge.diagnosis.shapes import NextStep
from app.knowledge.failure_kinds import FailureKind

MAX_STEPS = 4
MAX_ERROR_CHARS = 8_000
MAX_QUESTION_CHARS, MAX_QUESTION_LINES = 300, 3
"""A longer text without an error is the log of something, or a story."""


@lru_cache(maxsize=1)
def rows() -> list[dict[str, Any]]:
    """The steps as they stand in the data, in the order in which they are offered."""
    text = (files(__package__) / "next_steps.toml").read_text(encoding="utf-8")
    steps: list[dict[str, Any]] = tomllib.loads(text)["step"]
    return steps


def kinds_of(reading: LogReading) -> tuple[FailureKind, ...]:
    """The kinds of the failure that a log reports, or that a question is about."""
    return asked_kinds(reading.log) if is_question(reading) else find_kinds(reading)


def next_steps(reading: LogReading, kinds: Sequence[FailureKind]) -> tuple[NextStep, ...]:
    """Steps that fit what the log says and what it lacks, the most telling first.

    Args:
        kinds: see `kinds_of`.
    """
    known = conditions_of(reading, kinds)
    error = "\n".join(line.text for line in message_lines(reading))[:MAX_ERROR_CHARS]
    if reading.errors.cause is not None:
        error = f"{reading.errors.cause.message}\n{error}"
    found: list[NextStep] = []
    for row in rows():
        step = _step_of(row, error) if holds(row, known) else None
        if step is not None and len(found) < MAX_STEPS:
            found.append(step)
    return tuple(found)


def holds(row: dict[str, Any], known: frozenset[str]) -> bool:
    """Whether a step's conditions are met."""
    if known & set(row.get("unless", ())):
        return False
    return all(known & set(condition.split("|")) for condition in row["when"])


def _step_of(row: dict[str, Any], error: str) -> NextStep | None:
    """The step, filled in from the error; None if its pattern is not found there."""
    text, command = row["text"], row.get("command", "")
    if "pattern" in row:
        found = pattern(row["pattern"], ignore_case=True).search(error)
        if found is None:
            return None
        values = found.groupdict()
        if module := values.get("module"):
            package = advice_data()["packages"].get(module, module.replace("_", "-"))
            values["package"] = quote(package)
        for name, value in values.items():
            text, command = text.replace(f"{{{name}}}", value), command.replace(f"{{{name}}}", value)
    return NextStep(text=text, command=command)


def conditions_of(reading: LogReading, kinds: Sequence[FailureKind]) -> frozenset[str]:
    """The names of the conditions that hold of a log; `next_steps.toml` says what each means."""
    around = reading.surroundings
    found: set[str] = set()
    if is_question(reading):
        found.add("question")
    else:
        if reading.errors.cause is None:
            found.add("only_wrappers" if reading.errors.wrappers else "no_error")
        found |= {"refused", "not_started"} & {find_outcome(reading, kinds)}
    found |= {kind.id for kind in kinds}
    missing = {"no_version": around.versions.get("vllm"), "no_gpu": around.gpus, "no_model": around.models}
    found |= {name for name, value in missing.items() if not value}
    if not all(missing.values()):
        found.add("environment_missing")
    return frozenset(found)


def is_question(reading: LogReading) -> bool:
    """No error in it, no line of a program's output, and short enough to be asked."""
    if reading.errors.cause is not None or reading.errors.wrappers:
        return False
    if len(reading.log) > MAX_QUESTION_CHARS or len(reading.lines) > MAX_QUESTION_LINES:
        return False
    if any(line.process or line.level for line in reading.lines):
        return False
    return all(block.kind != "code" for block in read_document(IssueText(0, "", reading.log)).blocks)
