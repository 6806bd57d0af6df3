"""What came into a repository between two moments: issues and the failures they report, remedies, fixes.

Left out are pull requests and what GitHub has no more. All spans are half open: the end is not in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, func
from sqlalchemy import select as sql_select
from sqlmodel import Session

from app.store.engine.connect import KEYS_PER_QUERY
from app.store.tables import metadata

REVERTS_DEEP = 6
"""How often a fix and its revert may take turns."""

_ISSUE, _READING = metadata.tables["issue"].c, metadata.tables["reading"].c
_FACT, _COMMENT = metadata.tables["fact"].c, metadata.tables["comment"].c
_PULL, _LINK = metadata.tables["pull_request"].c, metadata.tables["link"].c
_RELEASE, _NAMED = metadata.tables["release"].c, metadata.tables["release_pull"].c
_ANSWER = metadata.tables["fix_containment"].c
_COMMENT_SOURCE = "comment:"
NO_FAILURE = "none"
"""The kind of what reports no failure."""


class Opened(NamedTuple):
    """An issue, when it was opened, and what kind of failure it reports."""

    number: int
    created_at: datetime
    kind: str

    @property
    def is_failure(self) -> bool:
        """Whether it reports one."""
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


class ToldRemedy(NamedTuple):
    """Where a remedy is told: an issue's number, the source of the evidence, and when that was written."""

    number: int
    source: str
    told_at: datetime


def _issues(repo_id: int) -> tuple[ColumnElement[bool], ...]:
    # The states are all there are: with them the index answers without the rows, which hold whole texts.
    return (
        _ISSUE.repo_id == repo_id,
        _ISSUE.is_pull_request.is_(False),
        _ISSUE.gone_at.is_(None),
        _ISSUE.state.in_(("open", "closed")),
    )


def opened_between(session: Session, repo_id: int, start: datetime, end: datetime) -> list[Opened]:
    """The issues opened in this time, by number."""
    query = (
        sql_select(_ISSUE.number, _ISSUE.created_at, func.coalesce(_READING.failure_kind, NO_FAILURE))
        .join_from(
            metadata.tables["issue"],
            metadata.tables["reading"],
            (_READING.repo_id == _ISSUE.repo_id) & (_READING.number == _ISSUE.number),
            isouter=True,
        )
        .where(*_issues(repo_id), _ISSUE.created_at >= start, _ISSUE.created_at < end)
        .order_by(_ISSUE.number)
    )
    return [Opened(*row) for row in session.connection().execute(query)]


def opened_span(session: Session, repo_id: int) -> OpenedSpan:
    """From when to when issues were opened; all None and zero where nothing is stored."""
    ours = _issues(repo_id)
    query = sql_select(
        func.min(_ISSUE.created_at), func.max(_ISSUE.created_at), func.count() - func.count(_ISSUE.created_at)
    ).where(*ours)
    return OpenedSpan(*session.connection().execute(query).one())


def nearest_opened(session: Session, repo_id: int, moment: datetime, *, before: bool) -> datetime | None:
    """When the last issue before a moment was opened; without `before` the first at or after it."""
    side = _ISSUE.created_at < moment if before else _ISSUE.created_at >= moment
    order = _ISSUE.created_at.desc() if before else _ISSUE.created_at
    query = sql_select(_ISSUE.created_at).where(*_issues(repo_id), side).order_by(order).limit(1)
    return session.connection().execute(query).scalar()


def releases_between(session: Session, repo_id: int, start: datetime, end: datetime) -> list[DatedRelease]:
    """The releases published in this time, the oldest first."""
    query = (
        sql_select(_RELEASE.tag, _RELEASE.published_at, _RELEASE.is_prerelease)
        .where(_RELEASE.repo_id == repo_id, _RELEASE.published_at >= start, _RELEASE.published_at < end)
        .order_by(_RELEASE.published_at, _RELEASE.tag)
    )
    return [DatedRelease(tag, at, bool(pre)) for tag, at, pre in session.connection().execute(query)]


def release_dates(session: Session, repo_id: int) -> list[DatedRelease]:
    """All releases that have a date, the oldest first."""
    query = (
        sql_select(_RELEASE.tag, _RELEASE.published_at, _RELEASE.is_prerelease)
        .where(_RELEASE.repo_id == repo_id, _RELEASE.published_at.is_not(None))
        .order_by(_RELEASE.published_at, _RELEASE.tag)
    )
    return [DatedRelease(tag, at, bool(pre)) for tag, at, pre in session.connection().execute(query)]


def merges_of(session: Session, repo_id: int, pulls: Sequence[int]) -> dict[int, datetime]:
    """When each of these pull requests was merged, where it was."""
    found: dict[int, datetime] = {}
    for part in _parts(pulls):
        query = sql_select(_PULL.number, _PULL.merged_at).where(
            _PULL.repo_id == repo_id, _PULL.number.in_(part), _PULL.merged_at.is_not(None)
        )
        found |= {number: at for number, at in session.connection().execute(query)}  # noqa: C416
    return found


def maybe_fixed_between(
    session: Session, repo_id: int, repo: str, start: datetime, end: datetime
) -> list[int]:
    """Issues that a pull request merged, or a release published, in this time may have fixed.

    A superset: those whose fix is told by a pull request that was merged then, that a release of then holds,
    or that either takes back or brings back; and those of which words name such a release.
    """
    tags = [release.tag for release in releases_between(session, repo_id, start, end)]
    merged = sql_select(_PULL.number).where(
        _PULL.repo_id == repo_id, _PULL.merged_at >= start, _PULL.merged_at < end
    )
    named = sql_select(_NAMED.number).where(_NAMED.repo_id == repo_id, _NAMED.tag.in_(tags))
    held = sql_select(_ANSWER.number).where(
        _ANSWER.repo_id == repo_id, _ANSWER.tag.in_(tags), _ANSWER.contained.is_(True)
    )
    pulls: set[int] = set()
    for query in (merged, named, held) if tags else (merged,):
        pulls |= set(session.connection().execute(query).scalars())
    pulls = _with_taken_back(session, repo_id, repo, pulls)
    return sorted(_said_fixed_by(session, repo_id, repo, pulls) | _said_released_in(session, repo_id, tags))


def _with_taken_back(session: Session, repo_id: int, repo: str, pulls: set[int]) -> set[int]:
    """These, and what they take back or bring back, and so on."""
    found, fresh = set(pulls), set(pulls)
    for _ in range(REVERTS_DEEP):
        asked, fresh = sorted(fresh), set()
        for part in _parts(asked):
            query = sql_select(_LINK.target_number).where(
                _LINK.repo_id == repo_id,
                _LINK.number.in_(part),
                _LINK.target_repo == repo,
                _LINK.kind.in_(["reverts", "relands"]),
            )
            fresh |= set(session.connection().execute(query).scalars()) - found
        found |= fresh
    return found


def _said_fixed_by(session: Session, repo_id: int, repo: str, pulls: Iterable[int]) -> set[int]:
    """The issues that these pull requests say to fix, and those that say to be fixed by them."""
    found: set[int] = set()
    for part in _parts(sorted(pulls)):
        fixes = sql_select(_LINK.target_number).where(
            _LINK.repo_id == repo_id,
            _LINK.number.in_(part),
            _LINK.target_repo == repo,
            _LINK.kind == "fixes",
        )
        fixed = sql_select(_LINK.number).where(
            _LINK.repo_id == repo_id,
            _LINK.target_repo == repo,
            _LINK.target_number.in_(part),
            _LINK.kind == "fixed_by",
        )
        told = sql_select(_FACT.number).where(
            _FACT.repo_id == repo_id,
            _FACT.field == "fix",
            _FACT.value_key.in_([f"#{number}" for number in part]),
        )
        for query in (fixes, fixed, told):
            found |= set(session.connection().execute(query).scalars())
    return found


def _said_released_in(session: Session, repo_id: int, tags: Sequence[str]) -> set[int]:
    """The issues whose people name one of these releases as the one with the fix."""
    if not tags:
        return set()
    told = sql_select(_FACT.number).where(_FACT.repo_id == repo_id, _FACT.field == "fix")
    query = sql_select(_READING.number, _READING.facts["fix"]["released_in"].as_string()).where(
        _READING.repo_id == repo_id, _READING.number.in_(told)
    )
    plain = {tag.removeprefix("v") for tag in tags}
    rows: list[Any] = list(session.connection().execute(query).all())
    return {number for number, release in rows if release and release.removeprefix("v") in plain}


def remedies_told_between(
    session: Session, repo_id: int, opened: Sequence[int], start: datetime, end: datetime
) -> list[ToldRemedy]:
    """Where remedies were told in this time: in a comment of then, or in the text of these issues of then."""
    told: dict[tuple[int, str], datetime] = {}
    for part in _parts(opened):
        query = (
            sql_select(_FACT.number, _FACT.source, _ISSUE.created_at)
            .join_from(
                metadata.tables["fact"],
                metadata.tables["issue"],
                (_ISSUE.repo_id == _FACT.repo_id) & (_ISSUE.number == _FACT.number),
            )
            .where(
                _FACT.repo_id == repo_id,
                _FACT.number.in_(part),
                _FACT.field == "workarounds",
                _FACT.source.not_like(f"{_COMMENT_SOURCE}%"),
            )
        )
        told |= {(number, source): at for number, source, at in session.connection().execute(query)}
    told |= _told_in_comments(session, repo_id, start, end)
    return [ToldRemedy(number, source, at) for (number, source), at in sorted(told.items())]


def _told_in_comments(
    session: Session, repo_id: int, start: datetime, end: datetime
) -> dict[tuple[int, str], datetime]:
    query = (
        sql_select(_FACT.number, _FACT.source)
        .where(
            _FACT.field == "workarounds",
            _FACT.repo_id == repo_id,
            _FACT.source.like(f"{_COMMENT_SOURCE}%"),
        )
        .distinct()
    )
    sources: dict[int, tuple[int, str]] = {}
    for number, source in session.connection().execute(query):
        key = source.removeprefix(_COMMENT_SOURCE)
        if key.isdigit():
            sources[int(key)] = (number, source)
    told: dict[tuple[int, str], datetime] = {}
    for part in _parts(sorted(sources)):
        dated = sql_select(_COMMENT.id, _COMMENT.created_at).where(
            _COMMENT.repo_id == repo_id,
            _COMMENT.id.in_(part),
            _COMMENT.gone_at.is_(None),
            _COMMENT.created_at >= start,
            _COMMENT.created_at < end,
        )
        told |= {sources[key]: at for key, at in session.connection().execute(dated)}
    return told


def told_in_reports(
    session: Session, repo_id: int, numbers: Sequence[int], fields: Sequence[str]
) -> list[tuple[str, str, str, int]]:
    """What stands in the facts of these issues: field, value, value in lower case, number; each once."""
    found: set[tuple[str, str, str, int]] = set()
    for part in _parts(numbers):
        query = sql_select(_FACT.field, _FACT.value, _FACT.value_key, _FACT.number).where(
            _FACT.repo_id == repo_id, _FACT.number.in_(part), _FACT.field.in_(list(fields))
        )
        found |= {(row[0], row[1], row[2], row[3]) for row in session.connection().execute(query)}
    return sorted(found)


def _parts(numbers: Iterable[int]) -> Iterable[list[int]]:
    """So many at a time as one statement takes."""
    told = list(numbers)
    return (told[start : start + KEYS_PER_QUERY] for start in range(0, len(told), KEYS_PER_QUERY))
