"""When `same` may not be said: errors that name no cause need more than a likeness of words and frames.

A CUDA or HIP error of a kernel is reported by whatever call comes next, so the frames of two such failures
may agree although their kernels do not; a wrapper says only that something failed. For these, `same` needs
the same model family, the same backend or the same kernel on both sides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from app.extract.facts import Facts
from app.extract.reader import LogReading
from app.extract.rootcause import ONLY_WRAPPER
from app.match.agreement import TELLING_BACKENDS, families_of
from app.match.candidates import Candidate
from app.match.terms import FRAME

LATE_ERRORS = (
    "illegal memory access", "launch failure", "device-side assert", "misaligned address",
    "illegal instruction", "an illegal address", "hardware exception", "memory access fault",
)  # fmt: skip
"""What a kernel's fault is called when it is noticed later."""

LATE = (
    "a CUDA error is reported by a later call than the one that caused it, and no model, backend or kernel "
    "is known to agree"
)
WRAPPED = (
    "your log holds only lines that report another error, and no model, backend or kernel is known to agree"
)

_KERNEL = re.compile(r"\.cuh?:|\.hip:|kernel|_custom_ops\.py:|triton")


def why_not_same(reading: LogReading, facts: Facts | None, candidate: Candidate) -> str | None:
    """Why this candidate cannot be called the same failure; None if nothing speaks against it."""
    reason = _weakness(reading)
    if reason is None or _shares_kernel(candidate):
        return None
    return None if facts is not None and (_agrees(reading, facts) or _fails_in(reading, facts)) else reason


def _weakness(reading: LogReading) -> str | None:
    cause = reading.errors.cause
    if cause is None or cause.rule == ONLY_WRAPPER:
        return WRAPPED
    said = cause.message.lower()
    return LATE if any(words in said for words in LATE_ERRORS) else None


def _agrees(reading: LogReading, facts: Facts) -> bool:
    mine = reading.surroundings
    return bool(families_of(mine.models) & families_of(facts.models)) or any(
        _folded(mine.backends.get(key, ())) & _folded(facts.backends.get(key, ()))
        for key in TELLING_BACKENDS
    )


def _fails_in(reading: LogReading, facts: Facts) -> bool:
    """Whether both errors are told at the same place of a kernel's source."""
    cause = reading.errors.cause
    mine = cause.frame if cause else None
    return bool(mine and facts.error and facts.error.frame == mine and _KERNEL.search(mine))


def _folded(values: Iterable[str]) -> set[str]:
    return {value.lower() for value in values}


def _shares_kernel(candidate: Candidate) -> bool:
    return any(channel == FRAME and _KERNEL.search(text) for channel, text, _ in candidate.shared)
