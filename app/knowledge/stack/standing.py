"""What is known of a failure, whether a version has it, and the answer that follows for a stack. Pure.

Two questions, asked apart: does the version fail (`standing`), and is the failure of this GPU, model and
arguments (`affects.fit`)? "Affects you" needs a yes to both; a no to either is "does not"; all else is
unknown.
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
"""A report on an open failure speaks for so many minor versions after its own."""
_SINCE = pattern(
    r"(?i)\bsince\b|\bafter (?:up(?:grad|dat)|switch|v?\d)|\bregress|\bbr(?:oke|eaks|oken)\b|no longer"
    r"|any ?more|onwards?\b|\bnewer\b|>="
)
"""In a title that names a version: the failure began with it."""


class Affects(Frozen):
    """Whether a failure affects a stack."""

    state: Answer
    reason: str = Field(description="one sentence: how this is known, or what is missing")


@dataclass(frozen=True, slots=True)
class FailureCase:
    """What is known of one failure. `titled`: the GPUs and models that its title names."""

    facts: Facts
    truth: FixTruth
    state: str
    title: str = ""
    labels: tuple[str, ...] = ()
    titled_gpus: tuple[str, ...] = ()
    titled_models: tuple[str, ...] = ()


STRONG, MODEL, CARD = 3, 2, 1
LEFT_OUT = 1
"""How much a sign weighs: what the title names or the arguments turn on is enough, the model and the GPU of
the report are so together; what nearly every stack has weighs nothing. What a report leaves out weighs little
against a stack too: nobody can check it."""


@dataclass(frozen=True, slots=True)
class Fit:
    """An answer to one of the two questions, with its reason.

    `weight`: of one sign what it weighs, of all together how much agrees, less what is not known.
    `agrees`: of an unknown one what agrees all the same, in words; `missing`: how much is not known.
    """

    answer: Fails
    reason: str
    weight: int = STRONG
    is_near: bool = False
    """Of an unknown one: nothing that is known speaks against it, and enough speaks for it."""
    agrees: str = ""
    missing: int = 1


def judged(version: Fit, of_the_stack: Fit | None = None) -> Affects:
    """The answer to both questions as one; without the second, whatever runs."""
    fits = [fit for fit in (version, of_the_stack) if fit is not None]
    for answer, state in _DECISIVE:
        if found := next((fit for fit in fits if fit.answer == answer), None):
            return Affects(state=state, reason=found.reason)
    return Affects(state="affects", reason="; ".join(fit.reason for fit in fits))


_DECISIVE: tuple[tuple[Fails, Answer], ...] = (("no", "not"), ("unknown", "unknown"))


def standing(version: str | None, case: FailureCase) -> Fit:
    """Whether a version has the failure."""
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
    """What the stated range says of a version, what decides first; nothing where it says nothing."""
    span = case.facts.regression
    if span is None:
        return
    works, first, fixed = span.last_working, span.first_failing, span.fixed_in
    stated = (_reported(case), *span.still_failing)
    if any(is_same(fixed, one) or is_before(fixed, one) for one in stated):
        fixed = None  # it was seen there all the same
    # A report that names the version that works, beside the one that fails, is of the latter.
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
        is_before(version, last_failing(span)) or _is_since(case, first, version)
    ):
        yield Fit("yes", f"it is said to fail since {first}")


def _by_reports(version: str, case: FailureCase, released_in: str | None) -> Iterator[Fit]:
    """What the version that was reported says of this one, what decides first.

    `released_in` is a later version that has the fix.
    """
    stated, span = _reported(case), case.facts.regression
    reported = ordered(stated)
    if reported is None or (span is not None and is_same(span.last_working, stated)):
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
    if _is_since(case, stated, version):
        is_line = line_of(stated) == line_of(version)
        yield Fit("yes", f"it is reported on {reported} and open", STRONG if is_line else CARD)
    yield Fit("unknown", f"it is reported on {reported}, long before {version}")


def _reported(case: FailureCase) -> str | None:
    """The version that a report is of: where it names an older one than the first that fails, that one."""
    stated, span = case.facts.versions.get("vllm"), case.facts.regression
    first = span.first_failing if span else None
    return first if is_before(stated, first) else stated


def line_of(version: str | None) -> tuple[int, int] | None:
    found = ordered(version)
    return (found.major, found.minor) if found is not None else None


def _is_since(case: FailureCase, start: str | None, version: str) -> bool:
    """Whether an open failure of an earlier version may be taken to be in this one."""
    return case.state == "open" and "stale" not in case.labels and _is_in_reach(start, version)


def _is_in_reach(start: str | None, version: str) -> bool:
    """Whether a version is so near behind another that most of its failures may still be there."""
    one, other = ordered(start), ordered(version)
    if one is None or other is None:
        return False
    return one.major == other.major and other.minor - one.minor <= NEAR_MINORS


def is_bounded(case: FailureCase) -> bool:
    """Whether a release is known before which it worked, or since which it is fixed."""
    span = case.facts.regression
    return bool(case.truth.view.released_in or (span and span.last_working and span.first_failing))
