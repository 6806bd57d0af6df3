"""Lock that allows one sync at a time among all processes and hosts that share a database.

On PostgreSQL it is an advisory lock, on SQLite a lock on a file beside the database. It is released at the
end of the `with` block or of the process. It only saves work: concurrent syncs are safe, but send all
requests to GitHub twice.
"""

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from app.errors import StoreError
from app.store.engine.connect import is_sqlite, process_name
from app.store.engine.errors import explain


@dataclass(frozen=True, slots=True)
class Purpose:
    """The task that a lock protects.

    Attributes:
        key: number of the PostgreSQL advisory lock, scoped to the database.
        suffix: of the lock file beside a SQLite database; it contains the holder's name.
    """

    key: int
    suffix: str


SYNC = Purpose(0x74726961, ".sync-lock")  # the number spells "tria"
READING = Purpose(0x74726962, ".reading-lock")
LOOKED_AT_S, LOOK_AGAIN_S = 3.0, 0.02
"""Checking whether a recorded holder is alive takes the lock briefly (longer on a busy machine), so an
acquirer that finds the lock taken but no recorded holder tries again for this long, at this interval."""
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
    """Try to hold the lock in the `with` block. Yield False if another process still holds it.

    Args:
        on_wait: called once with the holder's name, before waiting.
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
    """Return the process that is syncing this database, such as "process 12 on host", or None."""
    with _as_store_error():
        if is_sqlite(engine):
            return _find_file_holder(engine.url.database)
        with engine.connect() as connection:
            found = connection.execute(_FIND_HOLDER, {"key": SYNC.key}).scalar()
        return str(found).removeprefix(_LOCK_NAME) if found is not None else None


def _take(engine: Engine, purpose: Purpose) -> Callable[[], None] | None:
    """Take the lock and return the function that releases it, or None if it is held elsewhere.

    The lock belongs to a dedicated connection, so it is released however the process ends (within a minute
    if its host is lost). It never blocks readers or writers of the database.
    """
    with _as_store_error():
        if is_sqlite(engine):
            return _lock_file(engine.url.database, purpose)
        return _lock_advisory(engine, purpose)


@contextmanager
def _as_store_error() -> Iterator[None]:
    try:
        yield
    except (DBAPIError, OSError) as error:
        raise StoreError(f"the sync lock cannot be used: {explain(error)}") from error


def _lock_advisory(engine: Engine, purpose: Purpose) -> Callable[[], None] | None:
    key = {"key": purpose.key}
    with ExitStack() as held:
        connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        held.enter_context(closing(connection))
        connection.detach()  # the pool would keep it open, and the lock with it
        connection.execute(_NAME_HOLDER, {"name": (_LOCK_NAME + process_name())[:63]})
        if not connection.execute(text("SELECT pg_try_advisory_lock(:key)"), key).scalar():
            return None
        held.enter_context(suppress(DBAPIError))  # a lost connection has already released it
        held.callback(connection.execute, text("SELECT pg_advisory_unlock(:key)"), key)
        return held.pop_all().close


def _lock_file(database: str | None, purpose: Purpose) -> Callable[[], None] | None:
    if not database or database == ":memory:":  # private to this process
        return lambda: None
    until = time.monotonic() + LOOKED_AT_S
    with ExitStack() as held:
        file = held.enter_context(Path(database + purpose.suffix).open("ab+", buffering=0))
        while not _has_locked(file, fcntl.LOCK_EX):
            if _name_in(file) or time.monotonic() > until:
                return None
            time.sleep(LOOK_AGAIN_S)
        held.callback(file.truncate, 0)
        file.truncate(0)
        file.write(process_name().encode())
        return held.pop_all().close


def _has_locked(file: IO[bytes], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _name_in(file: IO[bytes]) -> str:
    """Return the holder's name; the process may have died."""
    file.seek(0)
    return file.read().decode(errors="replace")


def _find_file_holder(database: str | None) -> str | None:
    path = Path(f"{database}{SYNC.suffix}")
    if not path.exists():
        return None
    with path.open("rb", buffering=0) as file:
        name = _name_in(file)
        return None if not name or _has_locked(file, fcntl.LOCK_SH) else name
