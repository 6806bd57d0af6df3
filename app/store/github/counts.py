"""How many issues, pull requests and indexed texts each repository has, and when its last sync ended.

Every answer states it and every search weighs its words by it, and to count takes longer with every issue. So
those who store issues and index them add what is new to a row of the repository, in the same transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, func, select
from sqlmodel import Session

from app.store.engine.connect import take_turn, upsert
from app.store.records import GITHUB
from app.store.session import remembered
from app.store.tables import ISSUE, PROFILE, REPOSITORY, SYNC_RUN, TALLY


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


_NAMES = ("issues", "pulls", "from_cards", "indexed")
_AS_OF = (
    select(func.max(SYNC_RUN.c.ended_at))
    .where(SYNC_RUN.c.repo_id == REPOSITORY.c.id, SYNC_RUN.c.outcome == "complete")
    .scalar_subquery()
)
# Asked with every diagnosis, so built once.
_ALL = select(*REPOSITORY.c, *(TALLY.c[name] for name in _NAMES), _AS_OF).outerjoin_from(REPOSITORY, TALLY)


def find_tallies(session: Session) -> tuple[RepositoryCounts, ...]:
    """All repositories with their counts, which a session that only reads asks once."""

    def ask() -> tuple[RepositoryCounts, ...]:
        return tuple(
            RepositoryCounts(repo_id, repo, KeptCounts(*(count or 0 for count in counts)), as_of)
            for repo_id, repo, *counts, as_of in session.connection().execute(_ALL)
        )

    return remembered(session, "tallies", ask)


def add_to_tally(session: Session, repo_id: int, more: KeptCounts) -> None:
    """Add to a repository's counts, which the transaction that stores what they count does at its turn."""
    row = {"repo_id": repo_id, **{name: getattr(more, name) for name in _NAMES}}
    upsert(session, TALLY, [row], keys=("repo_id",), add=_NAMES)


def count_anew(session: Session, repo_id: int) -> KeptCounts:
    """A repository's counts as its rows are, which takes longer with every issue."""
    is_pull, origin = ISSUE.c.is_pull_request, ISSUE.c.origin
    stored = select(is_pull, origin, func.count()).where(ISSUE.c.repo_id == repo_id).group_by(is_pull, origin)
    rows = session.connection().execute(stored).all()
    indexed = select(func.count()).select_from(PROFILE).where(PROFILE.c.repo_id == repo_id)
    return KeptCounts(
        sum(count for pull, _, count in rows if not pull),
        sum(count for pull, _, count in rows if pull),
        sum(count for _, source, count in rows if source != GITHUB),
        session.connection().execute(indexed).scalar_one(),
    )


def correct_tally(session: Session, repo_id: int) -> KeptCounts:
    """Put the counts right by counting; how many more there are than was known, nothing if it was right."""
    take_turn(session)
    known = next((tally.counts for tally in find_tallies(session) if tally.repo_id == repo_id), KeptCounts())
    counted = count_anew(session, repo_id)
    session.connection().execute(delete(TALLY).where(TALLY.c.repo_id == repo_id))
    add_to_tally(session, repo_id, counted)
    return counted - known
