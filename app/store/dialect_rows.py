"""The engines' quickest way to give many rows of plain values for keys that are numbers.

The keys stand in the statement's text and the driver's own rows are taken: binding thousands of values and
wrapping thousands of rows cost several times the query. PostgreSQL gives values as it keeps them: to write
them as text, and bytes as hexadecimal digits, takes longer than to find them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlmodel import Session

from app.store.dialect import BINARY_ROWS, is_sqlite


def plain_rows(session: Session, asked: str, keys: Sequence[int]) -> list[Any]:
    """The driver's tuples of a query whose last word is IN."""
    if not keys:
        return []
    statement = f"{asked} ({','.join(str(int(key)) for key in keys)})"
    result = session.connection().exec_driver_sql(statement, execution_options={BINARY_ROWS: True})
    rows = result.cursor.fetchall() if result.cursor is not None else []
    result.close()
    return list(rows)


def whole_numbers(
    session: Session, columns: Sequence[str], table: str, key: str, keys: Sequence[int]
) -> np.ndarray:
    """Columns of whole numbers of the rows whose `key` is one of `keys`, as int64, a row of the table each.

    Each column comes packed into one value: it is the rows, not the numbers, that take the time.
    """
    if not keys:
        return np.empty((0, len(columns)), dtype=np.int64)
    by_sqlite = is_sqlite(session.connection())
    pack = "group_concat({})" if by_sqlite else "string_agg(int8send({}), '')"
    packed = ", ".join(pack.format(name) for name in columns)
    [row] = plain_rows(session, f"SELECT {packed} FROM {table} WHERE {key} IN", keys)  # noqa: S608
    if by_sqlite:
        parts = [np.fromstring(part or "", dtype=np.int64, sep=",") for part in row]
    else:
        parts = [np.frombuffer(part or b"", dtype=">i8") for part in row]
    return np.stack(parts, axis=1).astype(np.int64)
