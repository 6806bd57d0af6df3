"""Which issues report one failure: tied issues put together under constraints.

Constrained agglomeration in one fixed order, so that the result depends on what is tied and on nothing else:

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

from app.match.clusters.ties import Member, why_apart
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
