"""The issue that shows a failure best, and where chains of duplicates lead.

The canonical issue of a cluster is the one with the most evidence, not the oldest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from app.extract.facts import Facts
from app.store.derived.clusters import FailureTraits

COMMENTS_MOST = 20
REACTIONS_MOST = 10
REPEATED_POINTS = 3
"""For each issue that is a duplicate of it, as people say."""

ChainEnd = Literal["alive", "circular", "dead"]


def evidence_points(facts: Facts, comments: int, reactions: int) -> int:
    """How much evidence an issue holds, in points."""
    works = [item for item in facts.workarounds if item.outcome == "works"]
    confirmed = sum(min(item.confirmed_by, 5) for item in facts.workarounds)
    fix = 0 if facts.fix is None else 8 if facts.fix.pr else 2
    error = facts.error
    log = 0 if error is None else 2 + (2 if error.frame else 0) + (1 if facts.signatures else 0)
    known = sum(map(bool, (facts.models, facts.gpus, facts.backends, facts.versions, facts.reproduction)))
    talk = min(comments, COMMENTS_MOST) // 2 + min(reactions, REACTIONS_MOST)
    return 4 * len(works[:3]) + 3 * confirmed + fix + log + known + talk


def choose_canonical(members: Sequence[FailureTraits]) -> FailureTraits:
    """The member that shows the failure best.

    One that is gone, or closed as a duplicate of an issue, is chosen only where all are.
    """
    repeated = [target for member in members for target in member.repeats]

    def rank(member: FailureTraits) -> tuple[bool, bool, int, int]:
        points = member.evidence + REPEATED_POINTS * repeated.count(member.number)
        return member.gone, member.closed and bool(member.repeats), -points, member.number

    return min(members, key=rank)


def follow_chain(
    number: int, repeats: Mapping[int, int], alive: Collection[int]
) -> tuple[tuple[int, ...], ChainEnd]:
    """Where "duplicate of" leads from an issue.

    Args:
        number: the issue to start from.
        repeats: each issue and the one it is a duplicate of.
        alive: the issues that are stored and not gone.

    Returns:
        The numbers in the order in which each names the next, and how they end. `alive`: with an issue that
        repeats none; `circular`: the last number stands in it before; `dead`: with one gone or not stored.
    """
    chain = [number]
    while (target := repeats.get(chain[-1])) is not None:
        chain.append(target)
        if target in chain[:-1]:
            return tuple(chain), "circular"
        if target not in alive:
            break
    return tuple(chain), "alive" if chain[-1] in alive else "dead"
