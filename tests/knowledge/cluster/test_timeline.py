"""What grows: the rule at its edges, and its errors under chance."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import timedelta

import pytest

from app.knowledge.cluster.timeline import growths, weeks_covered
from app.knowledge.iso_week import IsoWeek
from app.store.derived.weeks import Opened

WEEK = IsoWeek.parse("2026-W15")


def grown(week: Mapping[str, int], before: Mapping[str, int]) -> set[str]:
    """The growing clusters, of so many reports in the week and in the eight weeks before."""
    counts = [(WEEK.start, week), (WEEK.shifted(-4).start, before)]
    reports = [(at, key) for at, of in counts for key, count in of.items() for _ in range(count)]
    found = growths([Opened(n, at, "crash", key) for n, (at, key) in enumerate(reports)], WEEK)
    assert [(one.reports, one.before) for one in found] == [
        (week[one.id], before.get(one.id, 0)) for one in found
    ]
    return {one.id for one in found}


@pytest.mark.parametrize(("before", "at_most"), [(0, 3), (8, 6), (16, 9), (40, 18)])
def test_more_than_three_times_the_mean_plus_three_is_growth(before: int, at_most: int) -> None:
    assert grown({"a": at_most, "b": at_most + 1}, {"a": before, "b": before}) == {"b"}


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
        false_alarms += bool(grown(week, before))

    assert false_alarms / 100 <= 0.05


def test_weeks_before_are_counted_from_the_first_issue_on() -> None:
    assert weeks_covered(None, WEEK) == 0
    assert weeks_covered(WEEK.start, WEEK) == 0
    assert weeks_covered(WEEK.shifted(-3).end - timedelta(seconds=1), WEEK) == 3
    assert weeks_covered(WEEK.shifted(-90).start, WEEK) == 8
