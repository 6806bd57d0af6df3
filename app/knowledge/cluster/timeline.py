"""Reports over time: counts by period, reports after the issue was closed, and growing clusters.

A cluster grows if it has more reports in a week than three times the weekly mean of the eight weeks before,
plus three: at any mean, chance alone rarely brings that many.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal

from pydantic import Field
from sqlalchemy.orm import Session

from app.extract.facts import Frozen
from app.extract.redact import mask_secrets
from app.extract.versions import is_before, ordered
from app.knowledge.fix.shapes import FixView
from app.knowledge.iso_week import IsoWeek
from app.knowledge.version.issues import ListedFailure
from app.store.derived.clusters import find_clusters, members_of
from app.store.derived.facts import find_titles
from app.store.derived.weeks import Opened

Period = Literal["week", "month", "quarter", "year"]


class ClosedButAlive(Frozen):
    """Reports that came after the canonical issue was closed."""

    closed_at: datetime
    state_reason: str | None
    reports_since: int
    newest: int = Field(description="issue number of the newest of them")
    newest_at: datetime | None
    reason: str


class TimelineBucket(Frozen):
    start: date
    label: str
    reports: int


class Timeline(Frozen):
    """Reports by period; `buckets` has no gaps between the first and the last."""

    unit: Period
    buckets: tuple[TimelineBucket, ...]


BUCKETS_MAX = 26


def _months(length: int) -> Callable[[date], date]:
    """Return a function from a day to the first day of its period of `length` months."""
    return lambda day: day.replace(month=(day.month - 1) // length * length + 1, day=1)


_PERIODS: dict[Period, tuple[int, Callable[[date], date], Callable[[date], str]]] = {
    "week": (7, lambda day: day - timedelta(days=day.weekday()), lambda day: f"{day:%G-W%V}"),
    "month": (31, _months(1), lambda day: f"{day:%Y-%m}"),
    "quarter": (92, _months(3), lambda day: f"{day.year} Q{(day.month + 2) // 3}"),
    "year": (366, _months(12), lambda day: f"{day.year}"),
}
"""By unit: its longest length in days, the first day of a day's period, and that period's label."""


def timeline(moments: Iterable[datetime | None]) -> Timeline | None:
    """Count reports by the smallest unit that gives at most `BUCKETS_MAX` buckets. UTC dates."""
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
    """Return the reports after the canonical issue was closed; None if it is open or there are none.

    Reports from versions before the release with the fix do not count: they do not contradict it.
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


WEEKS_BEFORE = 8


@dataclass(frozen=True, slots=True)
class Growth:
    """A growing cluster: its reports in a week, and in the `WEEKS_BEFORE` weeks before it.

    Attributes:
        numbers: issue numbers of the week's reports.
        before: total reports in the weeks before; `mean_before`: their mean per week.
    """

    id: str
    numbers: tuple[int, ...]
    before: int

    @property
    def reports(self) -> int:
        return len(self.numbers)

    @property
    def mean_before(self) -> float:
        return self.before / WEEKS_BEFORE


class GrowingCluster(Frozen):
    """A growing cluster."""

    id: str
    text: str = Field(description="signature of the cluster in readable form, secrets masked")
    canonical: int
    title: str
    size: int = Field(description="number of reports of all time")
    numbers: tuple[int, ...] = Field(description="issue numbers of the week's reports")
    reports: int
    before: int = Field(description="total reports of the 8 weeks before")
    mean_before: float = Field(description="mean per week of the 8 weeks before")


def weeks_covered(first: datetime | None, week: IsoWeek) -> int:
    """Return how many of the `WEEKS_BEFORE` weeks the database covers in full since its `first` issue."""
    covered = (week.start - IsoWeek.of(first).start).days // 7 if first else 0
    return min(max(0, covered), WEEKS_BEFORE)


def growths(opened: Iterable[Opened], week: IsoWeek) -> list[Growth]:
    """Return the clusters that grow in the week, most reports first."""
    begin, start, end = week.shifted(-WEEKS_BEFORE).start, week.start, week.end
    now: dict[str, list[int]] = {}
    before: Counter[str] = Counter()
    for one in opened:
        if not (one.is_failure and one.cluster_id and begin <= one.created_at < end):
            continue
        if one.created_at >= start:
            now.setdefault(one.cluster_id, []).append(one.number)
        else:
            before[one.cluster_id] += 1
    found = [Growth(key, tuple(sorted(numbers)), before[key]) for key, numbers in now.items()]
    growing = [one for one in found if one.reports > 3 * (one.mean_before + 1)]
    return sorted(growing, key=lambda one: (-one.reports, one.before, one.id))


def describe_growing(session: Session, repo_id: int, growing: Sequence[Growth]) -> tuple[GrowingCluster, ...]:
    """Return these clusters with text, title and size; clusters no longer stored are left out."""
    known = cluster_fields(session, repo_id, [one.id for one in growing])
    return tuple(GrowingCluster.based_on(one, **known[one.id]) for one in growing if one.id in known)


def cluster_fields(session: Session, repo_id: int, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return masked text and title, canonical issue and size of these clusters, by requested id."""
    records, members = find_clusters(session, repo_id, ids), members_of(session, repo_id, ids)
    titles = find_titles(session, repo_id, [record.canonical for record in records.values()])
    return {
        key: {
            "text": mask_secrets(record.text),
            "canonical": record.canonical,
            "title": mask_secrets(titles.get(record.canonical, "")),
            "size": len(members.get(record.id, ())),
        }
        for key, record in records.items()
    }
