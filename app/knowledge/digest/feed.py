"""What is worth a line in a feed: the weeks, new failures with a second report, what grows, what got fixed.

In: a repository. Out: `FeedEntry`s, the newest first. Times come from the data, so that the same database
gives the same feed, and an entry keeps its key for as long as it tells the same thing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal

from sqlmodel import Session

from app.extract.facts import Frozen
from app.extract.redaction.redact import mask_secrets
from app.knowledge.cluster.growth import (
    WEEKS_BEFORE,
    growth_of,
    reports_by_cluster,
    show_growing,
    weeks_covered,
    whole_week,
)
from app.knowledge.digest.digest import count_weeks
from app.knowledge.digest.sections import Span, fixed_in
from app.knowledge.digest.tables import counted
from app.knowledge.iso_week import IsoWeek
from app.knowledge.text.quoting import inert
from app.store.derived.clusters import cluster_of, find_clusters, members_of
from app.store.derived.weeks import Opened, opened_between, opened_span
from app.store.github.issues import find_repository
from app.store.github.sync_state import fresh_as_of
from app.store.session import Store

DIGESTS_TOLD = 8
WEEKS_TOLD = 4
"""How far back single failures and fixes are told."""
ENTRIES_MAX = 60
TITLE_CHARS = 140

EntryKind = Literal["digest", "cluster", "growing", "fixed"]


class FeedEntry(Frozen):
    """An entry. `key` names what it tells for good; `path` is where our page of it is."""

    key: str
    kind: EntryKind
    title: str
    summary: str
    path: str
    updated: datetime


def feed_entries(store: Store, repo: str) -> tuple[FeedEntry, ...]:
    """The newest entries of a repository, the newest first; none where no dated issue is stored.

    Raises:
        StoreError: the database cannot be read.
    """
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        if repo_id is None:
            return ()
        span = opened_span(session, repo_id)
        week = whole_week(span.first, span.last, fresh_as_of(session, repo_id))
        if week is None or span.last is None:
            return ()
        begin = week.shifted(-max(DIGESTS_TOLD, WEEKS_BEFORE)).start
        last = IsoWeek.of(span.last)
        opened = opened_between(session, repo_id, begin, last.end)
        clusters = cluster_of(session, repo_id, [one.number for one in opened if one.is_failure])
        told = [
            *_digests(opened, week),
            *_new_clusters(session, repo_id, opened, clusters, last),
            *_fixes(session, repo_id, repo, Span(last.shifted(1 - WEEKS_TOLD).start, last.end)),
        ]
        if weeks_covered(span.first, week) == WEEKS_BEFORE:
            told += _growing(session, repo_id, opened, clusters, week)
    return tuple(sorted(told, key=lambda one: (-one.updated.timestamp(), one.key))[:ENTRIES_MAX])


def _digests(opened: Sequence[Opened], newest: IsoWeek) -> Iterator[FeedEntry]:
    """The newest weeks that are stored to their end; a week's entry does not change with the days."""
    weeks = [newest.shifted(-back) for back in range(DIGESTS_TOLD + 1)]
    counts = count_weeks(opened, weeks)
    for week, count, before in zip(weeks, counts, counts[1:], strict=False):
        if count.issues:
            told = f"{counted(count.failures, 'new failure')} among {counted(count.issues, 'new issue')}"
            yield FeedEntry(
                key=f"digest/{week}",
                kind="digest",
                path=f"/digest/{week}",
                updated=week.end,
                title=f"Week {week}: {told}",
                summary=f"{week.days}: {told}. The week before: {before.failures:,} among {before.issues:,}.",
            )


def _new_clusters(
    session: Session, repo_id: int, opened: Sequence[Opened], clusters: Mapping[int, str], last: IsoWeek
) -> Iterator[FeedEntry]:
    """Failures first reported in the last weeks that have a second report."""
    begin = last.shifted(1 - WEEKS_TOLD).start
    times: dict[str, list[datetime]] = {}
    for one in opened:
        if one.created_at >= begin and one.number in clusters:
            times.setdefault(clusters[one.number], []).append(one.created_at)
    repeated = [key for key, moments in times.items() if len(moments) > 1]
    records, members = find_clusters(session, repo_id, repeated), members_of(session, repo_id, repeated)
    for key, record in records.items():
        numbers = members.get(key, ())
        if len(numbers) == len(times[key]):
            named = ", ".join(f"#{number}" for number in numbers[:8])
            yield FeedEntry(
                key=f"cluster/{key}",
                kind="cluster",
                path=f"/signatures/{key}",
                updated=max(times[key]),
                title=f"New failure: {_line(record.text)}",
                summary=f"{counted(len(numbers), 'report')} so far: {named}.",
            )


def _growing(
    session: Session, repo_id: int, opened: Sequence[Opened], clusters: Mapping[int, str], week: IsoWeek
) -> Iterator[FeedEntry]:
    named = [one for one in growth_of(opened, clusters, week) if one.is_growing]
    for item in show_growing(session, repo_id, named, reports_by_cluster(opened, clusters, week)):
        yield FeedEntry(
            key=f"growing/{week}/{item.id}",
            kind="growing",
            path=f"/signatures/{item.id}",
            updated=week.end,
            title=f"Growing: {_line(item.text or item.title)}",
            summary=(
                f"{counted(item.reports, 'report')} in {week}, {item.before:,} in the {WEEKS_BEFORE} weeks "
                f"before; {item.size:,} in all."
            ),
        )


def _fixes(session: Session, repo_id: int, repo: str, span: Span) -> Iterator[FeedEntry]:
    fixed, _ = fixed_in(session, repo_id, repo, span)
    for item in fixed:
        at = item.released_at if item.how == "released" else item.merged_at
        if at is None:
            continue
        by = f" by {item.fix.pr}" if item.fix.pr else ""
        how = f"Fixed in {item.fix.released_in}" if item.how == "released" else "Fix merged"
        yield FeedEntry(
            key=f"fixed/{item.number}/{item.fix.released_in or item.fix.pr}",
            kind="fixed",
            updated=at,
            path=f"/issues/{item.number}",
            title=f"{how}: #{item.number} {_line(item.title)}",
            summary=f"{how}{by}. {_line(item.fix.reason)}",
        )


def _line(text: str) -> str:
    """Foreign words on one line, masked, without signs that are not seen."""
    words = " ".join(inert(mask_secrets(text)).split())
    return words if len(words) <= TITLE_CHARS else f"{words[:TITLE_CHARS].rstrip()}…"
