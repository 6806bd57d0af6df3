"""Which issues report one failure, which of them shows it best, and where chains of duplicates lead.

Constrained agglomeration in one fixed order, so that the result depends only on the ties:

1. People's judgements. `different` keeps two apart, always, also by way of third issues. `same` joins, the
   newest first, unless it would bring together what is judged different.
2. Duplicates that people named: they join unless a judgement keeps the two apart.
3. Ties of likeness, the strongest first: two blocks join if their issues are alike on the whole (average
   linkage), no pair of them is plainly unlike, and few pairs contradict each other (`ties.why_apart`). A
   block is what likeness joined; issues that people joined with it are not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import product
from typing import Literal

from app.extract.facts import Facts
from app.match.clusters.ties import Member, why_apart
from app.store.derived.clusters import FailureTraits
from app.store.records import Pair

MEAN_LEAST = 0.6
"""Mean likeness that the pairs between two blocks need."""
PAIR_LEAST = 0.4
"""Likeness that each of these pairs needs."""
APART_MOST = 0.1
"""Share of these pairs that may contradict each other."""
COMPARED_MAX = 32
"""Issues of a block that are compared, evenly spread: keeps the cost of joining large blocks bounded."""

BY_PEOPLE = 1.0
"""Strength of a tie that people made; likeness is below."""

Scores = Callable[[int, Sequence[int]], Sequence[float]]
"""The likeness of one issue with each of others, 0 to 1."""


def cluster_issues(
    members: Mapping[int, Member],
    ties: Mapping[Pair, float],
    same: Sequence[Pair],
    different: Collection[Pair],
    scores: Scores,
) -> list[tuple[int, ...]]:
    """Put issues into groups; each group ascending, and each issue in just one.

    Args:
        members: by number.
        ties: pairs of members with the strength of their tie, `BY_PEOPLE` if people made it.
        same: pairs of members judged to be the same failure, the newest judgement first.
        different: pairs judged to be different failures.
        scores: called only where two blocks may join by likeness.
    """
    group_of = {number: [number] for number in members}
    block_of = {number: [number] for number in members}

    def may_join(a: int, b: int) -> bool:
        pairs = product(group_of[a], group_of[b]) if different else ()
        return not any((one, two) in different or (two, one) in different for one, two in pairs)

    for a, b in same:
        if may_join(a, b):
            _unite(group_of, a, b)
    for (a, b), strength in sorted(ties.items(), key=lambda tie: (-tie[1], tie[0])):
        if strength >= BY_PEOPLE:
            if may_join(a, b):
                _unite(group_of, a, b)
        elif (
            block_of[a] is not block_of[b]
            and may_join(a, b)
            and _are_alike(members, block_of[a], block_of[b], scores)
        ):
            _unite(group_of, a, b)
            _unite(block_of, a, b)
    return sorted({tuple(sorted(group)) for group in group_of.values()})


def _unite(of: dict[int, list[int]], a: int, b: int) -> None:
    one, two = of[a], of[b]
    if one is not two:
        one.extend(two)
        of.update(dict.fromkeys(two, one))


def _are_alike(members: Mapping[int, Member], one: list[int], two: list[int], scores: Scores) -> bool:
    few, many = sorted((_spread(one), _spread(two)), key=lambda numbers: (len(numbers), numbers))
    found = [score for number in few for score in scores(number, many)]
    if min(found) < PAIR_LEAST or round(sum(found) / len(found), 6) < MEAN_LEAST:
        return False
    apart = sum(why_apart(members[a], members[b]) is not None for a, b in product(few, many))
    return apart <= APART_MOST * len(found)


def _spread(block: list[int]) -> list[int]:
    return sorted(block)[:: -(-len(block) // COMPARED_MAX)]


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
