"""Which clusters grow: more reports in a week than their eight weeks before let one expect.

In: a repository and a week. Out: the clusters that grow, each with its numbers. The tail of the Poisson
distribution tells how likely so many reports are at the rate of before; Benjamini and Hochberg's step-up
procedure keeps the share of false ones among those named at or below `Q_MAX`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import Field
from sqlmodel import Session

from app.extract.facts import Frozen
from app.extract.redaction.redact import mask_secrets
from app.knowledge.cluster.hardware import benjamini_hochberg
from app.knowledge.iso_week import IsoWeek
from app.store.derived.clusters import cluster_of, find_clusters, members_of
from app.store.derived.weeks import Opened, opened_between, opened_span
from app.store.github.issues import find_heads, find_repository
from app.store.github.sync_state import fresh_as_of
from app.store.session import Store

WEEKS_BEFORE = 8
REPORTS_MIN = 3
"""Fewer reports than this in the week are not called growth, however rare the cluster was."""
Q_MAX = 0.01


@dataclass(frozen=True, slots=True)
class Growth:
    """A cluster's week against its weeks before.

    Attributes:
        mean: reports a week expected: the mean of the weeks before, never below one report in all of them.
        p: chance of so many reports or more at that mean.
        q: p after Benjamini and Hochberg over all clusters reported in these weeks.
    """

    cluster_id: str
    reports: int
    before: int
    mean: float
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


class GrowthPage(Frozen):
    """What grows in a week; `weeks_before` below 8 means that the base is too young to tell."""

    repo: str
    week: str | None
    weeks_before: int
    tested: int = Field(description="clusters with a report in the week or the eight before")
    items: tuple[GrowingCluster, ...] = ()


def poisson_tail(reports: int, mean: float) -> float:
    """The chance of `reports` or more where `mean` are expected."""
    if reports <= 0:
        return 1.0
    if mean <= 0:
        return 0.0
    term = math.exp(reports * math.log(mean) - mean - math.lgamma(reports + 1))
    if reports > mean:  # each further term is smaller by more than the one before
        total, count = 0.0, reports
        while term > total * 1e-17:
            total += term
            count += 1
            term *= mean / count
        return min(total, 1.0)
    below = math.fsum(
        math.exp(count * math.log(mean) - mean - math.lgamma(count + 1)) for count in range(reports)
    )
    return max(0.0, 1.0 - below)


def growths(week: Mapping[str, int], before: Mapping[str, int]) -> list[Growth]:
    """All clusters' growth, the surest first.

    Args:
        week: reports of the week by cluster.
        before: reports of the eight weeks before, together, by cluster.
    """
    ids = sorted({*week, *before})
    means = [max(before.get(key, 0), 1) / WEEKS_BEFORE for key in ids]
    chances = [poisson_tail(week.get(key, 0), mean) for key, mean in zip(ids, means, strict=True)]
    found = [
        Growth(key, week.get(key, 0), before.get(key, 0), mean, p, q)
        for key, mean, p, q in zip(ids, means, chances, benjamini_hochberg(chances), strict=True)
    ]
    return sorted(found, key=lambda one: (one.p, -one.reports, one.cluster_id))


def weeks_covered(first: datetime | None, week: IsoWeek) -> int:
    """How many of the weeks before, at most 8, the base covers whole; the first issue begins it."""
    if first is None:
        return 0
    begun = IsoWeek.of(first)
    return next((n for n in range(WEEKS_BEFORE, 0, -1) if begun <= week.shifted(-n)), 0)


def growth_of(opened: Iterable[Opened], clusters: Mapping[int, str], week: IsoWeek) -> list[Growth]:
    """The growth of all clusters reported in the week or the eight before, out of the issues opened then."""
    begin, start, end = week.shifted(-WEEKS_BEFORE).start, week.start, week.end
    now: Counter[str] = Counter()
    past: Counter[str] = Counter()
    for one in opened:
        if one.is_failure and one.number in clusters and begin <= one.created_at < end:
            (now if one.created_at >= start else past)[clusters[one.number]] += 1
    return growths(now, past)


def newest_whole_week(store: Store, repo: str) -> IsoWeek | None:
    """The newest week that is stored to its end; without one the newest with issues; None if empty."""
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        if repo_id is None:
            return None
        span, as_of = opened_span(session, repo_id), fresh_as_of(session, repo_id)
    return whole_week(span.first, span.last, as_of)


def whole_week(first: datetime | None, last: datetime | None, as_of: datetime | None) -> IsoWeek | None:
    """As `newest_whole_week`, from the first and the last date of the data and the newest whole sync."""
    if first is None or last is None:
        return None
    newest = IsoWeek.of(last)
    if data_end(last, as_of) >= newest.end or IsoWeek.of(first) == newest:
        return newest
    return newest.shifted(-1)


def data_end(last: datetime, as_of: datetime | None) -> datetime:
    """Up to when the stored data tells: the newest whole sync, or the newest issue if that is later."""
    return max(last, as_of) if as_of else last


def growing(store: Store, repo: str, week: IsoWeek | None = None, *, limit: int = 10) -> GrowthPage:
    """The clusters that grow in a week, the surest first; without one in the newest week stored whole.

    Raises:
        StoreError: the database cannot be read.
    """
    asked = week or newest_whole_week(store, repo)
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        if repo_id is None or asked is None:
            return GrowthPage(repo=repo, week=str(asked) if asked else None, weeks_before=0, tested=0)
        covered = weeks_covered(opened_span(session, repo_id).first, asked)
        opened = opened_between(session, repo_id, asked.shifted(-WEEKS_BEFORE).start, asked.end)
        clusters = cluster_of(session, repo_id, [item.number for item in opened if item.is_failure])
        told = growth_of(opened, clusters, asked) if covered == WEEKS_BEFORE else []
        named = [one for one in told if one.is_growing][:limit]
        items = show_growing(session, repo_id, named, reports_by_cluster(opened, clusters, asked))
    return GrowthPage(repo=repo, week=str(asked), weeks_before=covered, tested=len(told), items=items)


def reports_by_cluster(
    opened: Iterable[Opened], clusters: Mapping[int, str], week: IsoWeek
) -> dict[str, tuple[int, ...]]:
    """The numbers of the week's reports in each cluster."""
    found: dict[str, list[int]] = {}
    for item in opened:
        if item.is_failure and week.start <= item.created_at < week.end and item.number in clusters:
            found.setdefault(clusters[item.number], []).append(item.number)
    return {key: tuple(sorted(numbers)) for key, numbers in found.items()}


def show_growing(
    session: Session, repo_id: int, named: Sequence[Growth], numbers: Mapping[str, tuple[int, ...]]
) -> tuple[GrowingCluster, ...]:
    """These clusters with what a list tells of them; `numbers` are the week's reports by cluster."""
    ids = [one.cluster_id for one in named]
    if not ids:
        return ()
    records, members = find_clusters(session, repo_id, ids), members_of(session, repo_id, ids)
    heads = find_heads(session, repo_id, sorted({record.canonical for record in records.values()}))
    titles = {head.number: mask_secrets(head.title) for head in heads}
    return tuple(
        GrowingCluster(
            id=one.cluster_id,
            text=mask_secrets(records[one.cluster_id].text),
            canonical=records[one.cluster_id].canonical,
            title=titles.get(records[one.cluster_id].canonical, ""),
            size=len(members.get(one.cluster_id, ())),
            numbers=numbers.get(one.cluster_id, ()),
            reports=one.reports,
            before=one.before,
            mean_before=one.mean,
            p=one.p,
            q=one.q,
        )
        for one in named
        if one.cluster_id in records
    )
