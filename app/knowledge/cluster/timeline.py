"""When a failure was reported: the timeline of its reports, and whether they go on after it was closed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta

from app.extract.versions import is_before, ordered
from app.knowledge.cluster.shapes import ClosedButAlive, Period, Timeline, TimelineBucket
from app.knowledge.fix.shapes import FixView
from app.knowledge.version.issues import Candidate

BUCKETS_MAX = 26
_DAYS: dict[Period, int] = {"week": 7, "month": 31, "quarter": 92, "year": 366}


def timeline(moments: Iterable[datetime | None]) -> Timeline | None:
    """Reports by week, month, quarter or year: the finest that gives no more than 26 bars. UTC dates."""
    days = sorted(moment.astimezone(UTC).date() for moment in moments if moment is not None)
    if not days:
        return None
    span = (days[-1] - days[0]).days
    unit: Period = next(
        (unit for unit, length in _DAYS.items() if span <= length * (BUCKETS_MAX - 1)), "year"
    )
    counts = Counter(_START[unit](day) for day in days)
    starts = [min(counts)]
    while starts[-1] < max(counts):
        starts.append(_START[unit](starts[-1] + timedelta(days=_DAYS[unit])))
    buckets = (TimelineBucket(start=at, label=_LABEL[unit](at), reports=counts[at]) for at in starts)
    return Timeline(unit=unit, buckets=tuple(buckets))


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _month(day: date) -> date:
    return day.replace(day=1)


def _quarter(day: date) -> date:
    return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)


def _year(day: date) -> date:
    return day.replace(month=1, day=1)


_START: dict[Period, Callable[[date], date]] = {
    "week": _monday,
    "month": _month,
    "quarter": _quarter,
    "year": _year,
}
_LABEL: dict[Period, Callable[[date], str]] = {
    "week": lambda day: f"{day.isocalendar().year}-W{day.isocalendar().week:02}",
    "month": lambda day: f"{day:%Y-%m}",
    "quarter": lambda day: f"{day.year} Q{(day.month + 2) // 3}",
    "year": lambda day: f"{day.year}",
}


def closed_but_alive(
    canonical: Candidate | None, reports: Sequence[Candidate], fix: FixView | None
) -> ClosedButAlive | None:
    """What came after the canonical issue was closed; None while it is open, or if nothing came.

    Reports from before the release that has the fix do not count: they say nothing against it.
    """
    if canonical is None or canonical.issue.state != "closed" or canonical.issue.closed_at is None:
        return None
    closed_at = canonical.issue.closed_at
    later = [one for one in reports if one.issue.created_at and one.issue.created_at > closed_at]
    released = fix.released_in if fix is not None and fix.state == "fixed" else None
    counted = [one for one in later if not is_before(one.facts.versions.get("vllm"), released)]
    if not counted:
        return None
    newest = max(counted, key=lambda one: (one.issue.created_at or closed_at, one.issue.number))
    return ClosedButAlive(
        closed_at=closed_at,
        state_reason=canonical.issue.state_reason,
        reports_since=len(counted),
        newest=newest.issue.number,
        newest_at=newest.issue.created_at,
        reason=_reason(canonical, counted, len(later) - len(counted), released),
    )


def _reason(canonical: Candidate, counted: Sequence[Candidate], old: int, released: str | None) -> str:
    how = _HOW.get(canonical.issue.state_reason or "", "closed")
    came = "one report came" if len(counted) == 1 else f"{len(counted)} reports came"
    told = f"#{canonical.issue.number} was {how}; {came} after that"
    if released is not None:
        with_it = [one for one in counted if ordered(one.facts.versions.get("vllm")) is not None]
        told += f", {len(with_it)} of them from a version that has the fix" if with_it else ""
    if old:
        told += f" ({old} more from versions before {released})"
    return told + "."


_HOW = {
    "not_planned": "closed as not planned",
    "completed": "closed as completed",
    "duplicate": "closed as a duplicate",
    "stale": "closed as stale",
}
