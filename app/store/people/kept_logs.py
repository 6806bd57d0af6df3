"""Masked logs that their owners chose to keep, until their time is over or their delete link is used."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, func, insert, select
from sqlalchemy.orm import Session

from app.store.engine.connect import erasing
from app.store.tables import KEPT_LOG

LATE = timedelta(days=7)
"""Logs are purged hourly, so that none is over for so long, unless nobody purged or the clock is wrong."""

_LOG = KEPT_LOG.c


@dataclass(frozen=True, slots=True)
class KeptLogRecord:
    """A kept log; `delete_key` is the hash of the secret in the delete link, `owner` that of the client."""

    id: str
    delete_key: str
    log: str
    answer: dict[str, Any]
    kept_at: datetime
    expires_at: datetime
    owner: str | None = None
    size: int | None = None


def add_kept_log(session: Session, record: KeptLogRecord) -> None:
    """Keep a log under an id that is new."""
    with erasing(session) as connection:
        connection.execute(insert(KEPT_LOG).values(**asdict(record)))


def find_kept_log(session: Session, key: str, now: datetime) -> KeptLogRecord | None:
    """The log under this id, unless its time is over."""
    query = select(KEPT_LOG).where(_LOG.id == key, _LOG.expires_at > now)
    return next((KeptLogRecord(*row) for row in session.connection().execute(query)), None)


def delete_kept_log(session: Session, key: str, delete_key: str | None) -> bool:
    """Delete the log under this id, if the hash is that of its delete link; whether there was one.

    Without a hash, as the operator asks for it, it is deleted in any case.
    """
    is_it = (_LOG.id == key) & (delete_key is None or _LOG.delete_key == delete_key)
    with erasing(session) as connection:
        return connection.execute(delete(KEPT_LOG).where(is_it)).rowcount > 0


def purge_kept_logs(session: Session, now: datetime, *, is_sure: bool = False) -> int:
    """Delete the logs whose time is over; how many they were.

    A clock that runs far ahead would delete all. So where even the newest should have gone long ago, nothing
    is deleted, unless `is_sure`: the time is known to be right.
    """
    newest = select(func.max(_LOG.expires_at)).scalar_subquery()
    is_over = (_LOG.expires_at <= now) & (is_sure or newest > now - LATE)
    with erasing(session) as connection:
        return connection.execute(delete(KEPT_LOG).where(is_over)).rowcount


def sum_kept_logs(
    session: Session, owner: str | None = None, *, expired_before: datetime | None = None
) -> tuple[int, int]:
    """How many logs are kept, and their bytes: of all, of one owner, of those past their time by then."""
    query = select(func.count(), func.coalesce(func.sum(_LOG.size), 0)).select_from(KEPT_LOG)
    query = query if owner is None else query.where(_LOG.owner == owner)
    query = query if expired_before is None else query.where(_LOG.expires_at <= expired_before)
    count, size = session.connection().execute(query).one()
    return count, int(size)
