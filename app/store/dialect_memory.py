"""What a connection remembers of the base for as long as nobody changes it.

Counting what is stored takes longer with every issue, and most of the time nothing has changed since the last
count. SQLite tells by two numbers whether it has: `data_version` moves with the commits of other connections,
the driver's count of changes with the connection's own. PostgreSQL has nothing of the kind and is asked anew.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from sqlmodel import Session

from app.store.dialect import is_sqlite

KEPT_MAX = 64
"""Answers a connection keeps; past that it begins anew."""

_KEPT = "remembered"

Answer = TypeVar("Answer")


def remembered(session: Session, name: Hashable, ask: Callable[[], Answer]) -> Answer:
    """What `ask` answers, from memory if the base is as it was when it last did.

    A session that writes is asked every time: what it sees may never be committed.

    Args:
        name: what is asked; one name, one question.
    """
    connection = session.connection()
    if not is_sqlite(connection) or connection.get_execution_options().get("writes", False):
        return ask()
    version = connection.exec_driver_sql("PRAGMA data_version").scalar()
    driver: Any = connection.connection.dbapi_connection
    state = (version, driver.total_changes)
    kept: tuple[Any, dict[Hashable, Any]] = connection.info.get(_KEPT, (None, {}))
    if kept[0] != state or len(kept[1]) > KEPT_MAX:
        kept = connection.info[_KEPT] = (state, {})
    if name not in kept[1]:
        kept[1][name] = ask()
    answer: Answer = kept[1][name]
    return answer
