"""Masked logs that their owners chose to keep, until their time is over or their delete link is used."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import delete, func
from sqlmodel import Session, col, select

from app.store.tables import KeptLogRow


@dataclass(frozen=True, slots=True)
class KeptLogRecord:
    """A kept log; `delete_key` is the hash of the secret in the delete link."""

    id: str
    delete_key: str
    log: str
    answer: dict[str, Any]
    kept_at: datetime
    expires_at: datetime


def add_kept_log(session: Session, record: KeptLogRecord) -> None:
    """Keep a log under an id that is new."""
    session.add(KeptLogRow(**asdict(record)))


def find_kept_log(session: Session, key: str, now: datetime) -> KeptLogRecord | None:
    """The log under this id, unless its time is over."""
    query = select(KeptLogRow).where(KeptLogRow.id == key, col(KeptLogRow.expires_at) > now)
    row = session.exec(query).first()
    return KeptLogRecord(*(getattr(row, item.name) for item in fields(KeptLogRecord))) if row else None


def delete_kept_log(session: Session, key: str, delete_key: str) -> bool:
    """Delete the log under this id if the hash is that of its delete link; whether there was one."""
    found = session.connection().execute(
        delete(KeptLogRow).where(col(KeptLogRow.id) == key, col(KeptLogRow.delete_key) == delete_key)
    )
    return found.rowcount > 0


def purge_kept_logs(session: Session, now: datetime) -> int:
    """Delete the logs whose time is over; how many they were."""
    found = session.connection().execute(delete(KeptLogRow).where(col(KeptLogRow.expires_at) <= now))
    return found.rowcount


def count_kept_logs(session: Session, *, expired_before: datetime | None = None) -> int:
    """How many logs are kept; with a time, how many that should have gone by then."""
    query = select(func.count()).select_from(KeptLogRow)
    if expired_before is not None:
        query = query.where(col(KeptLogRow.expires_at) <= expired_before)
    return session.exec(query).one()
