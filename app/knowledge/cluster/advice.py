"""What a cluster's reports say of its fix, and what helps: their remedies merged, in the order to try."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.extract.facts import FixState
from app.extract.remedies.sentences import cost_of
from app.extract.versions import is_before, is_same, ordered
from app.knowledge.cluster.shapes import ClusterFix, ClusterRemedy
from app.knowledge.fix.shapes import FixView
from app.knowledge.remedies import RankedAction, rank_actions
from app.knowledge.version.issues import IssueWords, ListedFailure
from app.knowledge.version.shapes import StatedRemedy

KNOWING: dict[FixState, int] = {"fixed": 0, "merged_unreleased": 1, "in_progress": 2}
"""States that name a change; of the others the canonical issue's own stands for all."""
NAMED_MAX = 5


def cluster_fix(canonical: int, reports: Sequence[ListedFailure]) -> ClusterFix | None:
    """The fix merged over the reports, named with the issue that tells it; None without reports.

    Between two that know as much the canonical issue's counts, then the newer one's.
    """
    if not reports:
        return None
    chosen = min(reports, key=lambda one: _order(one, canonical))
    return ClusterFix(**dict(chosen.fix), number=chosen.issue.number, also=tuple(_otherwise(chosen, reports)))


def _order(one: ListedFailure, canonical: int) -> tuple[int, bool, bool, int]:
    rank = KNOWING.get(one.fix.state, len(KNOWING))
    unreleased = one.fix.state == "fixed" and one.fix.released_in is None
    return rank, unreleased, one.issue.number != canonical, -one.issue.number


def _otherwise(chosen: ListedFailure, reports: Sequence[ListedFailure]) -> list[str]:
    """Sentences: reports from versions that have the fix, issues still open, other fixes; newest first."""
    others = sorted((one for one in reports if one is not chosen), key=lambda one: -one.issue.number)
    fix = chosen.fix
    found: list[str] = []
    if fix.state == "fixed" and fix.released_in:
        again = [
            f"#{one.issue.number} ({one.facts.versions['vllm']})"
            for one in others
            if _has(one, fix.released_in)
        ]
        found += [f"Reported from a version that has it: {_first(again)}."] if again else []
    if fix.state in ("fixed", "merged_unreleased"):
        still = [f"#{one.issue.number}" for one in others if one.issue.state == "open"]
        found += [f"Still open: {_first(still)}."] if still else []
    found += [
        f"#{one.issue.number} names another change: {one.fix.reason or one.fix.pr}"
        for one in others
        if one.fix.state in KNOWING and one.fix.pr and one.fix.pr != fix.pr
    ]
    return found[:NAMED_MAX]


def _has(one: ListedFailure, released_in: str) -> bool:
    version = one.facts.versions.get("vllm")
    if ordered(version) is None:
        return False
    return is_same(version, released_in) or is_before(released_in, version)


def _first(names: Sequence[str]) -> str:
    more = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


REMEDIES_MAX = 30


def cluster_remedies(
    reports: Sequence[ListedFailure],
    words: IssueWords,
    repo: str,
    *,
    votes: Mapping[int, int],
    thumbs: Mapping[int, int],
    fix: FixView | None,
) -> tuple[ClusterRemedy, ...]:
    """The remedies of these reports, each action once.

    Args:
        reports: the ones whose remedies count first in front.
        votes: "it works" less "it does not", by issue; they count for the issue's first remedy.
        thumbs: thumbs up less thumbs down, by comment.
        fix: the cluster's; where it is released, the remedies are needless from there on.
    """
    found: list[StatedRemedy] = []
    voted: dict[tuple[int, str], int] = {}
    liked: dict[tuple[int, str], int] = {}
    slow = {one.issue.number for one in reports if one.facts.failure_kind == "slowdown"}
    for one in reports:
        for place, remedy in enumerate(words.remedies(one, repo)):
            found.append(remedy)
            key = remedy.number, remedy.action
            if place == 0 and votes.get(remedy.number):
                voted[key] = votes[remedy.number]
            if (up := thumbs.get(comment_of(remedy.quote.source) or 0)) is not None:
                liked[key] = up
    backing = {key: voted.get(key, 0) + liked.get(key, 0) for key in voted.keys() | liked.keys()}
    ranked = rank_actions(found, backing)[:REMEDIES_MAX]
    return tuple(_merged(action, voted, liked, slow, fix) for action in ranked)


def comment_of(source: str) -> int | None:
    """The id of the comment that a source names."""
    kind, _, key = source.partition(":")
    return int(key) if kind == "comment" and key.isdigit() else None


def _merged(
    action: RankedAction[StatedRemedy],
    voted: Mapping[tuple[int, str], int],
    liked: Mapping[tuple[int, str], int],
    slow: set[int],
    fix: FixView | None,
) -> ClusterRemedy:
    best = action.best
    keys = [(item.number, item.action) for item in action.remedies]
    # Of a slowdown, "slower" names the failure and no price.
    costs = (cost_of(item.quote.text) for item in action.remedies if item.number not in slow)
    return ClusterRemedy(
        **{
            **dict(best),
            "confirmed_by": sum(item.confirmed_by for item in action.remedies),
            "refuted_by": sum(item.refuted_by for item in action.remedies),
        },
        told_in=tuple(dict.fromkeys(item.number for item in action.remedies)),
        works_in=action.issues(fails=False),
        fails_in=action.issues(fails=True),
        cost=next((cost for cost in costs if cost), None),
        votes=sum(voted.get(key, 0) for key in keys),
        reactions=sum(liked.get(key, 0) for key in keys),
        superseded_by=_needless(fix),
    )


def _needless(fix: FixView | None) -> str | None:
    if fix is None or fix.state != "fixed" or not fix.released_in:
        return None
    return f"{fix.pr} in {fix.released_in}" if fix.pr else fix.released_in
