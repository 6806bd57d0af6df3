"""The tests for counts, each against scipy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control, fisher_exact, poisson

from app.knowledge.statistics import benjamini_hochberg, fisher_two_sided, poisson_tail


@given(count=st.integers(0, 400), mean=st.floats(1e-3, 300))
def test_the_tail_is_that_of_scipy(count: int, mean: float) -> None:
    expected = float(poisson.sf(count - 1, mean))

    assert poisson_tail(count, mean) == pytest.approx(expected, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(
    ("count", "mean", "chance"), [(0, 2.0, 1.0), (3, 0.0, 0.0), (0, 0.0, 1.0), (1, 1e-9, 1e-9)]
)
def test_the_tail_at_its_ends(count: int, mean: float, chance: float) -> None:
    assert poisson_tail(count, mean) == pytest.approx(chance)


@st.composite
def tables(draw: st.DrawFn) -> tuple[int, int, int, int]:
    a, b, c, d = (draw(st.integers(0, 400)) for _ in range(4))
    return a, a + b, a + c, a + b + c + d


@given(tables())
def test_the_exact_test_agrees_with_scipy(table: tuple[int, int, int, int]) -> None:
    here, of, everywhere, total = table
    theirs = fisher_exact([[here, of - here], [everywhere - here, total - of - everywhere + here]])

    assert fisher_two_sided(*table) == pytest.approx(theirs.pvalue, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("table", [(3, 2, 3, 9), (0, 5, 5, 8), (-1, 5, 5, 80)])
def test_four_numbers_that_make_no_table_are_refused(table: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="no table"):
        fisher_two_sided(*table)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_the_correction_agrees_with_scipy(chances: list[float]) -> None:
    assert benjamini_hochberg(chances) == pytest.approx(list(false_discovery_control(chances)))


def test_no_chances_are_none() -> None:
    assert benjamini_hochberg([]) == []
