"""When a failure was reported: the timeline of its reports, and whether they go on after it was closed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta

from app.extract.versions import is_before, ordered
from app.knowledge.cluster.shapes import ClosedButAlive, Period, Timeline, TimelineBucket
from app.knowledge.fix.shapes import FixView
from app.knowledge.version.issues import ListedFailure

BUCKETS_MAX = 26


def _months(length: int) -> Callable[[date], date]:
    """The first day of a day's period of so many months."""
    return lambda day: day.replace(month=(day.month - 1) // length * length + 1, day=1)


_PERIODS: dict[Period, tuple[int, Callable[[date], date], Callable[[date], str]]] = {
    "week": (7, lambda day: day - timedelta(days=day.weekday()), lambda day: f"{day:%G-W%V}"),
    "month": (31, _months(1), lambda day: f"{day:%Y-%m}"),
    "quarter": (92, _months(3), lambda day: f"{day.year} Q{(day.month + 2) // 3}"),
    "year": (366, _months(12), lambda day: f"{day.year}"),
}
"""Each with its most days, the day on which that of a day begins, and its name."""


def timeline(moments: Iterable[datetime | None]) -> Timeline | None:
    """Reports by week, month, quarter or year: the finest that gives no more than 26 bars. UTC dates."""
    days = sorted(moment.astimezone(UTC).date() for moment in moments if moment is not None)
    if not days:
        return None
    span = (days[-1] - days[0]).days
    fitting = (unit for unit, period in _PERIODS.items() if span <= period[0] * (BUCKETS_MAX - 1))
    unit: Period = next(fitting, "year")
    length, start, label = _PERIODS[unit]
    counts = Counter(start(day) for day in days)
    starts = [min(counts)]
    while starts[-1] < max(counts):
        starts.append(start(starts[-1] + timedelta(days=length)))
    buckets = (TimelineBucket(start=at, label=label(at), reports=counts[at]) for at in starts)
    return Timeline(unit=unit, buckets=tuple(buckets))


def closed_but_alive(
    canonical: ListedFailure | None, reports: Sequence[ListedFailure], fix: FixView | None
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


def _reason(
    canonical: ListedFailure, counted: Sequence[ListedFailure], old: int, released: str | None
) -> str:
    how = _HOW.get(canonical.issue.state_reason or "", "closed")
    came = "one report came" if len(counted) == 1 else f"{len(counted)} reports came"
    sentence = f"#{canonical.issue.number} was {how}; {came} after that"
    placed = [one for one in counted if ordered(one.facts.versions.get("vllm")) is not None]
    if released is not None and placed:
        sentence += f", {len(placed)} of them from a version that has the fix"
    if old:
        sentence += f" ({old} more from versions before {released})"
    return sentence + "."


_HOW = {
    "not_planned": "closed as not planned",
    "completed": "closed as completed",
    "duplicate": "closed as a duplicate",
    "stale": "closed as stale",
}
