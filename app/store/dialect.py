"""The one file that knows which engine it speaks to: SQLite (3.40 and newer) or PostgreSQL.

Everything else in the archive is written once for both.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
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
CACHE_KIB = 64_000
"""Page cache of a SQLite connection; the index of 16,000 issues fits."""
ROWS_PER_STATEMENT = 500
"""Keeps a many-row insert below SQLite's 32,766 and PostgreSQL's 65,535 bound values."""


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
        "foreign_keys=ON", f"cache_size=-{CACHE_KIB}", "temp_store=MEMORY",
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
