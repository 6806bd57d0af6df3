"""Sync state of each repository: cursors, runs, and processed webhook deliveries."""

from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.orm import Session

from app.errors import NotFoundError
from app.store.engine.connect import insert_new, upsert
from app.store.records import SyncRunRecord
from app.store.tables import DELIVERY, REPOSITORY, SYNC_CURSOR, SYNC_RUN

RUNNING = "running"
KILLED = "killed"
RUNS_KEPT = timedelta(days=90)
"""A sync every 15 minutes makes about 9,000 runs in this time."""
DELIVERIES_KEPT = timedelta(days=30)
"""GitHub allows redelivery for three days; ids are kept ten times as long."""

_RUN, _CURSOR = SYNC_RUN.c, SYNC_CURSOR.c


def fresh_as_of(session: Session, repo_id: int) -> datetime | None:
    """Return when the repository's newest complete sync ended; None before the first."""
    is_complete = (_RUN.repo_id == repo_id) & (_RUN.outcome == "complete")
    query = select(_RUN.ended_at).where(is_complete).order_by(_RUN.ended_at.desc()).limit(1)
    return session.connection().execute(query).scalar()


def last_run_of(session: Session, repo_id: int) -> SyncRunRecord | None:
    """Return the repository's newest ended run, or None."""
    return next(iter(last_runs(session, 1, repo_id, has_ended=True)), None)


def last_runs(
    session: Session, limit: int = 10, repo_id: int | None = None, *, has_ended: bool = False
) -> list[SyncRunRecord]:
    """Return the newest runs of one or all repositories, newest first; with `has_ended`, only ended ones."""
    columns = (_RUN[item.name] for item in fields(SyncRunRecord) if item.name != "repo")
    query = select(REPOSITORY.c.full_name, *columns).join_from(SYNC_RUN, REPOSITORY)
    if repo_id is not None:
        query = query.where(_RUN.repo_id == repo_id)
    if has_ended:
        query = query.where(_RUN.ended_at.is_not(None))
    rows = session.connection().execute(query.order_by(_RUN.id.desc()).limit(limit))
    return [SyncRunRecord(*row) for row in rows]


def cursors_of(session: Session, repo_id: int) -> dict[str, tuple[dict[str, Any], datetime]]:
    """Return each stream's position and when it was last moved."""
    query = select(_CURSOR.stream, _CURSOR.position, _CURSOR.moved_at).where(_CURSOR.repo_id == repo_id)
    rows = session.connection().execute(query.order_by(_CURSOR.stream))
    return {stream: (position, moved_at) for stream, position, moved_at in rows}


def find_cursor(session: Session, repo_id: int, stream: str) -> dict[str, Any]:
    """Return the stored position of a stream ("issues", "comments", "releases"); initially empty."""
    position, _ = cursors_of(session, repo_id).get(stream, ({}, None))
    return position


def save_cursor(session: Session, repo_id: int, stream: str, position: dict[str, Any]) -> None:
    """Move a stream's cursor; must be in the transaction that stores the rows it passes."""
    row = {"repo_id": repo_id, "stream": stream, "position": position, "moved_at": datetime.now(UTC)}
    upsert(session, SYNC_CURSOR, [row], keys=("repo_id", "stream"))


def begin_run(session: Session, repo_id: int) -> int:
    """Record the start of a sync and return the run's key.

    Runs without a recorded end are closed as killed. If one is still alive, its next page (`note_run`) or its
    end corrects that.
    """
    now = datetime.now(UTC)
    is_open = (_RUN.repo_id == repo_id) & (_RUN.outcome == RUNNING)
    session.connection().execute(update(SYNC_RUN).where(is_open).values(outcome=KILLED, ended_at=now))
    row = {"repo_id": repo_id, "started_at": now, "outcome": RUNNING}
    found: int = session.connection().execute(insert(SYNC_RUN).values(row).returning(_RUN.id)).scalar_one()
    return found


def note_run(session: Session, run_id: int, **figures: Any) -> None:
    """Record that a run is in progress, with its counts: requests, not_modified, remaining, stored."""
    end_run(session, run_id, outcome=RUNNING, ended_at=None, **figures)


def end_run(session: Session, run_id: int, **figures: Any) -> None:
    """Record how a run ended: outcome, requests, not_modified, remaining, stored, fault.

    Raises:
        NotFoundError: there is no such run.
    """
    values = {"ended_at": datetime.now(UTC), **figures}
    statement = update(SYNC_RUN).where(_RUN.id == run_id).values(**values)
    if not session.connection().execute(statement).rowcount:
        raise NotFoundError(f"sync run {run_id} is not known")


def purge_runs(session: Session) -> int:
    """Delete runs that ended more than `RUNS_KEPT` ago, except each repository's last complete one."""
    last = select(func.max(_RUN.id)).where(_RUN.outcome == "complete").group_by(_RUN.repo_id)
    is_old = (_RUN.ended_at < datetime.now(UTC) - RUNS_KEPT) & _RUN.id.not_in(last)
    return session.connection().execute(delete(SYNC_RUN).where(is_old)).rowcount


def add_delivery(session: Session, delivery_id: str, event: str) -> bool:
    """Record a webhook delivery, in the transaction that stores its content; False if already recorded."""
    row = {"id": delivery_id, "event": event, "received_at": datetime.now(UTC)}
    return insert_new(session, DELIVERY, row, keys=("id",))


def purge_deliveries(session: Session) -> int:
    """Delete deliveries older than `DELIVERIES_KEPT` and return how many."""
    is_old = DELIVERY.c.received_at < datetime.now(UTC) - DELIVERIES_KEPT
    return session.connection().execute(delete(DELIVERY).where(is_old)).rowcount
