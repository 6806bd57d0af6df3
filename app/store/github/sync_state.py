"""How far the copy of each repository reaches: cursors, runs, and webhook deliveries that were taken in."""

from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, delete, func, insert, select, update
from sqlalchemy.orm import Session

from app.errors import NotFoundError
from app.store.engine.connect import insert_new, upsert
from app.store.records import SyncRunRecord
from app.store.tables import DELIVERY, REPOSITORY, SYNC_CURSOR, SYNC_RUN

RUNNING = "running"
KILLED = "killed"
RUNS_KEPT = timedelta(days=90)
"""A round every quarter of an hour makes some 9,000 runs in this time."""
DELIVERIES_KEPT = timedelta(days=30)
"""GitHub lets a person send a delivery again for three days; an id lasts ten times as long here."""

_RUN, _CURSOR = SYNC_RUN.c, SYNC_CURSOR.c


def fresh_as_of(session: Session, repo_id: int) -> datetime | None:
    """When the repository's newest complete sync ended; None before the first."""
    is_complete = (_RUN.repo_id == repo_id) & (_RUN.outcome == "complete")
    query = select(_RUN.ended_at).where(is_complete).order_by(_RUN.ended_at.desc()).limit(1)
    return session.connection().execute(query).scalar()


def last_run_of(session: Session, repo_id: int) -> SyncRunRecord | None:
    """The repository's newest run that has ended, or None."""
    return next(iter(last_runs(session, 1, (_RUN.repo_id == repo_id) & _RUN.ended_at.is_not(None))), None)


def last_runs(session: Session, limit: int = 10, *chosen: ColumnElement[bool]) -> list[SyncRunRecord]:
    """The newest runs, or the chosen ones among them, newest first."""
    columns = (_RUN[item.name] for item in fields(SyncRunRecord) if item.name != "repo")
    query = select(REPOSITORY.c.full_name, *columns).join_from(SYNC_RUN, REPOSITORY).where(*chosen)
    rows = session.connection().execute(query.order_by(_RUN.id.desc()).limit(limit))
    return [SyncRunRecord(*row) for row in rows]


def cursors_of(session: Session, repo_id: int) -> dict[str, tuple[dict[str, Any], datetime]]:
    """Where each stream stands, and when it moved there."""
    query = select(_CURSOR.stream, _CURSOR.position, _CURSOR.moved_at).where(_CURSOR.repo_id == repo_id)
    rows = session.connection().execute(query.order_by(_CURSOR.stream))
    return {stream: (position, moved_at) for stream, position, moved_at in rows}


def find_cursor(session: Session, repo_id: int, stream: str) -> dict[str, Any]:
    """The stored position of a stream ("issues", "comments", "releases"); empty at the start."""
    position, _ = cursors_of(session, repo_id).get(stream, ({}, None))
    return position


def save_cursor(session: Session, repo_id: int, stream: str, position: dict[str, Any]) -> None:
    """Move a stream's cursor; to be done in the transaction that stores what it passed."""
    row = {"repo_id": repo_id, "stream": stream, "position": position, "moved_at": datetime.now(UTC)}
    upsert(session, SYNC_CURSOR, [row], keys=("repo_id", "stream"))


def begin_run(session: Session, repo_id: int) -> int:
    """Note that a sync began; returns the run's key.

    Runs that never noted their end are closed as killed. One that still lives beside this one notes so at its
    next page (`note_run`) or its end.
    """
    now = datetime.now(UTC)
    is_open = (_RUN.repo_id == repo_id) & (_RUN.outcome == RUNNING)
    session.connection().execute(update(SYNC_RUN).where(is_open).values(outcome=KILLED, ended_at=now))
    row = {"repo_id": repo_id, "started_at": now, "outcome": RUNNING}
    found: int = session.connection().execute(insert(SYNC_RUN).values(row).returning(_RUN.id)).scalar_one()
    return found


def note_run(session: Session, run_id: int, **figures: Any) -> None:
    """Note that a run is under way, and its figures so far: requests, not_modified, remaining, stored."""
    end_run(session, run_id, outcome=RUNNING, ended_at=None, **figures)


def end_run(session: Session, run_id: int, **figures: Any) -> None:
    """Note how a run ended: outcome, requests, not_modified, remaining, stored, fault.

    Raises:
        NotFoundError: there is no such run.
    """
    values = {"ended_at": datetime.now(UTC), **figures}
    statement = update(SYNC_RUN).where(_RUN.id == run_id).values(**values)
    if not session.connection().execute(statement).rowcount:
        raise NotFoundError(f"sync run {run_id} is not known")


def purge_runs(session: Session) -> int:
    """Delete the runs that ended longer ago than `RUNS_KEPT`, but each repository's last complete one."""
    last = select(func.max(_RUN.id)).where(_RUN.outcome == "complete").group_by(_RUN.repo_id)
    is_old = (_RUN.ended_at < datetime.now(UTC) - RUNS_KEPT) & _RUN.id.not_in(last)
    return session.connection().execute(delete(SYNC_RUN).where(is_old)).rowcount


def add_delivery(session: Session, delivery_id: str, event: str) -> bool:
    """Note a webhook delivery, in the transaction that stores its content; False if it was noted before."""
    row = {"id": delivery_id, "event": event, "received_at": datetime.now(UTC)}
    return insert_new(session, DELIVERY, row, keys=("id",))


def purge_deliveries(session: Session) -> int:
    """Delete the deliveries older than `DELIVERIES_KEPT`; how many they were."""
    is_old = DELIVERY.c.received_at < datetime.now(UTC) - DELIVERIES_KEPT
    return session.connection().execute(delete(DELIVERY).where(is_old)).rowcount
