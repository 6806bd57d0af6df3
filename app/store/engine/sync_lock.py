"""One sync at a time, however many processes and hosts share a base.

The lock is PostgreSQL's advisory one, or one on a file beside SQLite's. It is freed at the end of the `with`,
and by the end of its process. It is a courtesy, not a guard: two syncs at once lose nothing, they only ask
GitHub twice.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from app.errors import StoreError
from app.store.engine.connect import is_sqlite, own_name
from app.store.engine.errors import explain


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a lock is for.

    Attributes:
        key: PostgreSQL's advisory locks have numbers, in each database apart.
        suffix: of the file beside a SQLite base; a lock on the base itself would stop its writers.
    """

    key: int
    suffix: str


SYNC = Purpose(0x74726961, ".sync-lock")  # the number spells "tria"
READING = Purpose(0x74726962, ".reading-lock")
LOCK_BUSY_S = 0.3
LOOKED_AT_S = 3.0
"""To see whether a named holder still lives takes the lock for an instant, longer on a busy machine; whoever
wants it and finds nobody named waits for so long."""
RETRY_EVERY_S = 0.5

_LOCK_NAME = "triage sync: "
_FIND_HOLDER = text("""
    SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'advisory' AND l.granted AND l.classid = 0 AND l.objsubid = 1
    AND CAST(l.objid AS bigint) = :key
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
""")
_NAME_HOLDER = text("""
    SELECT set_config('application_name', :name, false), set_config('tcp_keepalives_idle', '30', false),
    set_config('tcp_keepalives_interval', '10', false), set_config('tcp_keepalives_count', '3', false)
""")


@contextmanager
def sync_lock(
    engine: Engine,
    purpose: Purpose = SYNC,
    *,
    wait_s: float = 0.0,
    on_wait: Callable[[str], None] | None = None,
) -> Iterator[bool]:
    """Hold the lock in the body of the `with`; False there means that another process holds it.

    Args:
        on_wait: called once with the holder, before waiting.

    Raises:
        StoreError: the database cannot be used.
    """
    release = _take(engine, purpose)
    if release is None and wait_s > 0:
        if on_wait:
            on_wait(sync_holder(engine) or "another process")
        until = time.monotonic() + wait_s
        while release is None and time.monotonic() < until:
            time.sleep(RETRY_EVERY_S)
            release = _take(engine, purpose)
    try:
        yield release is not None
    finally:
        if release is not None:
            release()


def sync_holder(engine: Engine) -> str | None:
    """Which process syncs this base now, such as "process 12 on host"; None if none does.

    Raises:
        StoreError: the database cannot be used.
    """
    with _as_store_error():
        if is_sqlite(engine):
            return _find_file_holder(engine.url.database)
        with engine.connect() as connection:
            found = connection.execute(_FIND_HOLDER, {"key": SYNC.key}).scalar()
        return str(found).removeprefix(_LOCK_NAME) if found is not None else None


def _take(engine: Engine, purpose: Purpose) -> Callable[[], None] | None:
    """Take the lock: what frees it again, or None if another holds it.

    It hangs on a connection of its own, so the end of the process frees it too, however that comes; on
    another host it is freed within a minute. Nobody who reads or writes the base waits for it.
    """
    with _as_store_error():
        if is_sqlite(engine):
            return _lock_file(engine.url.database, purpose)
        return _lock_advisory(engine, purpose)


@contextmanager
def _as_store_error() -> Iterator[None]:
    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:
        raise StoreError(f"the sync lock cannot be used: {explain(error)}") from error


def _lock_advisory(engine: Engine, purpose: Purpose) -> Callable[[], None] | None:
    connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    connection.detach()  # the pool would keep it open, and the lock with it

    def free() -> None:
        with suppress(DBAPIError), closing(connection):  # a connection that is lost has freed it already
            connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": purpose.key})

    try:
        connection.execute(_NAME_HOLDER, {"name": (_LOCK_NAME + own_name())[:63]})
        if connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": purpose.key}).scalar():
            return free
    except BaseException:
        connection.close()
        raise
    connection.close()
    return None


def _lock_file(base: str | None, purpose: Purpose) -> Callable[[], None] | None:
    if not base or base == ":memory:":  # no other process can open it
        return lambda: None
    connection = _open_lock_file(base + purpose.suffix)
    until = time.monotonic() + LOOKED_AT_S
    try:
        while not _has_locked(connection):
            if _name_in(connection) is not None or time.monotonic() > until:
                connection.close()
                return None
    except BaseException:
        connection.close()
        raise

    def free() -> None:
        with closing(connection), suppress(sqlite3.OperationalError):
            connection.execute("DELETE FROM holder")
            connection.execute("COMMIT")

    return free


def _has_locked(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("CREATE TABLE IF NOT EXISTS holder (name TEXT NOT NULL)")
        connection.execute("DELETE FROM holder")
        connection.execute("INSERT INTO holder VALUES (?)", (own_name(),))
        connection.execute("COMMIT")  # or nobody else could read the name
        connection.execute(
            f"PRAGMA busy_timeout={LOOKED_AT_S * 1000:.0f}"
        )  # who looks meanwhile is soon done
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            raise
        connection.rollback()
        return False
    return True


def _name_in(connection: sqlite3.Connection) -> str | None:
    """Who holds the lock, or died while it did. Reading it takes nothing from who wants the lock."""
    try:
        found = connection.execute("SELECT name FROM holder").fetchone()
    except sqlite3.OperationalError:  # nobody has written a name yet
        return None
    return str(found[0]) if found else None


def _find_file_holder(base: str | None) -> str | None:
    if not base or not Path(base + SYNC.suffix).exists():
        return None
    with closing(_open_lock_file(base + SYNC.suffix)) as connection:
        name = _name_in(connection)
        if name is None:
            return None
        connection.execute("PRAGMA busy_timeout=0")
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            return name
        return None


def _open_lock_file(path: str) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=LOCK_BUSY_S, isolation_level=None, check_same_thread=False)
