"""The lift of an architecture in a cluster: the test's figures, and when nothing is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import fisher_exact

from app.knowledge.cluster.spread import REPORTS_MIN, architecture_lifts, fisher_two_sided

CARDS = {"Hopper": "H100", "Ampere": "A100"}


def named(cluster: str, start: int, **counts: int) -> list[tuple[str, int, str]]:
    """Reports of a cluster by architecture, numbered from `start`."""
    cards = [CARDS[name] for name, count in counts.items() for _ in range(count)]
    return [(cluster, start + at, card) for at, card in enumerate(cards)]


def test_an_architecture_that_stands_out_is_told_with_its_lift() -> None:
    rest = named("rest", 100, Hopper=20, Ampere=80)
    (hopper, ampere) = architecture_lifts([*named("one", 1, Hopper=10), *rest], "one")

    assert (hopper.architecture, hopper.reports, hopper.of) == ("Hopper", 10, 10)
    assert (hopper.all_reports, hopper.all_of, hopper.lift) == (30, 110, 3.67)
    assert hopper.by_chance == "more_often"
    assert hopper.p is not None
    assert hopper.p < 0.001
    assert (ampere.reports, ampere.by_chance) == (0, "less_often")


def test_below_five_reports_nothing_is_said_of_an_architecture() -> None:
    few = REPORTS_MIN - 1
    lifts = architecture_lifts([*named("one", 1, Hopper=few), *named("rest", 100, Ampere=80)], "one")

    assert [(item.architecture, item.reports, item.by_chance) for item in lifts] == [
        ("Hopper", few, "too_few")
    ]
    assert (lifts[0].lift, lifts[0].p) == (None, None)


def test_a_share_like_everywhere_is_no_finding() -> None:
    lifts = architecture_lifts(
        [*named("one", 1, Hopper=6, Ampere=6), *named("rest", 100, Hopper=50, Ampere=50)], "one"
    )

    assert {item.by_chance for item in lifts} == {"no_difference"}
    assert {item.lift for item in lifts} == {1.0}


def test_a_report_on_two_cards_of_one_architecture_counts_once_and_unknown_cards_not_at_all() -> None:
    rows = [("one", 1, "H100"), ("one", 1, "H200"), ("one", 1, "A100"), ("one", 2, "some card")]

    assert {(item.architecture, item.reports, item.of) for item in architecture_lifts(rows, "one")} == {
        ("Hopper", 1, 1),
        ("Ampere", 1, 1),
    }


def test_a_cluster_whose_reports_name_no_hardware_has_no_table() -> None:
    assert architecture_lifts(named("rest", 1, Hopper=3), "one") == ()


@st.composite
def tables(draw: st.DrawFn) -> tuple[int, int, int, int]:
    a, b, c, d = (draw(st.integers(0, 400)) for _ in range(4))
    return a, a + b, a + c, a + b + c + d


@given(tables())
def test_the_exact_test_agrees_with_scipy(table: tuple[int, int, int, int]) -> None:
    here, of, everywhere, total = table
    theirs = fisher_exact([[here, of - here], [everywhere - here, total - of - everywhere + here]])

    assert fisher_two_sided(*table) == pytest.approx(theirs.pvalue, rel=1e-6, abs=1e-12)
