"""Decide whether a version has a failure: by its fix, its stated range, or the version reported. Pure."""

from collections.abc import Iterator, Sequence
from itertools import chain

from app.extract.facts import FailureKind
from app.extract.rules.patterns import pattern
from app.extract.versions import is_before, is_same, last_failing, ordered
from app.knowledge.fix.decide import seen_from
from app.knowledge.stack.shapes import FailureCase, Standing

NEAR_MINORS = 2
"""A failure that is stale or was closed, without a known fix, may be in this many later minor versions."""
OPEN_MINORS = 4
"""An open failure persists for this many: after some 90 days without a word vLLM labels an issue as stale."""
Line = tuple[int, int]
"""The major and the minor number of releases."""
_BEHAVIOUR = frozenset({"wrong_output", "slowdown"})
"""Kinds that seldom are of one machine alone."""
_SINCE = pattern(
    r"(?i)\bsince\b|\bafter (?:up(?:grad|dat)|switch|v?\d)|\bregress|\bbr(?:oke|eaks|oken)\b|no longer"
    r"|any ?more|onwards?\b|\bnewer\b|>="
)
"""In a title that names a version: marks of a failure that began with it."""


def standing(version: str | None, case: FailureCase) -> Standing:
    """Return whether a version has the failure."""
    if version is None:
        return Standing("unknown", "your version is not known")
    if ordered(version) is None:
        return Standing("unknown", f"{version} has no place among the releases")
    mended = None
    if case.truth.view.state in {"fixed", "merged_unreleased"}:
        fix = seen_from(case.truth, version)
        if fix.for_you == "already_included":
            if not case.truth.view.released_in:
                return Standing("no", f"{version} came out after {fix.pr}, said to fix it, was merged")
            return Standing("no", f"{version} has the fix: {fix.pr}, in {case.truth.view.released_in}")
        if fix.for_you == "upgrade" or (fix.for_you == "not_fixed" and fix.earliest_possible):
            mended = f"fixed in {fix.released_in}" if fix.released_in else f"fixed later by {fix.pr}"
    return next(chain(_by_range(version, case), _by_reports(version, case, mended)))


def _by_range(version: str, case: FailureCase) -> Iterator[Standing]:
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
        yield Standing("no", f"it works in {works}")
    if is_same(fixed, version) or is_before(fixed, version):
        yield Standing("no", f"it is said to be fixed in {fixed}")
    if is_before(version, first) and not works:
        is_stated = _SINCE.search(case.title)
        yield Standing("no" if is_stated else "unknown", f"it is first seen in {first}")
    if is_same(first, version):
        yield Standing(
            "yes", f"it works in {works} and fails in {first}" if works else f"it is said to begin in {first}"
        )
    if any(is_same(item, version) for item in span.still_failing):
        yield Standing("yes", f"it is reported to fail in {version}")
    if is_before(first, version) and (
        is_before(version, last_failing(span)) or _persists(case, first, version)
    ):
        yield Standing("yes", f"it is said to fail since {first}")


def _by_reports(version: str, case: FailureCase, mended: str | None) -> Iterator[Standing]:
    """Yield answers from the reported version, most decisive first.

    `mended`: how it was fixed after `version`.
    """
    stated, span = _reported(case), case.facts.regression
    reported = ordered(stated)
    if reported is None or (span is not None and is_same(span.last_working, stated)):
        yield Standing("unknown", "the report names no release")
    if is_before(version, stated):
        yield Standing("unknown", f"it is reported on {reported}; whether {version} has it is not known")
    if is_same(stated, version):
        yield Standing("yes", f"it is reported on {reported}")
    if version in case.patches and not mended:
        yield Standing("yes", f"it is reported on {reported}, of which {version} is a patch")
    is_settled = case.state != "open" and not _is_stale(case)
    if is_settled and not mended and case.truth.view.state != "merged_unreleased":
        is_near = _is_in_reach(stated, version)
        yield Standing(
            "unknown",
            f"it is reported on {reported} and was closed, and nothing says what fixed it",
            is_near=is_near,
        )
    if mended:
        yield Standing("yes", f"it is reported on {reported} and {mended}")
    if _persists(case, stated, version):
        unresolved = "open" if case.state == "open" else "closed as stale, without a fix"
        yield Standing("yes", f"it is reported on {reported} and {unresolved}")
    yield Standing("unknown", f"it is reported on {reported}, long before {version}")


def _reported(case: FailureCase) -> str | None:
    """Return the reported version, or the first failing one if that is newer."""
    stated, span = case.facts.versions.get("vllm"), case.facts.regression
    first = span.first_failing if span else None
    return first if is_before(stated, first) else stated


def line_of(version: str | None) -> Line | None:
    """Return major and minor number; None if a version cannot be ordered."""
    found = ordered(version)
    return (found.major, found.minor) if found is not None else None


def _persists(case: FailureCase, start: str | None, version: str) -> bool:
    """True if an unresolved failure of an earlier version is assumed to persist in this one."""
    if _is_stale(case):
        last = case.unresolved_until
        return last is not None and not is_before(last, version) and _is_in_reach(start, version)
    return case.state == "open" and _is_in_reach(start, version, OPEN_MINORS)


def _is_stale(case: FailureCase) -> bool:
    """True if nobody wrote for months, so that a robot marked it, and closed it unless somebody objected.

    An error that is closed so is mostly of its reporter's machine; what is wrong or slow stays so.
    """
    is_unresolved = case.truth.view.state in {"not_fixed", "closed_unresolved", "unknown"}
    return (
        is_unresolved
        and "stale" in case.labels
        and may_persist(case.state, case.labels, case.facts.failure_kind)
    )


def may_persist(state: str, labels: Sequence[str], kind: FailureKind) -> bool:
    """True if a failure may be in versions after the reported one although nobody fixed it later."""
    return state == "open" or ("stale" in labels and kind in _BEHAVIOUR)


def _is_in_reach(start: str | None, version: str, minors: int = NEAR_MINORS) -> bool:
    """True if a version is at most so many minor versions after `start`."""
    one, other = line_of(start) or (-1, 0), line_of(version) or (-2, 0)
    return one[0] == other[0] and other[1] - one[1] <= minors
