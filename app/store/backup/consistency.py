"""Whether what is derived agrees with what it is derived from: index, readings, views, clusters.

All of it can be made again from the raw rows, so a fault here loses nothing. Large tables are looked at in
samples, spread evenly by key; term ids are hashes, so any stretch of them is a fair sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, func, tuple_
from sqlmodel import Session, col, select

from app.store.derived.search_index import find_profiles
from app.store.tables import (
    ClusterMemberRow,
    ClusterRow,
    IssueRow,
    KeptLogRow,
    PairViewRow,
    PostingRow,
    ProfileRow,
    ReadingRow,
    TermRow,
)

PLACES = 20
TERMS_PER_PLACE = 20
PROFILES = 50
_LOWEST, _SPAN = -(1 << 63), 1 << 64


@dataclass(frozen=True, slots=True)
class IndexCondition:
    """Of the sampled terms and issues, how many disagree."""

    terms: int
    wrong_counts: int
    orphan_postings: int
    issues: int
    torn_profiles: int


def look_at_index(session: Session) -> IndexCondition:
    """Compare a sample of terms with their postings, and a sample of issues with the index."""
    told = _some_terms(session)
    counted = _count_postings(session, list(told))
    keys = _some_profiles(session)
    return IndexCondition(
        terms=len(told),
        wrong_counts=sum(df != counted.get(key, 0) for key, df in told.items()),
        orphan_postings=_count_orphans(session, list(told)),
        issues=len(keys),
        torn_profiles=sum(not _is_whole(session, key) for key in keys),
    )


def _some_terms(session: Session) -> dict[int, int]:
    """Terms and in how many issues each is said to stand."""
    found: dict[int, int] = {}
    for place in range(PLACES):
        start = _LOWEST + place * (_SPAN // PLACES)
        query = (
            select(TermRow.id, TermRow.df)
            .where(col(TermRow.id) >= start)
            .order_by(col(TermRow.id))
            .limit(TERMS_PER_PLACE)
        )
        found |= dict(iter(session.exec(query)))
    return found


def _count_postings(session: Session, terms: Sequence[int]) -> dict[int, int]:
    query = (
        select(PostingRow.term_id, func.count())
        .where(col(PostingRow.term_id).in_(terms))
        .group_by(col(PostingRow.term_id))
    )
    return dict(iter(session.exec(query)))


def _count_orphans(session: Session, terms: Sequence[int]) -> int:
    query = (
        select(func.count())
        .select_from(PostingRow)
        .outerjoin(
            IssueRow,
            (col(IssueRow.repo_id) == col(PostingRow.repo_id))
            & (col(IssueRow.number) == col(PostingRow.number)),
        )
        .where(col(PostingRow.term_id).in_(terms), col(IssueRow.number).is_(None))
    )
    return session.exec(query).one()


def _some_profiles(session: Session) -> list[tuple[int, int]]:
    """Keys of issues that are indexed, evenly spread over each repository."""
    found: set[tuple[int, int]] = set()
    limits = select(ProfileRow.repo_id, func.min(ProfileRow.number), func.max(ProfileRow.number)).group_by(
        col(ProfileRow.repo_id)
    )
    for repo_id, first, last in session.exec(limits).all():
        for place in range(PROFILES):
            query = (
                select(ProfileRow.number)
                .where(
                    ProfileRow.repo_id == repo_id,
                    ProfileRow.number >= first + place * (last - first) // PROFILES,
                )
                .order_by(col(ProfileRow.number))
                .limit(1)
            )
            found.add((repo_id, session.exec(query).one()))
    return sorted(found)


def _is_whole(session: Session, key: tuple[int, int]) -> bool:
    """Whether each term of an issue's profile leads to the issue."""
    ids = find_profiles(session, [key])[key].ids.tolist()
    found = 0
    for start in range(0, len(ids), 900):
        query = select(func.count()).where(
            col(PostingRow.term_id).in_(ids[start : start + 900]),
            col(PostingRow.repo_id) == key[0],
            col(PostingRow.number) == key[1],
        )
        found += session.exec(query).one()
    return found == len(ids)


def count_without_view(session: Session, repo_id: int) -> int:
    """How many issues that were read have no view to be compared by."""
    return _count_without(session, repo_id, PairViewRow, col(ReadingRow.fault).is_(None))


def count_without_cluster(session: Session, repo_id: int) -> int:
    """How many issues that report a failure are in no cluster."""
    fails = col(ReadingRow.facts)["is_failure"].as_boolean()
    return _count_without(session, repo_id, ClusterMemberRow, fails & col(IssueRow.gone_at).is_(None))


def _count_without(
    session: Session,
    repo_id: int,
    table: type[PairViewRow] | type[ClusterMemberRow],
    asked: ColumnElement[bool],
) -> int:
    """How many read issues that meet a condition have no row in a table."""
    query = (
        select(func.count())
        .select_from(ReadingRow)
        .join(
            IssueRow,
            (col(IssueRow.repo_id) == col(ReadingRow.repo_id))
            & (col(IssueRow.number) == col(ReadingRow.number)),
        )
        .outerjoin(
            table,
            (col(table.repo_id) == col(ReadingRow.repo_id)) & (col(table.number) == col(ReadingRow.number)),
        )
        .where(
            ReadingRow.repo_id == repo_id,
            asked,
            col(IssueRow.is_pull_request).is_(False),
            col(table.number).is_(None),
        )
    )
    return session.exec(query).one()


def count_lost_members(session: Session) -> int:
    """How many issues are in a cluster that is not there."""
    there = select(ClusterRow.repo_id, ClusterRow.id)
    member = tuple_(col(ClusterMemberRow.repo_id), col(ClusterMemberRow.cluster_id))
    return session.exec(select(func.count()).select_from(ClusterMemberRow).where(member.not_in(there))).one()


def count_overdue_logs(session: Session, now: datetime) -> int:
    """How many kept logs are still there after their time."""
    query = select(func.count()).select_from(KeptLogRow).where(col(KeptLogRow.expires_at) <= now)
    return session.exec(query).one()
