"""The issue that shows a failure best, and where chains of duplicates lead.

The canonical issue of a cluster is the one with the most evidence, not the oldest: it tells a reader most.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from app.extract.facts import Facts

COMMENTS_MOST = 20
REACTIONS_MOST = 10
REPEATED_POINTS = 3
"""For each issue that is said to be its duplicate."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What an issue is worth to a reader.

    Attributes:
        evidence: points, by `evidence_points`.
        is_closed, is_gone: as GitHub has it.
        repeats: the issues it is said to be a duplicate of.
    """

    number: int
    evidence: int
    is_closed: bool = False
    is_gone: bool = False
    repeats: tuple[int, ...] = ()


ChainEnd = Literal["alive", "circular", "dead"]


@dataclass(frozen=True, slots=True)
class Chain:
    """Where "duplicate of" leads from an issue.

    Attributes:
        numbers: in the order in which each names the next, the first one being asked for.
        end: `alive`: an issue that repeats none; `circular`: the last number stands in it before; `dead`: the
            last one is gone or not stored.
    """

    numbers: tuple[int, ...]
    end: ChainEnd


def evidence_points(facts: Facts, comments: int, reactions: int) -> int:
    """How much an issue tells who reads it for the first time, in points."""
    works = [item for item in facts.workarounds if item.outcome == "works"]
    confirmed = sum(min(item.confirmed_by, 5) for item in facts.workarounds)
    fix = 0 if facts.fix is None else 8 if facts.fix.pr else 2
    error = facts.error
    log = 0 if error is None else 2 + (2 if error.frame else 0) + (1 if facts.signatures else 0)
    told = sum(map(bool, (facts.models, facts.gpus, facts.backends, facts.versions, facts.reproduction)))
    talk = min(comments, COMMENTS_MOST) // 2 + min(reactions, REACTIONS_MOST)
    return 4 * len(works[:3]) + 3 * confirmed + fix + log + told + talk


def choose_canonical(members: Sequence[Standing]) -> int:
    """The number of the member that shows the failure best.

    One that is gone, or closed as a duplicate of an issue, is chosen only where all are.
    """
    repeated = [target for member in members for target in member.repeats]

    def rank(member: Standing) -> tuple[bool, bool, int, int]:
        points = member.evidence + REPEATED_POINTS * repeated.count(member.number)
        return member.is_gone, member.is_closed and bool(member.repeats), -points, member.number

    return min(members, key=rank).number


def follow_chain(number: int, repeats: Mapping[int, Sequence[int]], alive: Collection[int]) -> Chain:
    """Where the duplicates lead from an issue.

    Args:
        number: the issue to start from.
        repeats: each issue and those it is said to repeat; of several, one that is alive is followed.
        alive: the issues that are stored and not gone.
    """
    told = [number]
    while targets := repeats.get(told[-1]):
        following = next((target for target in targets if target in alive), targets[0])
        told.append(following)
        if following in told[:-1]:
            return Chain(tuple(told), "circular")
        if following not in alive:
            return Chain(tuple(told), "dead")
    return Chain(tuple(told), "alive" if told[-1] in alive else "dead")
