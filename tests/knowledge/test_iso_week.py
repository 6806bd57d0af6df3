"""ISO weeks: how they are written, where years begin, and which do not exist."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from app.errors import WeekError
from app.knowledge.iso_week import IsoWeek


@pytest.mark.parametrize(
    ("text", "start", "days"),
    [
        ("2026-W15", "2026-04-06", "6 – 12 April 2026"),
        ("2026-W01", "2025-12-29", "29 December 2025 – 4 January 2026"),
        ("2026-W53", "2026-12-28", "28 December 2026 – 3 January 2027"),
        ("2026-W18", "2026-04-27", "27 April – 3 May 2026"),
    ],
)
def test_a_week_begins_on_monday_at_midnight_utc(text: str, start: str, days: str) -> None:
    week = IsoWeek.parse(text)

    assert str(week) == text
    assert week.start == datetime.fromisoformat(f"{start}T00:00:00+00:00")
    assert week.end - week.start == timedelta(days=7)
    assert week.days == days


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2025-W53", "2025 has no week 53: its weeks go from W01 to W52."),
        ("2026-W00", "W01 to W53"),
        ("2026-W54", "no week 54"),
        ("1999-W01", "1999 is out of range"),
        ("3000-W01", "out of range"),
        ("2026-15", "like 2026-W46"),
        ("2026W15", "no ISO week"),
        ("", "no ISO week"),
        ("2026-W1", "no ISO week"),
        ("２０２６-W15", "no ISO week"),
    ],
)
def test_what_is_no_week_is_refused_with_what_is_allowed(text: str, words: str) -> None:
    with pytest.raises(WeekError, match=words):
        IsoWeek.parse(text)


@pytest.mark.parametrize(
    ("moment", "week"),
    [
        (datetime(2026, 4, 6, tzinfo=UTC), "2026-W15"),
        (datetime(2026, 4, 5, 23, 59, 59, tzinfo=UTC), "2026-W14"),
        (datetime(2026, 4, 6, 1, tzinfo=timezone(timedelta(hours=2))), "2026-W14"),
        (datetime(2027, 1, 1, tzinfo=UTC), "2026-W53"),
        (datetime(2025, 12, 29), "2026-W01"),  # noqa: DTZ001 - one without a zone is UTC
    ],
)
def test_a_moment_is_in_the_week_of_its_day_in_utc(moment: datetime, week: str) -> None:
    assert str(IsoWeek.of(moment)) == week


def test_weeks_are_counted_across_years() -> None:
    week = IsoWeek.parse("2027-W01")

    assert str(week.shifted(-1)) == "2026-W53"
    assert str(week.shifted(-53).shifted(53)) == "2027-W01"
    assert week.shifted(-1) < week
