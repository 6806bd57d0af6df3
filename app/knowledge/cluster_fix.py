"""The fix of a cluster: what the member that knows most of it tells, and what the others tell otherwise."""

from __future__ import annotations

from collections.abc import Sequence

from app.extract.facts import FixState
from app.knowledge.cluster_shapes import ClusterFix
from app.knowledge.version_issues import Candidate
from app.knowledge.version_order import is_before, is_same, ordered

KNOWING: dict[FixState, int] = {"fixed": 0, "merged_unreleased": 1, "in_progress": 2}
"""States that name a change; of the others the canonical issue's own stands for all."""
NAMED_MAX = 5


def cluster_fix(canonical: int, reports: Sequence[Candidate]) -> ClusterFix | None:
    """The fix merged over the reports, named with the issue that tells it; None without reports.

    Between two that know as much the canonical issue's counts, then the newer one's.
    """
    if not reports:
        return None
    chosen = min(reports, key=lambda one: _order(one, canonical))
    return ClusterFix(
        **dict(chosen.fix), number=chosen.issue.number, also=tuple(_otherwise(chosen, reports))
    )


def _order(one: Candidate, canonical: int) -> tuple[int, bool, bool, int]:
    rank = KNOWING.get(one.fix.state, len(KNOWING))
    unreleased = one.fix.state == "fixed" and one.fix.released_in is None
    return rank, unreleased, one.issue.number != canonical, -one.issue.number


def _otherwise(chosen: Candidate, reports: Sequence[Candidate]) -> list[str]:
    """Sentences: reports from versions that have the fix, issues still open, other fixes."""
    others = [one for one in reports if one is not chosen]
    told: list[str] = []
    fix = chosen.fix
    if fix.state == "fixed" and fix.released_in:
        again = [one for one in others if _has(one, fix.released_in)]
        if again:
            told.append(f"Reported from a version that has it: {_named(again, with_version=True)}.")
    if fix.state in KNOWING:
        still = [one for one in others if one.issue.state == "open"]
        if still and fix.state != "in_progress":
            told.append(f"Still open: {_named(still)}.")
    told += [
        f"#{one.issue.number} names another change: {one.fix.reason or one.fix.pr}"
        for one in sorted(others, key=lambda one: -one.issue.number)
        if one.fix.state in KNOWING and one.fix.pr and one.fix.pr != fix.pr
    ]
    return told[:NAMED_MAX]


def _has(one: Candidate, released_in: str) -> bool:
    version = one.facts.versions.get("vllm")
    if ordered(version) is None:
        return False
    return is_same(version, released_in) or is_before(released_in, version)


def _named(reports: Sequence[Candidate], *, with_version: bool = False) -> str:
    """The newest of them by number, and how many more."""
    newest = sorted(reports, key=lambda one: -one.issue.number)
    shown = [
        f"#{one.issue.number}" + (f" ({one.facts.versions['vllm']})" if with_version else "")
        for one in newest[:NAMED_MAX]
    ]
    more = len(newest) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
