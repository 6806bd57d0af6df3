"""What came into a repository between two moments: issues and the failures they report, remedies, fixes.

Left out are pull requests and what GitHub has no more. All spans are half open: the end is not in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, String, cast, func, literal, select, union
from sqlmodel import Session

from app.store.tables import (
    CLUSTER_MEMBER,
    COMMENT,
    FACT,
    FIX_CONTAINMENT,
    ISSUE,
    LINK,
    PULL_REQUEST,
    READING,
    RELEASE,
    RELEASE_PULL,
)

_ISSUE, _READING, _FACT, _COMMENT, _LINK = ISSUE.c, READING.c, FACT.c, COMMENT.c, LINK.c
_PULL, _RELEASE, _MEMBER = PULL_REQUEST.c, RELEASE.c, CLUSTER_MEMBER.c
_NAMED, _HELD = RELEASE_PULL.c, FIX_CONTAINMENT.c
_COMMENT_SOURCE = "comment:"
NO_FAILURE = "none"
"""The kind of what reports no failure."""


class Opened(NamedTuple):
    """An issue, when it was opened, what kind of failure it reports, and the cluster it is in, if any."""

    number: int
    created_at: datetime
    kind: str
    cluster_id: str | None

    @property
    def is_failure(self) -> bool:
        """Whether it reports a failure."""
        return self.kind != NO_FAILURE


class OpenedSpan(NamedTuple):
    """When the first and the last stored issue were opened, and how many have no date."""

    first: datetime | None
    last: datetime | None
    undated: int


class DatedRelease(NamedTuple):
    tag: str
    published_at: datetime
    is_prerelease: bool


class RemedySource(NamedTuple):
    """Where a remedy is mentioned: an issue's number, the source of the evidence, when that was written."""

    number: int
    source: str
    at: datetime


def _issues(repo_id: int) -> tuple[ColumnElement[bool], ...]:
    # The states are all there are: with them the index answers without the rows, which hold whole texts.
    return (
        _ISSUE.repo_id == repo_id,
        _ISSUE.is_pull_request.is_(False),
        _ISSUE.gone_at.is_(None),
        _ISSUE.state.in_(("open", "closed")),
    )


def _between(column: ColumnElement[Any], start: datetime, end: datetime) -> ColumnElement[bool]:
    return (column >= start) & (column < end)


def opened_between(session: Session, repo_id: int, start: datetime, end: datetime) -> list[Opened]:
    """The issues opened in this time, by number."""
    kind = func.coalesce(_READING.failure_kind, NO_FAILURE)
    query = (
        select(_ISSUE.number, _ISSUE.created_at, kind, _MEMBER.cluster_id)
        .outerjoin_from(ISSUE, READING)
        .outerjoin(CLUSTER_MEMBER, (_MEMBER.repo_id == _ISSUE.repo_id) & (_MEMBER.number == _ISSUE.number))
        .where(*_issues(repo_id), _between(_ISSUE.created_at, start, end))
        .order_by(_ISSUE.number)
    )
    return [Opened(*row) for row in session.connection().execute(query)]


def opened_span(session: Session, repo_id: int) -> OpenedSpan:
    """From when to when issues were opened; None and zero where nothing is stored."""
    undated = func.count() - func.count(_ISSUE.created_at)
    query = select(func.min(_ISSUE.created_at), func.max(_ISSUE.created_at), undated)
    return OpenedSpan(*session.connection().execute(query.where(*_issues(repo_id))).one())


def nearest_opened(session: Session, repo_id: int, moment: datetime, *, before: bool) -> datetime | None:
    """When the last issue before a moment was opened; without `before` the first at or after it."""
    side = _ISSUE.created_at < moment if before else _ISSUE.created_at >= moment
    order = _ISSUE.created_at.desc() if before else _ISSUE.created_at
    query = select(_ISSUE.created_at).where(*_issues(repo_id), side).order_by(order).limit(1)
    return session.connection().execute(query).scalar()


def release_dates(session: Session, repo_id: int, *, full: bool = False) -> list[DatedRelease]:
    """The releases that have a date, or the full ones among them, the oldest first."""
    query = (
        select(_RELEASE.tag, _RELEASE.published_at, _RELEASE.is_prerelease)
        .where(_RELEASE.repo_id == repo_id, _RELEASE.published_at.is_not(None))
        .order_by(_RELEASE.published_at, _RELEASE.tag)
    )
    found = [DatedRelease(*row) for row in session.connection().execute(query)]
    return [item for item in found if not (full and item.is_prerelease)]


def maybe_fixed_between(
    session: Session, repo_id: int, repo: str, start: datetime, end: datetime
) -> list[int]:
    """Issues that a pull request merged, or a release published, in this time may have fixed.

    A superset: those that a pull request fixes which was merged then, which a release of then holds, or which
    either takes back or brings back; and those of which people name such a release as the one with the fix.
    """
    tags = [item.tag for item in release_dates(session, repo_id) if start <= item.published_at < end]
    begun = union(
        select(_PULL.number).where(_PULL.repo_id == repo_id, _between(_PULL.merged_at, start, end)),
        select(_NAMED.number).where(_NAMED.repo_id == repo_id, _NAMED.tag.in_(tags)),
        select(_HELD.number).where(_HELD.repo_id == repo_id, _HELD.tag.in_(tags), _HELD.contained.is_(True)),
    ).cte("begun")
    pulls = select(begun.c.number).cte("pulls", recursive=True)
    ours = (_LINK.repo_id == repo_id) & (_LINK.target_repo == repo)
    pulls = pulls.union(
        select(_LINK.target_number)
        .join_from(pulls, LINK, _LINK.number == pulls.c.number)
        .where(ours, _LINK.kind.in_(("reverts", "relands")))
    )
    wanted = select(pulls.c.number)
    named = select(literal("#") + cast(pulls.c.number, String))
    fixes = _FACT.repo_id == repo_id, _FACT.field == "fix"
    plain = {tag.removeprefix("v") for tag in tags}
    release = _READING.facts["fix"]["released_in"].as_string()
    found = union(
        select(_LINK.target_number).where(ours, _LINK.number.in_(wanted), _LINK.kind == "fixes"),
        select(_LINK.number).where(ours, _LINK.target_number.in_(wanted), _LINK.kind == "fixed_by"),
        select(_FACT.number).where(*fixes, _FACT.value_key.in_(named)),
        select(_READING.number).where(
            _READING.repo_id == repo_id,
            _READING.number.in_(select(_FACT.number).where(*fixes)),
            release.in_([*plain, *(f"v{tag}" for tag in plain)]),
        ),
    )
    return sorted(session.connection().execute(found).scalars())


def remedies_between(session: Session, repo_id: int, start: datetime, end: datetime) -> list[RemedySource]:
    """Where remedies are mentioned in comments written, or in issues opened, in this time."""
    is_comment = _FACT.source.like(f"{_COMMENT_SOURCE}%")
    in_issues = (
        select(_FACT.number, _FACT.source, _ISSUE.created_at)
        .join_from(FACT, ISSUE, (_ISSUE.repo_id == _FACT.repo_id) & (_ISSUE.number == _FACT.number))
        .where(*_issues(repo_id), _between(_ISSUE.created_at, start, end), ~is_comment)
    )
    in_comments = (
        select(_FACT.number, _FACT.source, _COMMENT.created_at)
        .join_from(
            FACT,
            COMMENT,
            (_COMMENT.repo_id == _FACT.repo_id)
            & (_COMMENT.issue_number == _FACT.number)
            & (_FACT.source == literal(_COMMENT_SOURCE) + cast(_COMMENT.id, String)),
        )
        .where(
            _FACT.repo_id == repo_id, _COMMENT.gone_at.is_(None), _between(_COMMENT.created_at, start, end)
        )
    )
    found: set[RemedySource] = set()
    for query in (in_issues, in_comments):
        rows = session.connection().execute(query.where(_FACT.field == "workarounds"))
        found |= {RemedySource(*row) for row in rows}
    return sorted(found)


def values_in_reports(
    session: Session, repo_id: int, start: datetime, end: datetime, fields: Sequence[str]
) -> list[tuple[str, str, str, int]]:
    """Values in the failures opened in this time: field, value, value in lower case, number; each once."""
    query: Select[Any] = (
        select(_FACT.field, _FACT.value, _FACT.value_key, _FACT.number)
        .select_from(ISSUE)
        .join(READING, (_READING.repo_id == _ISSUE.repo_id) & (_READING.number == _ISSUE.number))
        .join(FACT, (_FACT.repo_id == _ISSUE.repo_id) & (_FACT.number == _ISSUE.number))
        .where(*_issues(repo_id), _between(_ISSUE.created_at, start, end))
        .where(_READING.failure_kind != NO_FAILURE, _FACT.field.in_(list(fields)))
    )
    return sorted({(row[0], row[1], row[2], row[3]) for row in session.connection().execute(query)})
