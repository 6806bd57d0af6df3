"""What is stored of the repositories that are asked about: their keys, how many issues, how fresh.

Every answer tells it.

How many issues, pull requests and indexed texts each repository has, and when its last sync ended.

Every answer tells it and every search weighs its words by it, and to count takes longer with every issue. So
those who store issues and index them add what is new to a row of the repository, in the same transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, func, literal
from sqlalchemy import select as sql_select
from sqlmodel import Field, Session, SQLModel, col

from app.store.engine.connect import take_turn, upsert
from app.store.records import GITHUB
from app.store.session import remembered
from app.store.tables import IssueRow, ProfileRow, RepositoryRow, SyncRunRow, metadata


@dataclass(frozen=True, slots=True)
class Stock:
    """What of the asked repositories anything is stored of.

    Attributes:
        repositories: key to name.
        issues: without pull requests.
        as_of: when the newest complete sync ended; of several repositories the one that is furthest behind.
    """

    repositories: Mapping[int, str]
    issues: int
    as_of: datetime | None


def find_stock(session: Session, repos: Sequence[str]) -> Stock:
    """What is stored of these repositories."""
    by_name = {tally.repo: tally for tally in find_tallies(session)}
    found = [by_name[repo] for repo in dict.fromkeys(repos) if repo in by_name]
    return Stock(
        {tally.repo_id: tally.repo for tally in found},
        sum(tally.counts.issues for tally in found),
        min((tally.as_of for tally in found if tally.as_of is not None), default=None),
    )


class TallyRow(SQLModel, table=True):
    """The counts kept of a repository; a card is an issue that GitHub did not tell yet."""

    __tablename__ = "tally"

    repo_id: int = Field(foreign_key="repository.id", primary_key=True)
    issues: int = 0
    pulls: int = 0
    from_cards: int = 0
    indexed: int = 0


@dataclass(frozen=True, slots=True)
class KeptCounts:
    """Of one repository: issues, pull requests, those of both known from cards alone, those indexed."""

    issues: int = 0
    pulls: int = 0
    from_cards: int = 0
    indexed: int = 0

    def __sub__(self, other: KeptCounts) -> KeptCounts:
        return KeptCounts(
            self.issues - other.issues,
            self.pulls - other.pulls,
            self.from_cards - other.from_cards,
            self.indexed - other.indexed,
        )


@dataclass(frozen=True, slots=True)
class RepositoryCounts:
    """A repository with its counts; `as_of` is when its newest complete sync ended, None before the first."""

    repo_id: int
    repo: str
    counts: KeptCounts
    as_of: datetime | None


_TALLY = metadata.tables["tally"]
_NAMES = ("issues", "pulls", "from_cards", "indexed")
_AS_OF = (
    sql_select(func.max(SyncRunRow.ended_at))
    .where(col(SyncRunRow.repo_id) == col(RepositoryRow.id), col(SyncRunRow.outcome) == "complete")
    .scalar_subquery()
)
# Asked with every diagnosis, so built once.
_ALL = sql_select(
    col(RepositoryRow.id), col(RepositoryRow.full_name), *(_TALLY.c[name] for name in _NAMES), _AS_OF
).join_from(metadata.tables["repository"], _TALLY, _TALLY.c.repo_id == col(RepositoryRow.id), isouter=True)


def find_tallies(session: Session) -> tuple[RepositoryCounts, ...]:
    """All repositories with their counts, which a session that only reads asks once."""
    return remembered(session, "tallies", lambda: _ask(session))


def _ask(session: Session) -> tuple[RepositoryCounts, ...]:
    return tuple(
        RepositoryCounts(repo_id, repo, KeptCounts(*(count or 0 for count in counts)), as_of)
        for repo_id, repo, *counts, as_of in session.connection().execute(_ALL)
    )


def add_to_tally(session: Session, repo_id: int, more: KeptCounts) -> None:
    """Add to a repository's counts, which the transaction that stores what they count does at its turn."""
    row = {"repo_id": repo_id, **{name: getattr(more, name) for name in _NAMES}}
    upsert(session, _TALLY, [row], keys=("repo_id",), add=_NAMES)


def count_anew(session: Session, repo_id: int) -> KeptCounts:
    """A repository's counts as its rows are, which takes longer with every issue."""
    is_pull, origin = col(IssueRow.is_pull_request), col(IssueRow.origin)
    stored = (
        sql_select(is_pull, origin, func.count())
        .where(col(IssueRow.repo_id) == literal(repo_id))
        .group_by(is_pull, origin)
    )
    rows = session.connection().execute(stored).all()
    indexed = sql_select(func.count()).select_from(ProfileRow).where(col(ProfileRow.repo_id) == repo_id)
    return KeptCounts(
        sum(count for pull, _, count in rows if not pull),
        sum(count for pull, _, count in rows if pull),
        sum(count for _, told_by, count in rows if told_by != GITHUB),
        session.connection().execute(indexed).scalar_one(),
    )


def correct_tally(session: Session, repo_id: int) -> KeptCounts:
    """Put the counts right by counting; how many more there are than was told, nothing if it was right."""
    take_turn(session)
    told = next((tally.counts for tally in find_tallies(session) if tally.repo_id == repo_id), KeptCounts())
    counted = count_anew(session, repo_id)
    session.connection().execute(delete(TallyRow).where(col(TallyRow.repo_id) == repo_id))
    add_to_tally(session, repo_id, counted)
    return counted - told
