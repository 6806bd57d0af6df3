"""The engines' differences where whole tables are moved: the quick way in, sequences, emptying.

Beside `app.store.engine.connect`, no other module of the archive knows which engine it speaks to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from app.errors import StoreError
from app.store.engine.connect import is_sqlite
from app.store.engine.errors import explain

Rows = Sequence[Sequence[Any]]

_WITH_IDS = """
    SELECT table_name FROM information_schema.columns
    WHERE table_schema = current_schema() AND column_name = 'id'
"""
EMPTYING_WAIT_S = 10
"""How long emptying waits for those who read a table; whoever still does then is at work."""


def insert_rows(connection: Connection, table: str, columns: Sequence[str], rows: Rows) -> None:
    """Insert rows of plain values in the order of `columns`; JSON comes as text, times with a zone.

    SQLite takes them one statement for all, PostgreSQL by COPY.
    """
    names = ", ".join(f'"{name}"' for name in columns)
    if connection.dialect.name == "sqlite":
        places = ", ".join("?" for _ in columns)
        told = [tuple(map(_as_sqlite_keeps_it, row)) for row in rows]
        connection.exec_driver_sql(f'INSERT INTO "{table}" ({names}) VALUES ({places})', told)  # noqa: S608
        return
    cursor: Any = connection.connection.cursor()
    try:
        with cursor, cursor.copy(f'COPY "{table}" ({names}) FROM STDIN') as copy:
            for row in rows:
                copy.write_row(row)
    except connection.dialect.loaded_dbapi.Error as error:
        raise StoreError(f"the table {table} cannot be written: {explain(error)}") from error


def _as_sqlite_keeps_it(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")
    return value


def go_on_counting(connection: Connection, tables: Iterable[str]) -> None:
    """Let the keys that the database gives go on after the highest one; SQLite does so by itself.

    A key that the database gives is named `id` in every table.
    """
    if connection.dialect.name == "sqlite":
        return
    with_ids = text(_WITH_IDS)
    for table in {*tables} & set(connection.execute(with_ids).scalars()):
        asked = text("SELECT pg_get_serial_sequence(:table, 'id')")
        sequence = connection.execute(asked, {"table": f'"{table}"'}).scalar()
        if sequence is not None:
            highest = f'SELECT setval(:sequence, coalesce(max(id), 1), max(id) IS NOT NULL) FROM "{table}"'  # noqa: S608
            connection.execute(text(highest), {"sequence": sequence})


def empty_tables(connection: Connection, names: Sequence[str]) -> None:
    """Delete all rows of these tables, of which none points at one that comes before it."""
    if connection.dialect.name == "sqlite":
        for name in names:
            connection.exec_driver_sql(f'DELETE FROM "{name}"')  # noqa: S608
        return
    listed = ", ".join(f'"{name}"' for name in names)
    connection.execute(text(f"SET LOCAL lock_timeout = '{EMPTYING_WAIT_S}s'"))
    connection.execute(text(f"TRUNCATE {listed}"))


def gather_statistics(engine: Engine, tables: Iterable[str]) -> None:
    """Let the engine look at what the tables hold, so that its first plans are good ones.

    PostgreSQL notes in the same go which pages everybody may see: until then no index answers alone.

    Raises:
        StoreError: the engine refused.
    """
    try:
        if is_sqlite(engine):
            with engine.execution_options(writes=True).begin() as connection:
                connection.execute(text("ANALYZE"))
            return
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            listed = ", ".join(f'"{name}"' for name in tables)
            connection.execute(text(f"VACUUM (ANALYZE) {listed}"))
    except DBAPIError as error:
        raise StoreError(f"the statistics cannot be written: {explain(error)}") from error
