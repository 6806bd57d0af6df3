"""The engines' quickest way to give many rows of plain values for keys that are numbers.

The keys are bound as one value, so that one statement serves for any number of them and is prepared once, and
the driver's own rows are taken: wrapping thousands of rows costs several times the query. PostgreSQL gives
values as it keeps them: to write them as text, and bytes as hexadecimal digits, takes longer than to find
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlmodel import Session

from app.store.engine.connect import BINARY_ROWS, is_sqlite

AMONG, KEYS = ":among", ":keys"
"""What stands in a query behind a column that is asked to be one of the keys, and what for a table of the
keys, with the column `value`."""
_SQLITE = {AMONG: "IN (SELECT value FROM json_each(?))", KEYS: "json_each(?)"}
_POSTGRESQL = {AMONG: "= ANY(CAST(%s AS bigint[]))", KEYS: "unnest(CAST(%s AS bigint[])) AS value"}


def plain_rows(session: Session, asked: str, keys: Sequence[int]) -> list[Any]:
    """The driver's tuples of a query with `AMONG` or `KEYS` in it."""
    if not keys:
        return []
    connection = session.connection()
    listed = ",".join(map(str, keys))
    said, bound = (_SQLITE, f"[{listed}]") if is_sqlite(connection) else (_POSTGRESQL, f"{{{listed}}}")
    for mark, meant in said.items():
        asked = asked.replace(mark, meant)
    result = connection.exec_driver_sql(asked, (bound,), execution_options={BINARY_ROWS: True})
    rows = result.cursor.fetchall() if result.cursor is not None else []
    result.close()
    return list(rows)


def whole_numbers(session: Session, columns: Sequence[str], table: str, keys: Sequence[int]) -> np.ndarray:
    """Columns of whole numbers, as int64, a row of the table each, where the first one is one of `keys`.

    In the order of all columns but the last. That one comes packed into one value for all rows that are equal
    in the others: it is the rows, not the numbers, that take the time.
    """
    by_sqlite = is_sqlite(session.connection())
    *others, last = columns
    named = ", ".join(others)
    packed = f"group_concat({last})" if by_sqlite else f"string_agg(int8send({last}), '')"
    asked = (
        f"SELECT count(*), {packed}, {named} FROM {table} WHERE {columns[0]} {AMONG}"  # noqa: S608
        f" GROUP BY {named} ORDER BY {named}"
    )
    rows = plain_rows(session, asked, keys)
    if not rows:
        return np.empty((0, len(columns)), dtype=np.int64)
    sizes, parts, *shared = zip(*rows, strict=True)
    if by_sqlite:
        numbers = np.fromstring(",".join(parts), dtype=np.int64, sep=",")
    else:
        numbers = np.frombuffer(b"".join(parts), dtype=">i8").astype(np.int64)
    return np.column_stack([*(np.repeat(values, sizes) for values in shared), numbers])
