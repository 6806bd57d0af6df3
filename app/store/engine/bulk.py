"""The engines' differences where whole tables are moved: fast inserts, sequences, emptying."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, text

from app.errors import StoreError
from app.store.engine.connect import is_sqlite
from app.store.engine.errors import explain

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
        connection.exec_driver_sql(f'INSERT INTO "{table}" ({names}) VALUES ({places})', values)  # noqa: S608
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
        statement = f'SELECT setval({sequence}, coalesce(max(id), 1), max(id) IS NOT NULL) FROM "{table}"'  # noqa: S608
        connection.execute(text(statement))


def empty_tables(connection: Connection, names: Sequence[str]) -> None:
    """Delete all rows of these tables, of which none points at one that comes before it."""
    if is_sqlite(connection):
        for name in names:
            connection.exec_driver_sql(f'DELETE FROM "{name}"')  # noqa: S608
        return
    listed = ", ".join(f'"{name}"' for name in names)
    connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_WAIT_S}s'"))
    connection.execute(text(f"TRUNCATE {listed}"))
