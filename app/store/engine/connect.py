"""Opening SQLite (3.40 and newer) or PostgreSQL (15 and newer), and how they differ.

Only the modules of this folder know which engine a base is in; everything else in the archive is written once
for both. Where whole tables are moved they differ in fast inserts, sequences and emptying.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

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
"""How long a writer waits for another."""
LOCK_RETRY_S = 0.02
"""Between two attempts where SQLite does not wait by itself."""
MAPPED_BYTES = 1 << 30
"""Of the file, read in the system's page cache, which all workers share: SQLite's own is emptied by every
commit of another process, and to fill it takes a call for each of some 300 pages of a search."""
CACHE_KIB = 8_000
"""Page cache of a SQLite connection; a worker has up to sixteen."""
ROWS_PER_STATEMENT = 500
"""Keeps a many-row insert below SQLite's 32,766 and PostgreSQL's 65,535 bound values."""
KEYS_PER_QUERY = 900
"""How many keys one query asks for: stays well below the same limits."""
APPLICATION = "triage"
"""How every connection to PostgreSQL names itself first."""
POOL_SIZE = 10
POOL_OVERFLOW = 6
"""With the pool as many connections as a server's threads, and no more."""
POOL_WAIT_S = 10.0
SERVER_OPTIONS: Mapping[str, str | int] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
    "options": "-c jit=off",
}
"""What PostgreSQL is reached with unless the address says otherwise: a host that is gone is noticed within a
minute, and no query is compiled, which takes longer than any query of ours."""
TURN_KEY = 0x7475726E
"""Of the lock that writers hold in turn; this one spells "turn"."""


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
    return _open_postgresql(url)


def _open_postgresql(url: URL) -> Engine:
    named = {"application_name": f"{APPLICATION}: {own_name()}"[:63], **SERVER_OPTIONS}
    try:
        engine = create_engine(
            url,
            pool_size=POOL_SIZE,
            max_overflow=POOL_OVERFLOW,
            pool_timeout=POOL_WAIT_S,
            pool_use_lifo=True,  # the one used last: what it has planned and cached is still warm
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
    # The driver gives each number the smallest type that holds it. A statement with other types is another
    # one to the server, so those with many numbers would be planned anew each time.
    from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper

    for dumper in (Int8Dumper, Int8BinaryDumper):
        connection.adapters.register_dumper(int, dumper)


def _begin_postgresql(connection: Connection) -> None:
    wait_s = connection.get_execution_options().get("write_wait_s")
    if wait_s is not None:
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{wait_s * 1000:.0f}ms'")


def own_name() -> str:
    """The name of this process among others that use the same base."""
    return f"process {os.getpid()} on {socket.gethostname()}"


def is_sqlite(engine: Engine | Connection) -> bool:
    """Whether a base is a SQLite file."""
    return engine.dialect.name == "sqlite"


def reader_of(engine: Engine) -> Engine:
    """The engine for those who only read, with one view of the data from the first statement on.

    SQLite gives that to every transaction; PostgreSQL has to be asked, which costs no round trip.
    """
    if is_sqlite(engine):
        return engine
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def writer_of(engine: Engine, wait_s: float | None = None) -> Engine:
    """The engine for those who write: on SQLite they begin as a writer, and wait for their turn at once.

    Args:
        wait_s: how long for another writer; without it as long as a program does that nobody waits for.
    """
    return engine.execution_options(writes=True, write_wait_s=wait_s)


def _open_sqlite(database_url: str, file: str | None) -> Engine:
    if sqlite3.sqlite_version_info < SQLITE_MINIMUM:
        found = sqlite3.sqlite_version
        raise StoreError(f"SQLite {found} is too old; 3.40 or newer is needed")
    # An address that begins with `file:` says itself whether the file may be made.
    if file and file != ":memory:" and not file.startswith("file:"):
        parent = Path(file).absolute().parent
        try:
            parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot make the folder {parent}: {error.strerror}") from None
        with suppress(OSError):  # SQLite says what is wrong; its log gets the same rights
            os.close(os.open(file, os.O_CREAT, OWNER_ONLY))
    # The connection used last goes first: its pages are still at hand.
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
        f"mmap_size={MAPPED_BYTES}",
    )
    try:
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        _log_ahead(connection)
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")
    except sqlite3.Error:
        connection.close()  # the pool does not know it yet
        raise


def _log_ahead(connection: sqlite3.Connection) -> None:
    """Turn write-ahead logging on.

    Of several that do so to an empty file at once, SQLite refuses all but one without waiting, as each holds
    the lock that the others wait for.
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
    # A writer that upgrades from a read lock cannot wait for another writer; it must begin as one.
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
    """The rows of a query in which a column has one of these keys, asked for in parts."""
    for part in _parts(keys):
        yield from session.connection().execute(query.where(column.in_(part)))


def rows_with(
    session: Session, repo_id: int, key: Column[Any], keys: Iterable[Any], *columns: Column[Any]
) -> Iterator[Any]:
    """These columns of a repository's rows that have one of these keys, after the key."""
    query = _rows_with(key, *columns)
    for part in _parts(keys):
        yield from session.connection().execute(query, {"repo_id": repo_id, "keys": part})


@lru_cache(maxsize=64)
def _rows_with(key: Column[Any], *columns: Column[Any]) -> Select[Any]:
    # To put a statement together takes longer than to run it.
    is_one = key.in_(bindparam("keys", expanding=True))
    return select(key, *columns).where(key.table.c.repo_id == bindparam("repo_id"), is_one)


def _parts(keys: Iterable[Any]) -> Iterator[list[Any]]:
    """The keys, each once, ascending, by so many as one query asks for."""
    wanted = sorted(set(keys))
    return (wanted[start : start + KEYS_PER_QUERY] for start in range(0, len(wanted), KEYS_PER_QUERY))


def delete_with(
    session: Session, repo_id: int, key: Column[Any], keys: Iterable[Any], *also: ColumnElement[bool]
) -> None:
    """Delete a repository's rows that have one of these keys, where `also` holds."""
    table = key.table
    for part in _parts(keys):
        is_part = (table.c.repo_id == repo_id) & key.in_(part)
        session.connection().execute(delete(table).where(is_part, *also))


def sql_rows(session: Session, query: str, *, times: Sequence[str] = (), **values: Any) -> list[Any]:
    """The tuples of a query in SQL that both engines understand.

    A list goes with `number IN :numbers` and is bound as one value, so that one statement serves for any
    number of keys; where a list is empty there are no rows.

    Args:
        times: the columns of the answer that are times.
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
    if is_sqlite(connection) and not dates:  # the driver knows the names: half of the time of a short query
        result = connection.exec_driver_sql(query, values)
    else:
        result = connection.execute(text(query).bindparams(*dates), values)
    # The driver's own tuples: to wrap many rows costs more than the query.
    rows = list(result.cursor.fetchall()) if result.cursor is not None else []
    places = [at for at, name in enumerate(result.keys()) if name in times] if times else []
    result.close()
    return [_with_times(row, places) for row in rows] if places else rows


def _with_times(row: Sequence[Any], places: Sequence[int]) -> tuple[Any, ...]:
    """A row whose values at these places are times in UTC; SQLite gives them as texts without a zone."""
    values = list(row)
    for at in places:
        value = values[at]
        if isinstance(value, str):
            values[at] = datetime.fromisoformat(f"{value}+00:00")
        elif value is not None:
            values[at] = value.astimezone(UTC)
    return tuple(values)


def joined(session: Session, column: str) -> str:
    """The SQL for the numbers of a column in one text, with commas, one for each group."""
    is_file = is_sqlite(session.connection())
    return f"group_concat({column})" if is_file else f"string_agg({column}::text, ',')"


def run_many(session: Session, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Run a statement in SQL that both engines understand for each of these rows, whose values are its "?".

    For many rows: the driver gets them as they are, without the cost of naming and converting each value.
    """
    connection = session.connection()
    if rows:
        connection.exec_driver_sql(
            statement if is_sqlite(connection) else statement.replace("?", "%s"), list(rows)
        )


def upsert(session: Session, table: Table, rows: Sequence[Mapping[str, Any]], *, keys: Sequence[str]) -> None:
    """Insert rows, or update those whose `keys` exist already."""
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


@contextmanager
def erasing(session: Session) -> Iterator[Connection]:
    """The connection; what the body writes or deletes leaves nothing of its rows in free space of the file.

    For all writers of a table that holds what people may delete: SQLite moves rows as it writes others.
    """
    connection = session.connection()
    if is_sqlite(connection):
        connection.exec_driver_sql("PRAGMA secure_delete=ON")
    yield connection
    if is_sqlite(connection):
        connection.exec_driver_sql("PRAGMA secure_delete=OFF")


def take_turn(transaction: Session | Connection) -> None:
    """Wait until no other writer is at work on this base; the turn ends with the transaction.

    A time noted after this is later than all that was noted by transactions before it.
    """
    # On SQLite the transaction begins here, as a writer.
    connection = transaction.connection() if isinstance(transaction, Session) else transaction
    if not is_sqlite(connection):
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": TURN_KEY})


def insert_new(session: Session, table: Table, row: Mapping[str, Any], *, keys: Sequence[str]) -> bool:
    """Insert a row unless one with its `keys` is there; whether it was inserted.

    A second writer of the same keys waits for the end of the first one's transaction.
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
"""How long emptying waits for others who read a table."""


def insert_rows(
    connection: Connection, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]
) -> None:
    """Insert rows of plain values in the order of `columns`; JSON comes as text, times with a zone."""
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
    """Let generated keys, all named `id`, go on after the highest one; SQLite does so by itself."""
    if is_sqlite(connection):
        return
    for table in {*tables} & set(connection.execute(text(_TABLES_WITH_ID)).scalars()):
        sequence = f"pg_get_serial_sequence('\"{table}\"', 'id')"
        statement = f'SELECT setval({sequence}, coalesce(max(id), 1), max(id) IS NOT NULL) FROM "{table}"'
        connection.execute(text(statement))


def empty_tables(connection: Connection, names: Sequence[str]) -> None:
    """Delete all rows of these tables, of which none points at one that comes before it."""
    if is_sqlite(connection):
        for name in names:
            connection.exec_driver_sql(f'DELETE FROM "{name}"')
        return
    listed = ", ".join(f'"{name}"' for name in names)
    connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_WAIT_S}s'"))
    connection.execute(text(f"TRUNCATE {listed}"))
