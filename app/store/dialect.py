"""The one file that knows which engine it speaks to: SQLite (3.40 and newer) or PostgreSQL.

Everything else in the archive is written once for both.
"""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, Table, create_engine, event, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlmodel import Session

from app.errors import StoreError

SQLITE_MINIMUM = (3, 40, 0)
BUSY_TIMEOUT_MS = 30_000
"""How long a writer waits for another before it gives up."""
MAPPED_BYTES = 1 << 30
"""Read through the system's page cache: SQLite's own is emptied by every commit of another process."""
CACHE_KIB = 64_000
"""Page cache of a SQLite connection; the index of 16,000 issues fits."""
ROWS_PER_STATEMENT = 500
"""Keeps a many-row insert below SQLite's 32,766 and PostgreSQL's 65,535 bound values."""
LOCK_KEY = 0x74726961
"""PostgreSQL's advisory locks have numbers, in each database apart; this one spells "tria"."""
TURN_KEY = 0x7475726E
"""Of the lock that writers hold in turn; this one spells "turn"."""
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


def open_engine(database_url: str) -> Engine:
    """An engine for the address, checked and set up; nothing is created but the SQLite file.

    Raises:
        StoreError: the address is wrong, the place cannot be written, or SQLite is too old.
    """
    try:
        url = make_url(database_url)
    except ArgumentError:
        raise StoreError("TRIAGE_DATABASE_URL is no database address") from None
    if url.get_backend_name() == "sqlite":
        return _open_sqlite(database_url, url.database)
    try:
        return create_engine(database_url, pool_pre_ping=True, pool_size=10)
    except ModuleNotFoundError:
        raise StoreError("PostgreSQL needs the extra: pip install 'vllm-triage[postgres]'") from None


def _open_sqlite(database_url: str, file: str | None) -> Engine:
    if sqlite3.sqlite_version_info < SQLITE_MINIMUM:
        found = sqlite3.sqlite_version
        raise StoreError(f"SQLite {found} is too old; 3.40 or newer is needed")
    if file and file != ":memory:":
        parent = Path(file).absolute().parent
        try:
            parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot make the folder {parent}: {error.strerror}") from None
    engine = create_engine(database_url, connect_args={"timeout": BUSY_TIMEOUT_MS / 1000})
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    try:
        with engine.connect() as connection:
            connection.execute(text("SELECT 1"))
    except DBAPIError as error:
        raise StoreError(f"cannot open the database {file}: {error.orig}") from None
    return engine


def _set_up_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    connection.isolation_level = None
    pragmas = (
        f"busy_timeout={BUSY_TIMEOUT_MS}", "journal_mode=WAL", "synchronous=NORMAL",
        "foreign_keys=ON", f"cache_size=-{CACHE_KIB}", "temp_store=MEMORY", f"mmap_size={MAPPED_BYTES}",
    )  # fmt: skip
    try:
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")
    except sqlite3.Error:
        connection.close()  # the pool does not know it yet
        raise


def _begin_sqlite(connection: Connection) -> None:
    # A writer that upgrades from a read lock cannot wait for another writer; it must begin as one.
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def upsert(
    session: Session,
    table: Table,
    rows: Sequence[Mapping[str, Any]],
    *,
    keys: Sequence[str],
    add: Sequence[str] = (),
    keep: Sequence[str] = (),
) -> None:
    """Insert rows, or update those whose `keys` exist already.

    Args:
        add: columns whose new value is added to the stored one.
        keep: columns an existing row keeps.
    """
    if not rows:
        return
    insert = sqlite.insert if session.get_bind().dialect.name == "sqlite" else postgresql.insert
    statement = insert(table)
    columns = [name for name in rows[0] if name not in keys and name not in keep]
    updates = {
        name: table.c[name] + statement.excluded[name] if name in add else statement.excluded[name]
        for name in columns
    }
    action = (
        statement.on_conflict_do_update(index_elements=list(keys), set_=updates)
        if updates
        else statement.on_conflict_do_nothing(index_elements=list(keys))
    )
    for start in range(0, len(rows), ROWS_PER_STATEMENT):
        session.connection().execute(action, list(rows[start : start + ROWS_PER_STATEMENT]))


def take_turn(session: Session) -> None:
    """Wait until no other writer is at work on this base; the turn ends with the session's transaction.

    A time noted after this is later than all that was noted by transactions before it.
    """
    connection = session.connection()  # on SQLite the transaction begins here, as a writer
    if connection.dialect.name != "sqlite":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": TURN_KEY})


def insert_new(session: Session, table: Table, row: Mapping[str, Any], *, keys: Sequence[str]) -> bool:
    """Insert a row unless one with its `keys` is there; whether it was inserted.

    A second writer of the same keys waits for the end of the first one's transaction.
    """
    insert = sqlite.insert if session.get_bind().dialect.name == "sqlite" else postgresql.insert
    statement = insert(table).values(dict(row)).on_conflict_do_nothing(index_elements=list(keys))
    return session.connection().execute(statement.returning(table.c[keys[0]])).first() is not None


# ---- the one lock of a base that is no row's


def take_lock(engine: Engine) -> Callable[[], None] | None:
    """The lock of this base: what frees it again, or None if another holds it.

    It hangs on a connection of its own, so the end of the process frees it too, however that comes; on
    another host it is freed within a minute. Nobody who reads or writes the base waits for it.

    Raises:
        StoreError: the database cannot be used.
    """
    try:
        return _lock_file(engine.url.database) if _is_sqlite(engine) else _lock_advisory(engine)
    except (DBAPIError, sqlite3.Error) as error:
        raise StoreError(f"the sync lock cannot be used: {getattr(error, 'orig', error)}") from error


def find_lock_holder(engine: Engine) -> str | None:
    """Who holds the lock, such as "process 12 on host"; None if it is free.

    Raises:
        StoreError: the database cannot be used.
    """
    try:
        if _is_sqlite(engine):
            return _find_file_holder(engine.url.database)
        with engine.connect() as connection:
            found = connection.execute(text(_FIND_HOLDER), {"key": LOCK_KEY}).scalar()
    except (DBAPIError, sqlite3.Error) as error:
        raise StoreError(f"the sync lock cannot be used: {getattr(error, 'orig', error)}") from error
    return str(found).removeprefix(_LOCK_NAME) if found is not None else None


def _is_sqlite(engine: Engine) -> bool:
    return engine.dialect.name == "sqlite"


def _own_name() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


def _lock_advisory(engine: Engine) -> Callable[[], None] | None:
    connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    connection.detach()  # the pool would keep it open, and the lock with it
    try:
        connection.execute(text(_NAME_HOLDER), {"name": (_LOCK_NAME + _own_name())[:63]})
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
        connection.execute("INSERT INTO holder VALUES (?)", (_own_name(),))
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
