"""How many issues, pull requests and indexed texts are stored, and when a repository's last sync ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.store.records import GITHUB
from app.store.session import remembered
from app.store.tables import ISSUE, REPOSITORY, SYNC_RUN

_ISSUE = ISSUE.c
_ISSUES = select(func.count()).where(_ISSUE.repo_id == REPOSITORY.c.id, _ISSUE.is_pull_request.is_(False))
_AS_OF = select(func.max(SYNC_RUN.c.ended_at)).where(
    SYNC_RUN.c.repo_id == REPOSITORY.c.id, SYNC_RUN.c.outcome == "complete"
)
# Asked with every diagnosis, so built once.
_STOCK = select(*REPOSITORY.c, _ISSUES.scalar_subquery(), _AS_OF.scalar_subquery())


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
    """What is stored of these repositories, in their order."""
    every = remembered(session, "stock", lambda: session.connection().execute(_STOCK).all())
    rows = [row for row in every if row.full_name in repos]
    rows.sort(key=lambda row: repos.index(row.full_name))
    return Stock(
        {row[0]: row[1] for row in rows},
        sum(row[2] for row in rows),
        min((row[3] for row in rows if row[3] is not None), default=None),
    )


def count_issues(session: Session, repo_id: int) -> dict[str, int]:
    """How many are stored: {"issues", "pulls", "from_cards"}; a card is an issue that GitHub did not list."""
    query = select(
        func.count().filter(_ISSUE.is_pull_request.is_(False)).label("issues"),
        func.count().filter(_ISSUE.is_pull_request).label("pulls"),
        func.count().filter(_ISSUE.origin != GITHUB).label("from_cards"),
    )
    return dict(session.connection().execute(query.where(_ISSUE.repo_id == repo_id)).mappings().one())
