"""How far the copy of each repository reaches: cursors and runs."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import delete, func, update
from sqlmodel import Session, col, select

from app.errors import NotFoundError
from app.store.engine.connect import upsert
from app.store.records import SyncRunRecord
from app.store.tables import RepositoryRow, SyncCursorRow, SyncRunRow, metadata


def fresh_as_of(session: Session, repo_id: int) -> datetime | None:
    """When the repository's newest complete sync ended; None before the first."""
    query = (
        select(SyncRunRow.ended_at)
        .where(SyncRunRow.repo_id == repo_id, SyncRunRow.outcome == "complete")
        .order_by(col(SyncRunRow.ended_at).desc())
        .limit(1)
    )
    return session.exec(query).first()


def last_run_of(session: Session, repo_id: int) -> SyncRunRecord | None:
    """The repository's newest run that has ended, or None."""
    query = (
        select(SyncRunRow, RepositoryRow.full_name)
        .join(RepositoryRow, col(RepositoryRow.id) == col(SyncRunRow.repo_id))
        .where(SyncRunRow.repo_id == repo_id, col(SyncRunRow.ended_at).is_not(None))
        .order_by(col(SyncRunRow.id).desc())
        .limit(1)
    )
    found = session.exec(query).first()
    if found is None:
        return None
    row, name = found
    return _record(row, name)


def _record(row: SyncRunRow, repo: str) -> SyncRunRecord:
    values = {item.name: getattr(row, item.name) for item in fields(SyncRunRecord) if item.name != "repo"}
    return SyncRunRecord(repo=repo, **values)


def cursors_of(session: Session, repo_id: int) -> dict[str, tuple[dict[str, Any], datetime]]:
    """Where each stream stands, and when it moved there."""
    query = select(SyncCursorRow).where(SyncCursorRow.repo_id == repo_id).order_by(col(SyncCursorRow.stream))
    return {row.stream: (dict(row.position), row.moved_at) for row in session.exec(query)}


RUNNING = "running"
KILLED = "killed"
RUNS_KEPT = timedelta(days=90)
"""A round every quarter of an hour makes some 9,000 runs in this time."""


def find_cursor(session: Session, repo_id: int, stream: str) -> dict[str, Any]:
    """The stored position of a stream ("issues", "comments", "releases"); empty at the start."""
    row = session.get(SyncCursorRow, (repo_id, stream))
    return dict(row.position) if row else {}


def save_cursor(session: Session, repo_id: int, stream: str, position: dict[str, Any]) -> None:
    """Move a stream's cursor; to be done in the transaction that stores what it passed."""
    row = {"repo_id": repo_id, "stream": stream, "position": position, "moved_at": datetime.now(UTC)}
    upsert(session, metadata.tables["sync_cursor"], [row], keys=("repo_id", "stream"))


def begin_run(session: Session, repo_id: int) -> int:
    """Note that a sync began; returns the run's key.

    Runs that never told their end are closed as killed: nobody else will. One that still lives beside
    this one tells so at its next page (`note_run`) or its end.
    """
    session.connection().execute(
        update(SyncRunRow)
        .where(col(SyncRunRow.repo_id) == repo_id, col(SyncRunRow.outcome) == RUNNING)
        .values(outcome=KILLED, ended_at=datetime.now(UTC))
    )
    row = SyncRunRow(repo_id=repo_id, started_at=datetime.now(UTC), outcome=RUNNING)
    session.add(row)
    session.flush()
    if row.id is None:
        raise NotFoundError("the sync run could not be noted")
    return row.id


def note_run(session: Session, run_id: int, **figures: Any) -> None:
    """Note that a run is under way, and its figures so far: requests, not_modified, remaining, stored."""
    session.connection().execute(
        update(SyncRunRow)
        .where(col(SyncRunRow.id) == run_id)
        .values(outcome=RUNNING, ended_at=None, **figures)
    )


def end_run(session: Session, run_id: int, **figures: Any) -> None:
    """Note how a run ended: outcome, requests, not_modified, remaining, stored, fault."""
    row = session.get(SyncRunRow, run_id)
    if row is None:
        raise NotFoundError(f"sync run {run_id} is not known")
    for name, value in figures.items():
        setattr(row, name, value)
    row.ended_at = datetime.now(UTC)
    session.add(row)


def purge_runs(session: Session) -> int:
    """Forget the runs that ended longer ago than `RUNS_KEPT`, but each repository's last complete one."""
    complete = select(func.max(SyncRunRow.id)).where(SyncRunRow.outcome == "complete")
    last = complete.group_by(col(SyncRunRow.repo_id))
    before = datetime.now(UTC) - RUNS_KEPT
    found = session.connection().execute(
        delete(SyncRunRow).where(col(SyncRunRow.ended_at) < before, col(SyncRunRow.id).not_in(last))
    )
    return found.rowcount


def last_runs(session: Session, limit: int = 10) -> list[SyncRunRecord]:
    """The newest runs, newest first."""
    query = (
        select(SyncRunRow, RepositoryRow.full_name)
        .join(RepositoryRow, col(RepositoryRow.id) == col(SyncRunRow.repo_id))
        .order_by(col(SyncRunRow.id).desc())
        .limit(limit)
    )
    return [_record(row, name) for row, name in session.exec(query)]
