"""The neighbourhoods in which issues are clustered: closed, bounded, the same whoever asks."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hypothesis import given
from hypothesis import strategies as st

from app.match.clusters.components import CELL_MAX, LEVELS, Cell, find_cells

Graph = dict[int, dict[int, float]]
TIES = st.dictionaries(
    st.tuples(st.integers(1, 90), st.integers(1, 90)).filter(lambda pair: pair[0] < pair[1]),
    st.sampled_from([0.62, 0.79, 0.88, 0.93, 0.97, 1.0]),
    max_size=150,
)


def graph(ties: Mapping[tuple[int, int], float]) -> Graph:
    found: Graph = {}
    for (a, b), strength in ties.items():
        found.setdefault(a, {})[b] = strength
        found.setdefault(b, {})[a] = strength
    return found


def cells_of(told: Graph, *seeds: int, most: int = CELL_MAX) -> tuple[Cell, ...]:
    return find_cells(seeds, lambda asked: {number: told.get(number, {}) for number in asked}, most=most)


def chain(first: int, last: int, strength: float) -> dict[tuple[int, int], float]:
    return {(number, number + 1): strength for number in range(first, last)}


def test_what_is_tied_by_way_of_others_is_one_cell() -> None:
    assert cells_of(graph(chain(1, 4, 0.7)), 2) == (Cell(frozenset({1, 2, 3, 4}), LEVELS[0]),)


def test_an_issue_without_ties_is_a_cell_of_its_own() -> None:
    assert cells_of({}, 5) == (Cell(frozenset({5}), LEVELS[0]),)


def test_a_cell_that_is_too_large_is_cut_at_its_weak_ties() -> None:
    told = graph(chain(1, 40, 0.9) | {(40, 41): 0.7} | chain(41, 80, 0.9))

    assert cells_of(told, 1, 80) == (
        Cell(frozenset(range(1, 41)), LEVELS[1]),
        Cell(frozenset(range(41, 81)), LEVELS[1]),
    )


def test_what_people_said_is_never_cut() -> None:
    [cell] = cells_of(graph(chain(1, 3 * CELL_MAX, 1.0)), 7)

    assert len(cell.numbers) == 3 * CELL_MAX


def test_no_more_is_read_of_a_cell_that_is_too_large_than_its_limit_and_a_step() -> None:
    told, read = graph(chain(1, 5_000, 0.7)), set()

    def fetch(asked: Collection[int]) -> Graph:
        read.update(asked)
        return {number: told.get(number, {}) for number in asked}

    find_cells([2_500], fetch)
    assert len(read) <= CELL_MAX + 2


@given(TIES, st.integers(2, 12))
def test_cells_part_the_issues_whoever_asks(ties: dict[tuple[int, int], float], most: int) -> None:
    told = graph(ties)
    found = cells_of(told, *told, most=most)
    each = {number: cells_of(told, number, most=most) for number in told}

    assert sorted(number for cell in found for number in cell.numbers) == sorted(told)
    assert all(each[number] == (cell,) for cell in found for number in cell.numbers)
    assert all(len(cell.numbers) <= most or cell.level == LEVELS[-1] for cell in found)
