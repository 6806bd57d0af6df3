"""Which clusters grow: more reports in a week than their eight weeks before let one expect.

The tail of the Poisson distribution gives the chance of so many reports at the rate of before; Benjamini and
Hochberg's procedure keeps the share of false ones among those named at or below `Q_MAX`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from pydantic import Field
from sqlmodel import Session

from app.extract.facts import Frozen
from app.extract.redaction.redact import mask_secrets
from app.knowledge.iso_week import IsoWeek
from app.knowledge.statistics import benjamini_hochberg, poisson_tail
from app.store.derived.clusters import find_clusters, members_of
from app.store.derived.weeks import Opened
from app.store.github.issues import find_heads

WEEKS_BEFORE = 8
REPORTS_MIN = 3
"""Fewer reports than this in the week are not called growth, however rare the cluster was."""
Q_MAX = 0.01


@dataclass(frozen=True, slots=True)
class Growth:
    """A cluster's week against its weeks before.

    Attributes:
        numbers: the reports of the week.
        reports: how many these are.
        before: how many reports the weeks before have, together.
        mean_before: reports a week to expect: the mean of the weeks before, of at least one report.
        p: chance of so many reports or more at that mean.
        q: p after Benjamini and Hochberg over all clusters reported in these weeks.
    """

    id: str
    numbers: tuple[int, ...]
    reports: int
    before: int
    mean_before: float
    p: float
    q: float

    @property
    def is_growing(self) -> bool:
        """Enough reports, and too many to be chance."""
        return self.reports >= REPORTS_MIN and self.q < Q_MAX


class GrowingCluster(Frozen):
    """A cluster that grows."""

    id: str
    text: str = Field(description="the cluster's readable text, secrets masked")
    canonical: int
    title: str
    size: int = Field(description="reports of all time")
    numbers: tuple[int, ...] = Field(description="the reports of the week")
    reports: int
    before: int = Field(description="reports of the weeks before, together")
    mean_before: float = Field(description="a week; before / 8, and 1 / 8 for a cluster not seen in them")
    p: float = Field(description="chance of so many reports or more at that mean (Poisson)")
    q: float = Field(description="p after Benjamini-Hochberg over all clusters of the nine weeks")


def weeks_covered(first: datetime | None, week: IsoWeek) -> int:
    """How many of the weeks before, at most 8, the base covers whole; the first issue begins it."""
    if first is None:
        return 0
    begun = IsoWeek.of(first)
    return next((n for n in range(WEEKS_BEFORE, 0, -1) if begun <= week.shifted(-n)), 0)


def growths(opened: Iterable[Opened], week: IsoWeek) -> list[Growth]:
    """The growth of all clusters reported in the week or the eight before, the surest first."""
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
    ids = sorted({*now, *before})
    means = [max(before[key], 1) / WEEKS_BEFORE for key in ids]
    chances = [poisson_tail(len(now.get(key, ())), mean) for key, mean in zip(ids, means, strict=True)]
    found = [
        Growth(key, tuple(sorted(now.get(key, ()))), len(now.get(key, ())), before[key], mean, p, q)
        for key, mean, p, q in zip(ids, means, chances, benjamini_hochberg(chances), strict=True)
    ]
    return sorted(found, key=lambda one: (one.p, -one.reports, one.id))


def describe_growing(session: Session, repo_id: int, growing: Sequence[Growth]) -> tuple[GrowingCluster, ...]:
    """These clusters with their texts, titles and sizes; one that is stored no more is left out."""
    ids = [one.id for one in growing]
    records, members = find_clusters(session, repo_id, ids), members_of(session, repo_id, ids)
    heads = find_heads(session, repo_id, sorted({record.canonical for record in records.values()}))
    titles = {head.number: mask_secrets(head.title) for head in heads}
    return tuple(
        GrowingCluster(
            **asdict(one),
            text=mask_secrets(record.text),
            canonical=record.canonical,
            title=titles.get(record.canonical, ""),
            size=len(members.get(record.id, ())),
        )
        for one in growing
        if (record := records.get(one.id)) is not None
    )
