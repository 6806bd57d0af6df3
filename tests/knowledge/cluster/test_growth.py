"""What grows: the test against an independent library, its errors under chance, and what the store gives it."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control, poisson

from app.knowledge.cluster.growth import (
    Q_MAX,
    data_end,
    growing,
    growths,
    newest_whole_week,
    poisson_tail,
    weeks_covered,
    whole_week,
)
from app.knowledge.iso_week import IsoWeek
from app.store.session import Store
from tests.knowledge.made_clusters import facts_of, group, put, report

WEEK = IsoWeek.parse("2026-W15")


@given(reports=st.integers(0, 400), mean=st.floats(1e-3, 300))
def test_the_tail_is_that_of_scipy(reports: int, mean: float) -> None:
    expected = float(poisson.sf(reports - 1, mean))

    assert poisson_tail(reports, mean) == pytest.approx(expected, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(
    ("reports", "mean", "chance"), [(0, 2.0, 1.0), (3, 0.0, 0.0), (0, 0.0, 1.0), (1, 1e-9, 1e-9)]
)
def test_the_tail_at_its_ends(reports: int, mean: float, chance: float) -> None:
    assert poisson_tail(reports, mean) == pytest.approx(chance)


@given(
    week=st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 30)),
    before=st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 60), min_size=1),
)
def test_growth_is_that_of_scipy_over_all_clusters(week: dict[str, int], before: dict[str, int]) -> None:
    found = {one.cluster_id: one for one in growths(week, before)}
    ids = sorted(found)
    means = [max(before.get(key, 0), 1) / 8 for key in ids]
    chances = [float(poisson.sf(week.get(key, 0) - 1, mean)) for key, mean in zip(ids, means, strict=True)]

    assert ids == sorted({*week, *before})
    assert [found[key].mean for key in ids] == means
    assert [found[key].p for key in ids] == pytest.approx(chances, rel=1e-9, abs=1e-15)
    adjusted = false_discovery_control(chances) if chances else []
    assert [found[key].q for key in ids] == pytest.approx(list(adjusted), rel=1e-8, abs=1e-14)
    assert [found[key].is_growing for key in ids] == [
        week.get(key, 0) >= 3 and q < 0.01 for key, q in zip(ids, [found[key].q for key in ids], strict=True)
    ]


def test_two_reports_are_no_growth_however_rare_the_failure_was() -> None:
    found = growths({"a": 2, "b": 400}, {})

    assert {one.cluster_id: one.is_growing for one in found} == {"a": False, "b": True}


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
        false_alarms += any(one.is_growing for one in growths(week, {k: n for k, n in before.items() if n}))

    assert false_alarms / 100 <= 5 * Q_MAX


def days(count: int, start: datetime) -> list[datetime]:
    return [start + timedelta(hours=9 * place) for place in range(count)]


def put_reports(store: Store, week: int, before: int, *, first: datetime | None = None) -> None:
    """A cluster with reports in the week and before; another one with one report every week."""
    moments = days(week, WEEK.start) + days(before, WEEK.shifted(-3).start)
    records = [(report(n, created_at=at), facts_of(n)) for n, at in enumerate(moments, 100)]
    steady = [
        WEEK.shifted(-back).start + timedelta(days=3) for back in range(12) if first is None or back < 4
    ]
    records += [(report(n, created_at=at), facts_of(n)) for n, at in enumerate(steady, 200)]
    repo_id = put(store, *records)
    group(
        store, repo_id, "s1-aaaaaaaaaaaa", 100, *range(101, 100 + len(moments)), text="ValueError | no room"
    )
    group(store, repo_id, "s1-bbbbbbbbbbbb", 200, *range(201, 200 + len(steady)))


def test_the_growing_cluster_of_a_week_is_told_with_its_numbers(store: Store) -> None:
    put_reports(store, 6, 2)

    page = growing(store, "vllm-project/vllm", WEEK)

    assert (page.week, page.weeks_before, page.tested) == ("2026-W15", 8, 2)
    (item,) = page.items
    assert (item.id, item.reports, item.before, item.mean_before, item.size) == (
        "s1-aaaaaaaaaaaa",
        6,
        2,
        0.25,
        8,
    )
    assert item.p == pytest.approx(float(poisson.sf(5, 0.25)))
    assert item.q == pytest.approx(2 * item.p)
    assert item.numbers == (100, 101, 102, 103, 104, 105)


def test_a_base_of_fewer_than_eight_weeks_tells_no_growth(store: Store) -> None:
    put_reports(store, 6, 2, first=WEEK.shifted(-3).start)

    page = growing(store, "vllm-project/vllm", WEEK)

    assert (page.weeks_before, page.tested, page.items) == (3, 0, ())


def test_nothing_stored_grows_in_no_week(store: Store) -> None:
    page = growing(store, "vllm-project/vllm")

    assert (page.week, page.items) == (None, ())
    assert newest_whole_week(store, "vllm-project/vllm") is None


@pytest.mark.parametrize(
    ("first", "last", "as_of", "week"),
    [
        ("2026-01-01", "2026-04-08", None, "2026-W14"),
        ("2026-01-01", "2026-04-08", "2026-04-09", "2026-W14"),
        ("2026-01-01", "2026-04-08", "2026-04-13", "2026-W15"),
        ("2026-04-07", "2026-04-08", None, "2026-W15"),
        (None, None, "2026-04-13", None),
    ],
)
def test_the_newest_whole_week_is_the_last_that_the_data_tells_to_its_end(
    first: str | None, last: str | None, as_of: str | None, week: str | None
) -> None:
    def moment(text: str | None) -> datetime | None:
        return datetime.fromisoformat(text).replace(tzinfo=UTC) if text else None

    found = whole_week(moment(first), moment(last), moment(as_of))

    assert (str(found) if found else None) == week


def test_weeks_before_are_counted_from_the_first_issue_on() -> None:
    assert weeks_covered(None, WEEK) == 0
    assert weeks_covered(WEEK.start, WEEK) == 0
    assert weeks_covered(WEEK.shifted(-3).end - timedelta(seconds=1), WEEK) == 3
    assert weeks_covered(WEEK.shifted(-90).start, WEEK) == 8
    assert data_end(WEEK.start, None) == WEEK.start
