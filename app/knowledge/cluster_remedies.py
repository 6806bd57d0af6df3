"""What helps against a cluster's failure: the actions its reports tell, merged and in the order to try them.

The order is that of `remedies`, with votes and reactions; an action without its words is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.extract.cost import cost_of
from app.knowledge.answers import FixView
from app.knowledge.cluster_shapes import ClusterRemedy
from app.knowledge.remedies import RankedAction, rank_actions
from app.knowledge.version_issues import Candidate, Words
from app.knowledge.version_shapes import SaidRemedy

REMEDIES_MAX = 30


def cluster_remedies(
    reports: Sequence[Candidate],
    words: Words,
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
    told: list[SaidRemedy] = []
    voted: dict[tuple[int, str], int] = {}
    liked: dict[tuple[int, str], int] = {}
    slow: set[int] = set()
    for one in reports:
        mine = list(words.remedies(one, repo))
        told += mine
        if one.facts.failure_kind == "slowdown":
            slow.add(one.issue.number)
        for place, remedy in enumerate(mine):
            key = remedy.number, remedy.action
            if place == 0 and votes.get(remedy.number):
                voted[key] = votes[remedy.number]
            if (up := thumbs.get(comment_of(remedy.quote.source) or 0)) is not None:
                liked[key] = up
    backing = {key: voted.get(key, 0) + liked.get(key, 0) for key in voted.keys() | liked.keys()}
    return tuple(
        _merged(action, voted, liked, slow, fix) for action in rank_actions(told, backing)[:REMEDIES_MAX]
    )


def comment_of(source: str) -> int | None:
    """The id of the comment that a source names."""
    kind, _, key = source.partition(":")
    return int(key) if kind == "comment" and key.isdigit() else None


def _merged(
    action: RankedAction[SaidRemedy],
    voted: Mapping[tuple[int, str], int],
    liked: Mapping[tuple[int, str], int],
    slow: set[int],
    fix: FixView | None,
) -> ClusterRemedy:
    best = action.best
    keys = [(item.number, item.action) for item in action.tellings]
    # Of a slowdown, "slower" names the failure and no price.
    costs = (cost_of(item.quote.text) for item in action.tellings if item.number not in slow)
    return ClusterRemedy(
        **{
            **dict(best),
            "confirmed_by": sum(item.confirmed_by for item in action.tellings),
            "refuted_by": sum(item.refuted_by for item in action.tellings),
        },
        told_in=tuple(dict.fromkeys(item.number for item in action.tellings)),
        works_in=action.told_in(fails=False), fails_in=action.told_in(fails=True),
        cost=next((cost for cost in costs if cost), None),
        votes=sum(voted.get(key, 0) for key in keys), reactions=sum(liked.get(key, 0) for key in keys),
        superseded_by=_needless(fix),
    )  # fmt: skip


def _needless(fix: FixView | None) -> str | None:
    if fix is None or fix.state != "fixed" or not fix.released_in:
        return None
    return f"{fix.pr} in {fix.released_in}" if fix.pr else fix.released_in
