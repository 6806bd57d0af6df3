"""What to do when no stored issue is known to be the failure. The steps are data: `next_steps.toml`."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from importlib.resources import files
from typing import Any

from app.extract.reader import LogReading
from app.knowledge.answers import NextStep

MAX_STEPS = 4


@lru_cache(maxsize=1)
def _rows() -> list[dict[str, Any]]:
    text = (files(__package__) / "next_steps.toml").read_text(encoding="utf-8")
    rows: list[dict[str, Any]] = tomllib.loads(text)["step"]
    return rows


def next_steps(reading: LogReading) -> tuple[NextStep, ...]:
    """Steps that fit what the log says and what it lacks, the most telling first."""
    told = conditions_of(reading)
    fitting = [row for row in _rows() if set(row["when"]) <= told]
    return tuple(NextStep(text=row["text"], command=row.get("command", "")) for row in fitting[:MAX_STEPS])


def conditions_of(reading: LogReading) -> frozenset[str]:
    """The names of the conditions that hold of a log; `next_steps.toml` says what each means."""
    cause = reading.errors.cause
    around = reading.surroundings
    told: set[str] = set()
    if cause is None:
        told.add("no_error")
        if reading.errors.wrappers:
            told.add("only_wrappers")
    else:
        told.add(f"type:{cause.type}")
        if cause.type in {"CUDA error", "HIP error"}:
            told.add("asynchronous")
        if "out of memory" in cause.message.lower() or "memory for the cache" in cause.message:
            told.add("memory")
    if cause is not None and cause.type == "NCCL error":
        told.add("nccl")
    missing = [
        name for name, value in (
            ("version", around.versions.get("vllm")), ("gpu", around.gpus), ("model", around.models)
        ) if not value
    ]  # fmt: skip
    told |= {f"no_{name}" for name in missing}
    if missing:
        told.add("environment_missing")
    return frozenset(told)
