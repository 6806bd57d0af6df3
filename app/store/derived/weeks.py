"""Activity of a repository in a time span: opened issues, reported failures, remedies, fixes.

Pull requests and issues gone from GitHub are left out. All spans are half-open: the end is excluded.
"""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from app.store.engine.connect import day_of, sql_rows
from app.store.memo import kept_until_written

# There are no other states; naming them makes the index covering, so rows with whole texts are not read.
LISTED = """
    i.repo_id = :repo_id AND i.is_pull_request = false AND i.gone_at IS NULL AND i.state IN ('open', 'closed')
"""
"""Condition on a listed issue `i`."""
_OPENED = f"{LISTED} AND i.created_at >= :start AND i.created_at < :end"
NO_FAILURE = "none"
"""The failure kind of issues that report no failure."""


class Opened(NamedTuple):
    """An opened issue, with its time, failure kind and cluster (if any)."""

    number: int
    created_at: datetime
    kind: str
    cluster_id: str | None

    @property
    def is_failure(self) -> bool:
        return self.kind != NO_FAILURE


class OpenedDay(NamedTuple):
    """How many issues were opened on a day, and how many of them report a failure."""

    day: date
    issues: int
    failures: int


class OpenedSpan(NamedTuple):
    """When the first and last stored issues were opened, and how many have no date."""

    first: datetime | None
    last: datetime | None
    undated: int


class DatedRelease(NamedTuple):
    tag: str
    published_at: datetime
    is_prerelease: bool


class RemedySource(NamedTuple):
    """Where a remedy is mentioned: issue number, evidence source, and when the source was written."""

    number: int
    source: str
    at: datetime


def opened_between(session: Session, repo_id: int, start: datetime, end: datetime) -> list[Opened]:
    """Return the issues opened in this span, by number."""
    query = f"""
        SELECT i.number, i.created_at, coalesce(r.failure_kind, '{NO_FAILURE}'), m.cluster_id FROM issue i
        LEFT JOIN reading r ON r.repo_id = i.repo_id AND r.number = i.number
        LEFT JOIN cluster_member m ON m.repo_id = i.repo_id AND m.number = i.number
        WHERE {_OPENED}
    """  # sorted below: for ORDER BY, SQLite would read all issues of the repository
    rows = sql_rows(session, query, times=("created_at",), repo_id=repo_id, start=start, end=end)
    return sorted(map(Opened._make, rows))


@kept_until_written
def opened_days(session: Session, repo_id: int) -> Sequence[OpenedDay]:
    """Return how many issues and failures were opened on each day (UTC), oldest first."""
    query = f"""
        SELECT {day_of(session, "i.created_at")} AS day, count(*),
        count(*) FILTER (WHERE r.failure_kind <> '{NO_FAILURE}') FROM issue i
        LEFT JOIN reading r ON r.repo_id = i.repo_id AND r.number = i.number
        WHERE {LISTED} AND i.created_at IS NOT NULL GROUP BY day ORDER BY day
    """
    rows = sql_rows(session, query, repo_id=repo_id)
    return [OpenedDay(date.fromisoformat(day), issues, failures) for day, issues, failures in rows]


def opened_span(session: Session, repo_id: int) -> OpenedSpan:
    """Return the first and last opening dates; None and 0 if nothing is stored."""
    # With one subquery per state, each end is a single index lookup.
    listed = "FROM issue i WHERE i.repo_id = :repo_id AND i.is_pull_request = false AND i.gone_at IS NULL"
    query = f"""
        SELECT (SELECT min(i.created_at) {listed} AND i.state = s.state) AS first,
        (SELECT max(i.created_at) {listed} AND i.state = s.state) AS last,
        (SELECT count(*) {listed} AND i.state = s.state AND i.created_at IS NULL)
        FROM (SELECT 'open' AS state UNION ALL SELECT 'closed') AS s
    """
    rows = sql_rows(session, query, times=("first", "last"), repo_id=repo_id)
    firsts, lasts = ([row[at] for row in rows if row[at] is not None] for at in (0, 1))
    return OpenedSpan(min(firsts, default=None), max(lasts, default=None), sum(row[2] for row in rows))


def nearest_opened(session: Session, repo_id: int, moment: datetime, *, before: bool) -> datetime | None:
    """Return when the last issue before `moment` was opened; without `before`, the first at or after it."""
    extreme, side = ("max", "<") if before else ("min", ">=")
    query = (
        f"SELECT {extreme}(i.created_at) AS at FROM issue i WHERE {LISTED} AND i.created_at {side} :moment"
    )
    found: datetime | None = sql_rows(session, query, times=("at",), repo_id=repo_id, moment=moment)[0][0]
    return found


def release_dates(session: Session, repo_id: int, *, full: bool = False) -> list[DatedRelease]:
    """Return the dated releases, oldest first; with `full`, without prereleases."""
    query = """
        SELECT tag, published_at, is_prerelease FROM release
        WHERE repo_id = :repo_id AND published_at IS NOT NULL ORDER BY published_at, tag
    """
    rows = sql_rows(session, query, times=("published_at",), repo_id=repo_id)
    return [DatedRelease(tag, at, bool(early)) for tag, at, early in rows if not (full and early)]


def maybe_fixed_between(
    session: Session, repo_id: int, repo: str, start: datetime, end: datetime
) -> list[int]:
    """Return issues possibly fixed by a pull request merged, or a release published, in this span.

    A superset: issues fixed by a pull request that was merged then or is in a release of that span, or that
    such a pull request reverts or re-lands; and issues that people say are fixed in such a release.
    """
    tags = [item.tag for item in release_dates(session, repo_id) if start <= item.published_at < end]
    plain = {tag.removeprefix("v") for tag in tags}
    query = """
        WITH RECURSIVE pulls (number) AS (
            SELECT number FROM (
                SELECT number FROM pull_request
                WHERE repo_id = :repo_id AND merged_at >= :start AND merged_at < :end
                UNION SELECT number FROM release_pull WHERE repo_id = :repo_id AND tag IN :tags
                UNION SELECT number FROM fix_containment
                WHERE repo_id = :repo_id AND tag IN :tags AND contained
            ) AS begun
            UNION SELECT link.target_number FROM pulls JOIN link ON link.number = pulls.number
            WHERE link.repo_id = :repo_id AND target_repo = :repo AND kind IN ('reverts', 'relands')
        ), fixes AS (SELECT number, value_key FROM fact WHERE repo_id = :repo_id AND field = 'fix')
        SELECT target_number FROM link
        WHERE repo_id = :repo_id AND target_repo = :repo AND kind = 'fixes'
        AND number IN (SELECT number FROM pulls)
        UNION SELECT number FROM link
        WHERE repo_id = :repo_id AND target_repo = :repo AND kind = 'fixed_by'
        AND target_number IN (SELECT number FROM pulls)
        UNION SELECT number FROM fixes WHERE value_key IN (SELECT '#' || CAST(number AS text) FROM pulls)
        UNION SELECT number FROM reading
        WHERE repo_id = :repo_id AND number IN (SELECT number FROM fixes)
        AND facts -> 'fix' ->> 'released_in' IN :names
    """
    names = [*plain, *(f"v{tag}" for tag in plain)]
    bound: dict[str, Any] = {"repo_id": repo_id, "repo": repo, "start": start, "end": end}
    rows = sql_rows(session, query, tags=tags or [""], names=names or [""], **bound)
    return sorted(number for (number,) in rows)


def remedies_between(session: Session, repo_id: int, start: datetime, end: datetime) -> list[RemedySource]:
    """Return the remedies mentioned in comments written, or in issues opened, in this span."""
    query = f"""
        SELECT f.number, f.source, i.created_at FROM fact f
        JOIN issue i ON i.repo_id = f.repo_id AND i.number = f.number
        WHERE f.field = 'workarounds' AND f.source NOT LIKE 'comment:%' AND {_OPENED}
        UNION
        SELECT f.number, f.source, c.created_at FROM fact f
        JOIN comment c ON c.repo_id = f.repo_id AND c.issue_number = f.number
        AND f.source = 'comment:' || CAST(c.id AS text)
        WHERE f.field = 'workarounds' AND f.repo_id = :repo_id AND c.gone_at IS NULL
        AND c.created_at >= :start AND c.created_at < :end
    """
    rows = sql_rows(session, query, times=("created_at",), repo_id=repo_id, start=start, end=end)
    return sorted(RemedySource(*row) for row in rows)
