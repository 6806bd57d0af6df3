"""Connect to SQLite (3.40 or newer) or PostgreSQL (15 or newer), and hide their differences.

Only this package depends on the engine; the rest of the store is written once for both. Bulk copies need
engine-specific inserts, sequence resets and truncation, which are here too.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import (
    URL,
    Column,
    ColumnElement,
    Connection,
    Engine,
    Select,
    Table,
    bindparam,
    create_engine,
    delete,
    event,
    select,
    text,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.orm import Session

from app.errors import StoreError
from app.store.engine.errors import explain
from app.store.engine.sqlite_file import OWNER_ONLY, sqlite_file
from app.store.tables import UtcDateTime

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

SQLITE_MINIMUM = (3, 40, 0)
BUSY_TIMEOUT_MS = 30_000
"""How long a writer waits for another writer."""
LOCK_RETRY_S = 0.02
"""Delay between attempts where SQLite itself does not wait."""
MAPPED_BYTES = 1 << 30
"""Memory-mapped part of the file, in the system's page cache, which all workers share: SQLite's own cache is
invalidated by every commit of another process, and refilling it takes a call for each of about 300 pages."""
CACHE_KIB = 8_000
"""Page cache of a SQLite connection; a worker has up to sixteen connections."""
ROWS_PER_STATEMENT = 500
"""Keeps multi-row inserts below the limit on bound values: SQLite 32,766, PostgreSQL 65,535."""
KEYS_PER_QUERY = 900
"""Keys in one IN list; well below the same limits."""
APPLICATION = "triage"
"""Prefix of `application_name` on every PostgreSQL connection."""
POOL_SIZE = 10
POOL_OVERFLOW = 6
"""Pool and overflow together equal the number of a server's threads."""
POOL_WAIT_S = 10.0
SERVER_OPTIONS: Mapping[str, str | int] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
    "options": "-c jit=off",
}
"""Default PostgreSQL connection options; the URL may override them. A lost host is detected within a minute;
JIT is off, as compiling takes longer than any of our queries."""
TURN_KEY = 0x7475726E
"""Advisory lock that serializes writers; the number spells "turn"."""


def open_engine(database_url: str) -> Engine:
    """Return a configured engine for the URL; a SQLite file is created if missing, but no tables.

    Raises:
        StoreError: the URL is invalid, the file cannot be created or opened, or SQLite is too old.
    """
    try:
        url = make_url(database_url)
    except ArgumentError:
        raise StoreError("TRIAGE_DATABASE_URL is no database address") from None
    if url.get_backend_name() == "sqlite":
        return _open_sqlite(database_url, url.database)
    return _open_postgresql(url)


def _open_postgresql(url: URL) -> Engine:
    named = {"application_name": f"{APPLICATION}: {process_name()}"[:63], **SERVER_OPTIONS}
    try:
        engine = create_engine(
            url,
            pool_size=POOL_SIZE,
            max_overflow=POOL_OVERFLOW,
            pool_timeout=POOL_WAIT_S,
            pool_use_lifo=True,  # the last used connection has warm plans and caches
            pool_pre_ping=True,
            connect_args={name: value for name, value in named.items() if name not in url.query},
        )
    except ModuleNotFoundError:
        raise StoreError("PostgreSQL needs the extra: pip install 'vllm-triage[postgres]'") from None
    except SQLAlchemyError:
        raise StoreError("TRIAGE_DATABASE_URL names an engine that is not known") from None
    if engine.dialect.name == "postgresql":
        event.listen(engine, "connect", _set_up_postgresql)
        event.listen(engine, "begin", _begin_postgresql)
    return engine


def _set_up_postgresql(connection: Any, _record: Any) -> None:
    # psycopg binds each integer as the smallest type that fits, and the server prepares a statement anew for
    # each combination of types, so statements with many numbers would be planned every time.
    from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper

    for dumper in (Int8Dumper, Int8BinaryDumper):
        connection.adapters.register_dumper(int, dumper)


def _begin_postgresql(connection: Connection) -> None:
    wait_s = connection.get_execution_options().get("write_wait_s")
    if wait_s is not None:
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{wait_s * 1000:.0f}ms'")


def process_name() -> str:
    """Return a name for this process, unique among those that share a database."""
    return f"process {os.getpid()} on {socket.gethostname()}"


def is_sqlite(engine: Engine | Connection) -> bool:
    """True if the engine is SQLite."""
    return engine.dialect.name == "sqlite"


def reader_of(engine: Engine) -> Engine:
    """Return the engine with options for read-only transactions that see one snapshot of the data.

    SQLite does so by default; PostgreSQL needs REPEATABLE READ, which costs no extra round trip.
    """
    if is_sqlite(engine):
        return engine
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def writer_of(engine: Engine, wait_s: float | None = None) -> Engine:
    """Return the engine with options for writing; on SQLite, transactions begin with the write lock.

    Args:
        wait_s: how long to wait for another writer; None for the engine's default, for background jobs.
    """
    return engine.execution_options(writes=True, write_wait_s=wait_s)


def _open_sqlite(database_url: str, file: str | None) -> Engine:
    if sqlite3.sqlite_version_info < SQLITE_MINIMUM:
        found = sqlite3.sqlite_version
        raise StoreError(f"SQLite {found} is too old; 3.40 or newer is needed")
    # A `file:` URI says itself whether the file may be created.
    if file and file != ":memory:" and not file.startswith("file:"):
        parent = Path(file).absolute().parent
        try:
            parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot make the folder {parent}: {error.strerror}") from None
        with suppress(OSError):  # SQLite will report the error; its log file gets the same mode
            os.close(os.open(file, os.O_CREAT, OWNER_ONLY))
    # Reuse the last used connection first: its page cache is warm.
    lifo = {"pool_use_lifo": True} if sqlite_file(database_url) else {}
    engine = create_engine(database_url, connect_args={"timeout": BUSY_TIMEOUT_MS / 1000}, **lifo)
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    try:
        with engine.connect() as connection:
            connection.execute(text("SELECT 1"))
    except DBAPIError as error:
        raise StoreError(f"cannot open the database {file}: {explain(error)}") from None
    return engine


def _set_up_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    connection.isolation_level = None
    pragmas = (
        "synchronous=NORMAL",
        "foreign_keys=ON",
        f"cache_size=-{CACHE_KIB}",
        "temp_store=MEMORY",
        "secure_delete=ON",  # overwrites what is deleted: people may ask for it
        f"mmap_size={MAPPED_BYTES}",
    )
    try:
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        _enable_wal(connection)
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")
    except sqlite3.Error:
        connection.close()  # not yet in the pool
        raise


def _enable_wal(connection: sqlite3.Connection) -> None:
    """Turn on write-ahead logging, retrying while the file is busy.

    If several processes do so on an empty file at once, SQLite fails all but one without waiting, to avoid a
    deadlock.
    """
    give_up_at = monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or monotonic() > give_up_at:
                raise
            sleep(LOCK_RETRY_S)
        else:
            return


def _begin_sqlite(connection: Connection) -> None:
    # A transaction cannot wait while it upgrades a read lock to a write lock, so writers begin IMMEDIATE.
    options = connection.get_execution_options()
    if not options.get("writes", False):
        connection.exec_driver_sql("BEGIN")
        return
    wait_s = options.get("write_wait_s")
    wait_ms = BUSY_TIMEOUT_MS if wait_s is None else min(round(wait_s * 1000), BUSY_TIMEOUT_MS)
    connection.exec_driver_sql(f"PRAGMA busy_timeout={wait_ms}")
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def rows_in_parts(
    session: Session, query: Select[Any], column: ColumnElement[Any], keys: Iterable[Any]
) -> Iterator[Any]:
    """Yield the query's rows whose column is one of these keys, in batches of keys."""
    for part in in_parts(keys):
        yield from session.connection().execute(query.where(column.in_(part)))


def rows_with(
    session: Session, repo_id: int, key: Column[Any], keys: Iterable[Any], *columns: Column[Any]
) -> Iterator[Any]:
    """Yield (key, *columns) of a repository's rows with one of these keys."""
    yield from rows_in_parts(session, select(key, *columns).filter_by(repo_id=repo_id), key, keys)


def in_parts(keys: Iterable[Any]) -> Iterator[list[Any]]:
    """Return the distinct keys, sorted, in batches of KEYS_PER_QUERY."""
    wanted = sorted(set(keys))
    return (wanted[start : start + KEYS_PER_QUERY] for start in range(0, len(wanted), KEYS_PER_QUERY))


def delete_with(
    session: Session, repo_id: int, key: Column[Any], keys: Iterable[Any], *also: ColumnElement[bool]
) -> None:
    """Delete a repository's rows with one of these keys that also meet the conditions `also`."""
    table = key.table
    for part in in_parts(keys):
        is_part = (table.c.repo_id == repo_id) & key.in_(part)
        session.connection().execute(delete(table).where(is_part, *also))


def sql_rows(session: Session, query: str, *, times: Sequence[str] = (), **values: Any) -> list[Any]:
    """Run SQL that both engines support and return its rows as tuples.

    A list is bound as one value, as in `number IN :numbers`, so that the statement is the same for any
    number of keys. If any list is empty, the query is not run and there are no rows.

    Args:
        times: the result columns to convert to UTC datetimes.
    """
    connection = session.connection()
    dates = [
        bindparam(name, type_=UtcDateTime()) for name, value in values.items() if isinstance(value, datetime)
    ]
    for name, value in values.items():
        if isinstance(value, list) and is_sqlite(connection):
            query = query.replace(f"IN :{name}", f"IN (SELECT value FROM json_each(:{name}))")
            values[name] = json.dumps(value, default=int)
        elif isinstance(value, list):
            query = query.replace(f"IN :{name}", f"= ANY(:{name})")
        if value == []:
            return []
    statement = text(query).bindparams(*dates)
    if times:
        typed = statement.columns(**dict.fromkeys(times, UtcDateTime()))
        return [tuple(row) for row in connection.execute(typed, values)]
    if is_sqlite(connection) and not dates:  # named parameters go to the driver: halves a short query's time
        result = connection.exec_driver_sql(query, values)
    else:
        result = connection.execute(statement, values)
    # The driver's own tuples: wrapping many rows costs more than the query.
    rows = list(result.cursor.fetchall()) if result.cursor is not None else []
    result.close()
    return rows


def joined(session: Session, column: str) -> str:
    """Return the SQL aggregate that joins an integer column's values with commas, for `parse_joined`.

    One text for a group is up to ten times as fast as one row for each of its numbers.
    """
    is_file = is_sqlite(session.connection())
    return f"group_concat({column})" if is_file else f"string_agg({column}::text, ',')"


def day_of(session: Session, column: str) -> str:
    """Return the SQL expression for the UTC day of a time, as text: `2026-04-01`."""
    is_file = is_sqlite(session.connection())
    return f"substr({column}, 1, 10)" if is_file else f"to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD')"


def parse_joined(numbers: str | None) -> npt.NDArray[np.int64]:
    """Parse the text that `joined` selects; it is None for no rows."""
    return np.fromstring(numbers or "", dtype=np.int64, sep=",")


def run_many(session: Session, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Run a statement that both engines support once for each row, binding the row's values to its "?".

    Meant for many rows: they go to the driver unchanged, without the cost of naming and converting values.
    """
    connection = session.connection()
    if rows:
        connection.exec_driver_sql(
            statement if is_sqlite(connection) else statement.replace("?", "%s"), list(rows)
        )


def upsert(session: Session, table: Table, rows: Sequence[Mapping[str, Any]], *, keys: Sequence[str]) -> None:
    """Insert rows, or update the existing rows with the same `keys`."""
    if not rows:
        return
    statement = _insert_into(session, table)
    updates = {name: statement.excluded[name] for name in rows[0] if name not in keys}
    action = (
        statement.on_conflict_do_update(index_elements=keys, set_=updates)
        if updates
        else statement.on_conflict_do_nothing(index_elements=keys)
    )
    for start in range(0, len(rows), ROWS_PER_STATEMENT):
        session.connection().execute(action, list(rows[start : start + ROWS_PER_STATEMENT]))


def lock_writers(transaction: Session | Connection) -> None:
    """Wait for the lock that serializes writers; it is released when the transaction ends.

    Timestamps taken after this are later than all those taken under the lock by earlier transactions.
    """
    # On SQLite the transaction begins here and takes the write lock.
    connection = transaction.connection() if isinstance(transaction, Session) else transaction
    if not is_sqlite(connection):
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": TURN_KEY})


def insert_new(session: Session, table: Table, row: Mapping[str, Any], *, keys: Sequence[str]) -> bool:
    """Insert a row unless one with the same `keys` exists; return True if it was inserted.

    A concurrent insert of the same keys waits until the first transaction ends.
    """
    values = _insert_into(session, table).values(dict(row))
    statement = values.on_conflict_do_nothing(index_elements=keys)
    return session.connection().execute(statement.returning(table.c[keys[0]])).first() is not None


def _insert_into(session: Session, table: Table) -> sqlite.Insert | postgresql.Insert:
    if is_sqlite(session.connection()):
        from sqlalchemy.dialects import sqlite

        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql

    return postgresql.insert(table)


_TABLES_WITH_ID = """
    SELECT table_name FROM information_schema.columns
    WHERE table_schema = current_schema() AND column_name = 'id' AND column_default IS NOT NULL
"""
LOCK_WAIT_S = 10
"""How long TRUNCATE waits for readers of a table."""


def insert_rows(
    connection: Connection, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]
) -> None:
    """Insert rows whose values are in the order of `columns`: JSON as text, timezone-aware datetimes."""
    names = ", ".join(f'"{name}"' for name in columns)
    if is_sqlite(connection):
        places = ", ".join("?" for _ in columns)
        values = [tuple(map(_sqlite_value, row)) for row in rows]
        connection.exec_driver_sql(f'INSERT INTO "{table}" ({names}) VALUES ({places})', values)
        return
    cursor: Any = connection.connection.cursor()
    try:
        with cursor, cursor.copy(f'COPY "{table}" ({names}) FROM STDIN') as copy:
            for row in rows:
                copy.write_row(row)
    except connection.dialect.loaded_dbapi.Error as error:
        raise StoreError(f"the table {table} cannot be written: {explain(error)}") from error


def _sqlite_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")
    return value


def restart_sequences(connection: Connection, tables: Iterable[str]) -> None:
    """Set the sequences of generated `id` columns to the highest value; SQLite needs no such step."""
    if is_sqlite(connection):
        return
    for table in {*tables} & set(connection.execute(text(_TABLES_WITH_ID)).scalars()):
        sequence = f"pg_get_serial_sequence('\"{table}\"', 'id')"
        statement = f'SELECT setval({sequence}, coalesce(max(id), 1), max(id) IS NOT NULL) FROM "{table}"'
        connection.execute(text(statement))


def collect_statistics(connection: Connection, tables: Iterable[str]) -> None:
    """Have PostgreSQL's planner know these tables at once; SQLite's needs no statistics here."""
    if not is_sqlite(connection):
        for table in tables:
            connection.exec_driver_sql(f'ANALYZE "{table}"')


def empty_tables(connection: Connection, names: Sequence[str]) -> None:
    """Delete all rows of these tables, which must be ordered so that none references an earlier one."""
    if is_sqlite(connection):
        for name in names:
            connection.exec_driver_sql(f'DELETE FROM "{name}"')
        return
    listed = ", ".join(f'"{name}"' for name in names)
    connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_WAIT_S}s'"))
    connection.execute(text(f"TRUNCATE {listed}"))
