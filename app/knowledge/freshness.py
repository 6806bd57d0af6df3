"""How fresh a repository's copy is: the newest complete sync, the newest run, where each stream stands."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import Field

from app.extract.facts import Frozen
from app.store.freshness import cursors_of, fresh_as_of, last_run_of
from app.store.issues import find_repository
from app.store.session import Store

STALE_AFTER = timedelta(hours=24)


class RunView(Frozen):
    """How a sync ended: complete, partial (stopped on the way; what it fetched is stored), failed, killed."""

    outcome: str
    started_at: datetime
    ended_at: datetime | None
    was_cut_short: bool


class CursorView(Frozen):
    position: dict[str, Any]
    moved_at: datetime


class Freshness(Frozen):
    """One repository's. `is_stale`: no complete sync within a day; false before the first."""

    repo: str
    as_of: datetime | None = None
    age_s: int | None = None
    is_stale: bool = False
    last_run: RunView | None = None
    cursors: dict[str, CursorView] = Field(default_factory=dict)


def freshness(store: Store, repo: str) -> Freshness:
    """How fresh the copy of a repository is; empty where nothing is stored of it.

    Raises:
        StoreError: the database cannot be read.
    """
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        if repo_id is None:
            return Freshness(repo=repo)
        as_of, run = fresh_as_of(session, repo_id), last_run_of(session, repo_id)
        cursors = cursors_of(session, repo_id)
    age = datetime.now(UTC) - as_of if as_of else None
    return Freshness(
        repo=repo,
        as_of=as_of,
        age_s=max(0, int(age.total_seconds())) if age else None,
        is_stale=age is not None and age > STALE_AFTER,
        last_run=RunView(
            outcome=run.outcome, started_at=run.started_at, ended_at=run.ended_at,
            was_cut_short=run.outcome != "complete" and run.fault is not None,
        ) if run else None,
        cursors={name: CursorView(position=at, moved_at=moved) for name, (at, moved) in cursors.items()},
    )  # fmt: skip
