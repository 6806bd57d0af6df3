"""Many rows of plain values for keys that are numbers, quickly.

The keys are bound as one value, so that one statement serves for any number of them and is prepared once, and
the driver's own rows are taken: wrapping thousands of rows costs several times the query.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import bindparam, text
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


def sql_rows(session: Session, query: str, **values: Any) -> list[Any]:
    """The driver's tuples of a query in SQL that both engines understand, of numbers and texts only.

    A list is bound as in `number IN :numbers`; where one is empty there are no rows.
    """
    if any(value == [] for value in values.values()):
        return []
    statement = text(query)
    for name, value in values.items():
        if isinstance(value, list):
            statement = statement.bindparams(bindparam(name, expanding=True))
    result = session.connection().execute(statement, values)
    rows = result.cursor.fetchall() if result.cursor is not None else []
    result.close()
    return list(rows)
