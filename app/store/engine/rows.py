"""Many rows of plain values for keys that are numbers, quickly.

The keys are bound as one value, so that one statement serves for any number of them and is prepared once, and
the driver's own rows are taken: wrapping thousands of rows costs several times the query.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlmodel import Session

from app.store.engine.connect import is_sqlite

AMONG = ":among"
"""What stands in a query behind a column that is asked to be one of the keys."""


def plain_rows(session: Session, query: str, keys: Sequence[int]) -> list[Any]:
    """The driver's tuples of a query with `AMONG` in it."""
    if not keys:
        return []
    connection = session.connection()
    listed = ",".join(map(str, keys))
    if is_sqlite(connection):
        condition, bound = "IN (SELECT value FROM json_each(?))", f"[{listed}]"
    else:
        condition, bound = "= ANY(CAST(%s AS bigint[]))", f"{{{listed}}}"
    result = connection.exec_driver_sql(query.replace(AMONG, condition), (bound,))
    rows = result.cursor.fetchall() if result.cursor is not None else []
    result.close()
    return list(rows)
