"""Cluster issues that report one failure, and choose the canonical issue.

Constrained agglomerative clustering in a fixed order, so that the result depends only on the ties:

1. People's judgements. `different` always keeps two issues apart, also transitively. `same` joins them, the
   newest judgement first, unless that would join issues judged different.
2. Duplicates that people named: joined unless a judgement keeps the two apart.
3. Ties by similarity, the strongest first: two blocks join if their mean pair score is high (average
   linkage) and few pairs contradict each other (`are_apart`). A block contains only issues joined by
   similarity; issues that people added to the group are not compared.

A pair with a high score is a tie only if both name one failure (`pairs/one_failure.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import product

from app.extract.facts import Facts
from app.match.pairs.features import PairFeatures
from app.match.pairs.one_failure import are_apart
from app.store.derived.clusters import FailureTraits
from app.store.records import Pair

MEAN_LEAST = 0.6
"""Minimum mean score of the pairs between two blocks."""
APART_MOST = 0.1
"""Maximum share of these pairs that contradict each other."""
COMPARED_MAX = 32
"""Maximum number of issues compared per block, evenly sampled: bounds the cost of joining large blocks."""

BY_PEOPLE = 1.0
"""Strength of a tie made by people; ties by similarity are below."""

Scores = Callable[[int, Sequence[int]], Sequence[float]]
"""Returns the pair scores of one issue with each of the others, 0 to 1."""


def cluster_issues(
    members: Mapping[int, PairFeatures],
    ties: Mapping[Pair, float],
    same: Sequence[Pair],
    different: Collection[Pair],
    scores: Scores,
) -> list[tuple[int, ...]]:
    """Partition issues into groups, each sorted ascending.

    Args:
        ties: pairs of members with the strength of their tie, `BY_PEOPLE` if people made it.
        same: pairs of members judged to be the same failure, the newest judgement first.
        different: pairs judged to be different failures.
        scores: called only when two blocks may join by similarity.
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
            and _may_join_blocks(members, block_of[a], block_of[b], scores)
        ):
            _unite(group_of, a, b)
            _unite(block_of, a, b)
    return sorted({tuple(sorted(group)) for group in group_of.values()})


def _unite(of: dict[int, list[int]], a: int, b: int) -> None:
    one, two = of[a], of[b]
    if one is not two:
        one.extend(two)
        of.update(dict.fromkeys(two, one))


def _may_join_blocks(
    members: Mapping[int, PairFeatures], one: list[int], two: list[int], scores: Scores
) -> bool:
    few, many = sorted((_sample(one), _sample(two)), key=lambda numbers: (len(numbers), numbers))
    found = [score for number in few for score in scores(number, many)]
    if round(sum(found) / len(found), 6) < MEAN_LEAST:
        return False
    apart = sum(are_apart(members[a], members[b]) for a, b in product(few, many))
    return apart <= APART_MOST * len(found)


def _sample(block: list[int]) -> list[int]:
    return sorted(block)[:: -(-len(block) // COMPARED_MAX)]


COMMENTS_MOST = 20
REACTIONS_MOST = 10
REPEATED_POINTS = 3
"""Points for each issue that people closed as a duplicate of this one."""


def evidence_points(facts: Facts, comments: int, reactions: int) -> int:
    """Score how much evidence an issue contains."""
    works = [item for item in facts.workarounds if item.outcome == "works"]
    confirmed = sum(min(item.confirmed_by, 5) for item in facts.workarounds)
    fix = 0 if facts.fix is None else 8 if facts.fix.pr else 2
    error = facts.error
    log = 0 if error is None else 2 + (2 if error.frame else 0) + (1 if facts.signatures else 0)
    known = sum(map(bool, (facts.models, facts.gpus, facts.backends, facts.versions, facts.reproduction)))
    talk = min(comments, COMMENTS_MOST) // 2 + min(reactions, REACTIONS_MOST)
    return 4 * len(works[:3]) + 3 * confirmed + fix + log + known + talk


def choose_canonical(members: Sequence[FailureTraits]) -> FailureTraits:
    """Return the member with the most evidence of the failure, the oldest among equals.

    Deleted issues and closed duplicates are chosen only if there are no others.
    """
    repeated = [target for member in members for target in member.repeats]

    def rank(member: FailureTraits) -> tuple[bool, bool, int, int]:
        points = member.evidence + REPEATED_POINTS * repeated.count(member.number)
        return member.gone, member.closed and bool(member.repeats), -points, member.number

    return min(members, key=rank)
