"""The bounded neighbourhoods in which issues are clustered.

What is tied, directly or by way of others, is clustered together: a cell. A cell of more than `CELL_MAX`
issues is cut: only ties of a higher level count there, so that the cost of a new issue stays bounded however
many reports there are. The cells follow from the ties alone, not from the order in which issues came.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

CELL_MAX = 64
LEVELS = (0.0, 0.78, 0.86, 0.92, 0.96, 1.0)
"""Strengths from which a tie counts; the last level holds people's words only and is never cut."""

Neighbours = Mapping[int, float]
"""The issues that an issue is tied to, each with the tie's strength."""
Fetch = Callable[[Collection[int]], Mapping[int, Neighbours]]
"""The neighbours of each of these issues."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Issues that are clustered together, and the strength from which their ties count."""

    numbers: frozenset[int]
    level: float


def find_cells(seeds: Iterable[int], fetch: Fetch, *, most: int = CELL_MAX) -> tuple[Cell, ...]:
    """The cells that these issues are in, by their lowest number.

    Args:
        seeds: numbers of issues.
        fetch: tells the neighbours of issues; asked for all that are needed at once.
        most: how many issues a cell may have.
    """
    known: dict[int, Neighbours] = {}

    def learn(numbers: Collection[int]) -> None:
        missing = set(numbers) - known.keys()
        if missing:
            told = fetch(sorted(missing))
            known.update({number: told.get(number, {}) for number in missing})

    found: set[Cell] = set()
    open_seeds = set(seeds)
    for level in LEVELS:
        limit = None if level == LEVELS[-1] else most
        reached = _spread(open_seeds, level, limit, known, learn)
        found |= {Cell(numbers, level) for numbers in reached.values()}
        open_seeds -= reached.keys()
    return tuple(sorted(found, key=lambda cell: min(cell.numbers)))


def _spread(
    seeds: Collection[int],
    level: float,
    most: int | None,
    known: Mapping[int, Neighbours],
    learn: Callable[[Collection[int]], None],
) -> dict[int, frozenset[int]]:
    """What each seed reaches at this level; a seed that reaches too many is left out.

    All seeds take each step together, so that what they need is asked for at once.
    """
    seen = {seed: {seed} for seed in seeds}
    edge = {seed: {seed} for seed in seeds}
    done: dict[int, frozenset[int]] = {}
    while edge:
        learn({number for numbers in edge.values() for number in numbers})
        for seed in list(edge):
            tied = {
                other
                for number in edge[seed]
                for other, strength in known[number].items()
                if strength >= level and other not in seen[seed]
            }
            seen[seed] |= tied
            if most is not None and len(seen[seed]) > most:
                del edge[seed]
            elif tied:
                edge[seed] = tied
            else:
                done[seed] = frozenset(seen[seed])
                del edge[seed]
    return done
