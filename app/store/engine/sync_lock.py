"""The one lock of a base that is no row's: PostgreSQL's advisory one, or that of a file beside SQLite's.

One sync at a time, however many processes and hosts share the archive.

In: an open archive. Out: whether this caller is the one. The lock is freed at the end of the `with`, and
by the death of its process. It is a courtesy, not a guard: two syncs at once lose nothing, they only ask
GitHub twice.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from app.errors import StoreError
from app.store.engine.connect import is_sqlite, own_name
from app.store.engine.errors import explain
from app.store.session import Store

LOCK_KEY = 0x74726961
"""PostgreSQL's advisory locks have numbers, in each database apart; this one spells "tria"."""
LOCK_SUFFIX = ".sync-lock"
"""Of the file beside a SQLite base: a lock on the base itself would stop its writers."""
LOCK_BUSY_S = 0.3
"""A look at the lock's holder takes it for an instant; who wants it outlasts that."""

_LOCK_NAME = "triage sync: "
_FIND_HOLDER = """
    SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'advisory' AND l.granted AND l.classid = 0 AND l.objsubid = 1
    AND CAST(l.objid AS bigint) = :key
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
_NAME_HOLDER = """
    SELECT set_config('application_name', :name, false), set_config('tcp_keepalives_idle', '30', false),
    set_config('tcp_keepalives_interval', '10', false), set_config('tcp_keepalives_count', '3', false)
"""


def take_lock(engine: Engine) -> Callable[[], None] | None:
    """The lock of this base: what frees it again, or None if another holds it.

    It hangs on a connection of its own, so the end of the process frees it too, however that comes; on
    another host it is freed within a minute. Nobody who reads or writes the base waits for it.

    Raises:
        StoreError: the database cannot be used.
    """
    try:
        return _lock_file(engine.url.database) if is_sqlite(engine) else _lock_advisory(engine)
    except (DBAPIError, sqlite3.Error) as error:
        raise StoreError(f"the sync lock cannot be used: {explain(error)}") from error


def find_lock_holder(engine: Engine) -> str | None:
    """Who holds the lock, such as "process 12 on host"; None if it is free.

    Raises:
        StoreError: the database cannot be used.
    """
    try:
        if is_sqlite(engine):
            return _find_file_holder(engine.url.database)
        with engine.connect() as connection:
            found = connection.execute(text(_FIND_HOLDER), {"key": LOCK_KEY}).scalar()
    except (DBAPIError, sqlite3.Error) as error:
        raise StoreError(f"the sync lock cannot be used: {explain(error)}") from error
    return str(found).removeprefix(_LOCK_NAME) if found is not None else None


def _lock_advisory(engine: Engine) -> Callable[[], None] | None:
    connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    connection.detach()  # the pool would keep it open, and the lock with it
    try:
        connection.execute(text(_NAME_HOLDER), {"name": (_LOCK_NAME + own_name())[:63]})
        if connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": LOCK_KEY}).scalar():
            return lambda: _free_advisory(connection)
    except BaseException:
        connection.close()
        raise
    connection.close()
    return None


def _free_advisory(connection: Connection) -> None:
    with suppress(DBAPIError), closing(connection):  # a connection that is lost has freed it already
        connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": LOCK_KEY})


def _lock_file(base: str | None) -> Callable[[], None] | None:
    if not base or base == ":memory:":  # no other process can open it
        return lambda: None
    connection = _open_lock_file(base)
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("CREATE TABLE IF NOT EXISTS holder (name TEXT NOT NULL)")
        connection.execute("DELETE FROM holder")
        connection.execute("INSERT INTO holder VALUES (?)", (own_name(),))
        connection.execute("COMMIT")  # or nobody else could read the name
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.Error as error:
        connection.close()
        if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            return None
        raise
    return connection.close


def _find_file_holder(base: str | None) -> str | None:
    if not base or not Path(base + LOCK_SUFFIX).exists():
        return None
    with closing(_open_lock_file(base)) as connection:
        connection.execute("PRAGMA busy_timeout=0")
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
        else:
            return None
        connection.execute(f"PRAGMA busy_timeout={LOCK_BUSY_S * 1000:.0f}")
        found = connection.execute("SELECT name FROM holder").fetchone()
        return str(found[0]) if found else "another process"


def _open_lock_file(base: str) -> sqlite3.Connection:
    return sqlite3.connect(
        base + LOCK_SUFFIX, timeout=LOCK_BUSY_S, isolation_level=None, check_same_thread=False
    )


LOOK_EVERY_S = 0.5


@contextmanager
def sync_lock(
    store: Store, *, wait_s: float = 0.0, on_wait: Callable[[str], None] | None = None
) -> Iterator[bool]:
    """Hold the lock in the body of the `with`; False there means that another process holds it.

    Args:
        store: the archive that is shared.
        wait_s: how long to wait for another to end.
        on_wait: told once who holds it, before waiting.

    Raises:
        StoreError: the database cannot be used.
    """
    release = take_lock(store.engine)
    if release is None and wait_s > 0:
        if on_wait:
            on_wait(sync_holder(store) or "another process")
        until = time.monotonic() + wait_s
        while release is None and time.monotonic() < until:
            time.sleep(LOOK_EVERY_S)
            release = take_lock(store.engine)
    try:
        yield release is not None
    finally:
        if release is not None:
            release()


def sync_holder(store: Store) -> str | None:
    """Which process syncs this archive now, such as "process 12 on host"; None if none does.

    Raises:
        StoreError: the database cannot be used.
    """
    return find_lock_holder(store.engine)
