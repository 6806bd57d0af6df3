"""What grows: the test against an independent library, and its errors under chance."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control, poisson

from app.knowledge.cluster.timeline import Q_MAX, Growth, growths, weeks_covered
from app.knowledge.iso_week import IsoWeek
from app.store.derived.weeks import Opened

WEEK = IsoWeek.parse("2026-W15")


def grown(week: Mapping[str, int], before: Mapping[str, int]) -> list[Growth]:
    """The growth of clusters with so many reports in the week, and in the eight weeks before."""
    counts = [(WEEK.start, week), (WEEK.shifted(-4).start, before)]
    reports = [(at, key) for at, of in counts for key, count in of.items() for _ in range(count)]
    return growths([Opened(n, at, "crash", key) for n, (at, key) in enumerate(reports)], WEEK)


@given(
    week=st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 30)),
    before=st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 60), min_size=1),
)
def test_growth_is_that_of_scipy_over_all_clusters(week: dict[str, int], before: dict[str, int]) -> None:
    found = {one.id: one for one in grown(week, before)}
    ids = sorted(found)
    means = [max(before.get(key, 0), 1) / 8 for key in ids]
    chances = [float(poisson.sf(week.get(key, 0) - 1, mean)) for key, mean in zip(ids, means, strict=True)]

    assert ids == sorted({*before, *(key for key, count in week.items() if count)})
    assert [found[key].mean_before for key in ids] == means
    assert [found[key].p for key in ids] == pytest.approx(chances, rel=1e-9, abs=1e-15)
    adjusted = false_discovery_control(chances)
    assert [found[key].q for key in ids] == pytest.approx(list(adjusted), rel=1e-8, abs=1e-14)
    assert [found[key].is_growing for key in ids] == [
        week.get(key, 0) >= 3 and q < 0.01 for key, q in zip(ids, [found[key].q for key in ids], strict=True)
    ]


def test_two_reports_are_no_growth_however_rare_the_failure_was() -> None:
    found = grown({"a": 2, "b": 400}, {})

    assert {one.id: one.is_growing for one in found} == {"a": False, "b": True}


def test_other_issues_and_other_weeks_do_not_count() -> None:
    opened = [
        Opened(1, WEEK.start, "none", "a"),
        Opened(2, WEEK.start, "crash", None),
        Opened(3, WEEK.end, "crash", "a"),
        Opened(4, WEEK.shifted(-8).start - timedelta(seconds=1), "crash", "a"),
    ]

    assert growths(opened, WEEK) == []


def test_steady_failures_hardly_ever_seem_to_grow() -> None:
    """Reports at steady rates, 300 weeks: a named one is false, and its share of the weeks must stay small."""
    chance = random.Random(20260406)
    rates = [0.02] * 300 + [0.3] * 60 + [1.5] * 10 + [6.0] * 2

    def drawn(rate: float) -> int:
        return sum(chance.random() < rate / 40 for _ in range(40))

    false_alarms = 0
    for _ in range(100):
        before = {str(place): sum(drawn(rate) for _ in range(8)) for place, rate in enumerate(rates)}
        week = {str(place): drawn(rate) for place, rate in enumerate(rates)}
        false_alarms += any(one.is_growing for one in grown(week, before))

    assert false_alarms / 100 <= 5 * Q_MAX


def test_weeks_before_are_counted_from_the_first_issue_on() -> None:
    assert weeks_covered(None, WEEK) == 0
    assert weeks_covered(WEEK.start, WEEK) == 0
    assert weeks_covered(WEEK.shifted(-3).end - timedelta(seconds=1), WEEK) == 3
    assert weeks_covered(WEEK.shifted(-90).start, WEEK) == 8
