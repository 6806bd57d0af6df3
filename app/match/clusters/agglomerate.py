"""Which issues report one failure: the ties between some issues, put together under constraints.

In: `Member`s, the ties between them, what people judged. Out: groups of numbers, each issue in just one.
Constrained agglomeration, in one fixed order, so that the result depends on what is tied and on nothing else:

1. People's judgements. `different` keeps two apart, always, also by way of third issues. `same` joins, the
   newest first; one that would bring together what is judged different is overruled, and told.
2. Duplicates, as people said: they join unless a judgement keeps the two apart.
3. Ties of likeness, the strongest first: two blocks join if their issues are alike on the whole (average
   linkage), no pair of them is plainly unlike, and few pairs contradict each other (`ties.why_apart`). A
   block is what likeness joined: how unlike the issues are that people joined with it is their affair.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from app.match.clusters.ties import Member, claims_of, why_apart

MEAN_LEAST = 0.6
"""Mean likeness that the pairs between two groups need."""
PAIR_LEAST = 0.4
"""Likeness that each of these pairs needs."""
APART_MOST = 0.1
"""Share of these pairs that may contradict each other."""

SAID_DUPLICATE = 1.0
"""Strength of a tie that people made; likeness is below."""

Pair = tuple[int, int]
"""The lower number first."""
Scores = Callable[[int, Sequence[int]], Sequence[float]]
"""The likeness of one issue with each of others, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Tie:
    """Two issues that may report one failure; of strength `SAID_DUPLICATE` if people say so."""

    a: int
    b: int
    strength: float


@dataclass(frozen=True, slots=True)
class Word:
    """A judgement in force."""

    a: int
    b: int
    verdict: Literal["same", "different"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A tie between two issues that ended in two groups, and why."""

    a: int
    b: int
    reason: str


@dataclass(frozen=True, slots=True)
class Clustering:
    """Groups of numbers, each ascending; the ties that were refused; judgements that could not be obeyed."""

    groups: tuple[tuple[int, ...], ...]
    refused: tuple[Refusal, ...] = ()
    overruled: tuple[Word, ...] = ()


def cluster_issues(
    members: Mapping[int, Member], ties: Sequence[Tie], words: Sequence[Word], scores: Scores
) -> Clustering:
    """Put issues into groups.

    Args:
        members: by number.
        ties: between members; in any order.
        words: judgements of members, the newest first.
        scores: asked only where two groups may join by likeness.
    """
    groups = _Groups(members, {(w.a, w.b) for w in words if w.verdict == "different"})
    same = [word for word in words if word.verdict == "same"]
    overruled = tuple(word for word in same if groups.join(word.a, word.b) is not None)
    refused: list[Refusal] = []
    for tie in sorted(ties, key=lambda tie: (-tie.strength, tie.a, tie.b)):
        blocks = groups.block[tie.a], groups.block[tie.b]
        is_likeness = tie.strength < SAID_DUPLICATE
        reason = _why_unlike(members, *blocks, scores) if is_likeness and blocks[0] is not blocks[1] else None
        reason = reason or groups.join(tie.a, tie.b)
        if reason is not None:
            refused.append(Refusal(tie.a, tie.b, reason))
        elif is_likeness:
            _unite(groups.block, *blocks)
    last = tuple(item for item in refused if groups.of[item.a] is not groups.of[item.b])
    return Clustering(groups.as_tuples(), last, overruled)


class _Groups:
    """Groups that only grow, the blocks in them, and the pairs that people want in two groups."""

    def __init__(self, members: Mapping[int, Member], different: Collection[Pair]) -> None:
        self.of: dict[int, list[int]] = {number: [number] for number in members}
        self.block: dict[int, list[int]] = {number: [number] for number in members}
        self._different = {*different, *((b, a) for a, b in different)}

    def join(self, a: int, b: int) -> str | None:
        """Bring two issues together with their groups; or tell which judgement forbids it."""
        one, two = self.of[a], self.of[b]
        pairs = product(one, two) if self._different else ()
        apart = next((pair for pair in pairs if pair in self._different), None)
        if apart is not None:
            return f"#{apart[0]} and #{apart[1]} are judged different"
        _unite(self.of, one, two)
        return None

    def as_tuples(self) -> tuple[tuple[int, ...], ...]:
        return tuple(sorted({tuple(group) for group in self.of.values()}))


def _unite(of: dict[int, list[int]], one: list[int], two: list[int]) -> None:
    if one is two:
        return
    one.extend(two)
    one.sort()
    for number in two:
        of[number] = one


def _why_unlike(
    members: Mapping[int, Member], one: Sequence[int], two: Sequence[int], scores: Scores
) -> str | None:
    few, many = sorted((one, two), key=lambda group: (len(group), group))
    rows = {number: scores(number, many) for number in few}
    told = [score for row in rows.values() for score in row]
    if min(told) < PAIR_LEAST:
        paired = ((a, b, score) for a, row in rows.items() for b, score in zip(many, row, strict=True))
        return next(f"#{a} and #{b} are not alike" for a, b, score in paired if score < PAIR_LEAST)
    if round(sum(told) / len(told), 6) < MEAN_LEAST:
        return f"the reports are alike by {sum(told) / len(told):.2f} on average, less than {MEAN_LEAST}"
    others = [members[number] for number in many]
    reasons = [
        reason
        for number in few
        for other, shared in zip(others, claims_of(members[number], others).messages, strict=True)
        if (reason := why_apart(members[number], other, float(shared)))
    ]
    return reasons[0] if len(reasons) > APART_MOST * len(told) else None
