"""Decide whether a version has a failure, and combine that into the answer for a stack. Pure.

Two separate questions: does the version have the failure (`standing`), and does the failure apply to this
GPU, model and arguments (`affects.fit`)? Two times yes gives "affects", any no gives "not", else "unknown".
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from pydantic import Field

from app.extract.facts import Facts, Frozen
from app.extract.rules.patterns import pattern
from app.extract.versions import is_before, is_same, last_failing, ordered
from app.knowledge.fix.decide import seen_from
from app.knowledge.fix.shapes import FixTruth

Answer = Literal["affects", "not", "unknown"]
Fails = Literal["yes", "no", "unknown"]

NEAR_MINORS = 2
"""A closed failure whose fix is unknown may be in this many minor versions after the reported one."""
OPEN_MINORS = 4
"""An open failure persists for this many: after some 90 days without a word vLLM labels an issue as stale."""
_SINCE = pattern(
    r"(?i)\bsince\b|\bafter (?:up(?:grad|dat)|switch|v?\d)|\bregress|\bbr(?:oke|eaks|oken)\b|no longer"
    r"|any ?more|onwards?\b|\bnewer\b|>="
)
"""In a title that names a version: marks of a failure that began with it."""


class Affects(Frozen):
    """Whether a failure affects a stack."""

    state: Answer
    reason: str = Field(description="one sentence: how this is known, or what is missing")


@dataclass(frozen=True, slots=True)
class FailureCase:
    """The known data on one failure.

    `titled_*`: GPUs and models named in its title. `reported_before`: the minor release after the report.
    """

    facts: Facts
    truth: FixTruth
    state: str
    title: str = ""
    labels: tuple[str, ...] = ()
    titled_gpus: tuple[str, ...] = ()
    titled_models: tuple[str, ...] = ()
    reported_before: str | None = None


STRONG, MODEL, CARD = 3, 2, 1
LEFT_OUT = 1
"""Weights of evidence. STRONG, enough alone: named in the title or enabled by the arguments. MODEL and CARD,
enough together: the report's model and GPU. LEFT_OUT: the report omits it, which weighs little against a
stack because nobody can check it. Features that nearly every stack has weigh nothing."""


@dataclass(frozen=True, slots=True)
class Fit:
    """An answer to one of the two questions, with its reason.

    `weight`: weight of one sign; in a combined answer the sum of what agrees minus the unknowns.
    For "unknown": `agrees` describes what agrees anyway; `missing` counts the unknowns.
    """

    answer: Fails
    reason: str
    weight: int = STRONG
    is_near: bool = False
    """For "unknown": nothing known speaks against it, and enough speaks for it."""
    agrees: str = ""
    missing: int = 1


def combine_answers(version: Fit, of_the_stack: Fit | None = None) -> Affects:
    """Combine both answers; without the second, only the version decides."""
    fits = [fit for fit in (version, of_the_stack) if fit is not None]
    for answer, state in _DECISIVE:
        if found := next((fit for fit in fits if fit.answer == answer), None):
            return Affects(state=state, reason=found.reason)
    return Affects(state="affects", reason="; ".join(fit.reason for fit in fits))


_DECISIVE: tuple[tuple[Fails, Answer], ...] = (("no", "not"), ("unknown", "unknown"))


def standing(version: str | None, case: FailureCase) -> Fit:
    """Return whether a version has the failure."""
    if version is None:
        return Fit("unknown", "your version is not known")
    if ordered(version) is None:
        return Fit("unknown", f"{version} has no place among the releases")
    released_in = None
    if case.truth.view.state in {"fixed", "merged_unreleased"}:
        fix = seen_from(case.truth, version)
        if fix.for_you == "already_included":
            first = f", in {case.truth.view.released_in}" if case.truth.view.released_in else ""
            return Fit("no", f"{version} has the fix: {fix.pr}{first}")
        released_in = fix.released_in if fix.for_you == "upgrade" else None
    return next(chain(_by_range(version, case), _by_reports(version, case, released_in)))


def _by_range(version: str, case: FailureCase) -> Iterator[Fit]:
    """Yield answers from the stated version range, most decisive first; nothing if it does not apply."""
    span = case.facts.regression
    if span is None:
        return
    works, first, fixed = span.last_working, span.first_failing, span.fixed_in
    stated = (_reported(case), *span.still_failing)
    if any(is_same(fixed, one) or is_before(fixed, one) for one in stated):
        fixed = None  # it was reported there nevertheless
    # A report that names both a working and a failing version is about the failing one.
    has_failed_before = any(is_before(one, works) or (is_same(works, one) and not first) for one in stated)
    if is_same(works, version) or (is_before(version, works) and not has_failed_before):
        yield Fit("no", f"it works in {works}")
    if is_same(fixed, version) or is_before(fixed, version):
        yield Fit("no", f"it is said to be fixed in {fixed}")
    if is_before(version, first) and not works:
        is_stated = _SINCE.search(case.title)
        yield Fit("no" if is_stated else "unknown", f"it is first seen in {first}")
    if is_same(first, version):
        yield Fit(
            "yes", f"it works in {works} and fails in {first}" if works else f"it is said to begin in {first}"
        )
    if any(is_same(item, version) for item in span.still_failing):
        yield Fit("yes", f"it is reported to fail in {version}")
    if is_before(first, version) and (
        is_before(version, last_failing(span)) or _persists(case, first, version)
    ):
        yield Fit("yes", f"it is said to fail since {first}")


def _by_reports(version: str, case: FailureCase, released_in: str | None) -> Iterator[Fit]:
    """Yield answers from the reported version, most decisive first.

    `released_in`: a later version that contains the fix.
    """
    stated, span = _reported(case), case.facts.regression
    reported = ordered(stated)
    if reported is None or (span is not None and is_same(span.last_working, stated)):
        if span is None:
            yield from _by_date(version, case, released_in)
        yield Fit("unknown", "the report names no release")
    if is_before(version, stated):
        yield Fit("unknown", f"it is reported on {reported}; whether {version} has it is not known")
    if is_same(stated, version):
        yield Fit("yes", f"it is reported on {reported}")
    if case.state != "open" and not released_in and case.truth.view.state != "merged_unreleased":
        is_near = _is_in_reach(stated, version)
        yield Fit(
            "unknown",
            f"it is reported on {reported} and was closed, and nothing says what fixed it",
            is_near=is_near,
        )
    if released_in:
        yield Fit("yes", f"it is reported on {reported} and fixed in {released_in}")
    if _persists(case, stated, version):
        is_line = line_of(stated) == line_of(version)
        yield Fit("yes", f"it is reported on {reported} and open", STRONG if is_line else CARD)
    yield Fit("unknown", f"it is reported on {reported}, long before {version}")


def _by_date(version: str, case: FailureCase, released_in: str | None) -> Iterator[Fit]:
    """Yield an answer for a report that names no release: the next release still has what it reports."""
    later = case.reported_before
    if later is None or is_before(version, later) or not _is_in_reach(later, version, OPEN_MINORS):
        return
    if released_in:
        yield Fit("yes", f"it was reported before {later} was released, and is fixed in {released_in}")
    elif _persists(case, later, version):
        yield Fit("yes", f"it was reported before {later} was released, and is open", CARD)


def _reported(case: FailureCase) -> str | None:
    """Return the reported version, or the first failing one if that is newer."""
    stated, span = case.facts.versions.get("vllm"), case.facts.regression
    first = span.first_failing if span else None
    return first if is_before(stated, first) else stated


def line_of(version: str | None) -> tuple[int, int] | None:
    found = ordered(version)
    return (found.major, found.minor) if found is not None else None


def _persists(case: FailureCase, start: str | None, version: str) -> bool:
    """True if an open failure of an earlier version is assumed to persist in this one."""
    return case.state == "open" and "stale" not in case.labels and _is_in_reach(start, version, OPEN_MINORS)


def _is_in_reach(start: str | None, version: str, minors: int = NEAR_MINORS) -> bool:
    """True if a version is at most so many minor versions after `start`."""
    one, other = ordered(start), ordered(version)
    if one is None or other is None:
        return False
    return one.major == other.major and other.minor - one.minor <= minors


def is_bounded(case: FailureCase) -> bool:
    """True if a fixed release, or both a working and a failing one, are known."""
    span = case.facts.regression
    return bool(case.truth.view.released_in or (span and span.last_working and span.first_failing))
