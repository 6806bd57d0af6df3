"""Whether data of a kind was written to a base since it was last asked, answered in microseconds.

For those who keep an answer for as long as the data is the same: each transaction that writes puts a new
random token in place of the former one of its kind.
"""

import sqlite3
import threading
from contextlib import suppress
from secrets import token_bytes
from typing import Literal

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session

from app.errors import StoreError
from app.store.engine.connect import is_sqlite, sql_rows, upsert
from app.store.engine.errors import explain
from app.store.tables import SECRET

Kind = Literal["content", "votes"]
"""What comes from GitHub, judgements included; and what visitors vote, which few answers depend on."""
_NAME = "data of kind "
_QUERY = f"SELECT name, value FROM secret WHERE name LIKE '{_NAME}%' ORDER BY name"


def note_change(session: Session, kind: Kind) -> None:
    """Data of this kind is another once the session commits."""
    upsert(session, SECRET, [{"name": _NAME + kind, "value": token_bytes(8)}], keys=("name",))


def content_state(session: Session) -> bytes:
    """A token of the content as this session sees it, another one after each write."""
    rows = sql_rows(session, "SELECT value FROM secret WHERE name = :name", name=_NAME + "content")
    return bytes(rows[0][0]) if rows else b""


class DataVersion:
    """The version of one base's data, over a connection of its own. Close it before the engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._guard = threading.Lock()
        self._connection: Connection | None = None

    def current(self, *kinds: Kind) -> str:
        """A token that changes with every commit of data of these kinds.

        Raises:
            StoreError: the database cannot be read.
        """
        tokens = self._tokens()
        return " ".join(tokens.get(kind, "") for kind in kinds)

    def _tokens(self) -> dict[str, str]:
        with suppress(DBAPIError, sqlite3.Error), self._guard:
            return self._ask()
        self.close()  # the server was restarted, perhaps: once more over a new connection
        try:
            with self._guard:
                return self._ask()
        except (DBAPIError, PoolTimeoutError, sqlite3.Error) as error:
            raise StoreError(f"the database cannot be read: {explain(error)}") from error

    def close(self) -> None:
        """Give the connection back; the next question opens another."""
        with self._guard, suppress(DBAPIError):
            if self._connection is not None:
                connection, self._connection = self._connection, None
                connection.close()

    def _ask(self) -> dict[str, str]:
        if self._connection is None:
            self._connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        if is_sqlite(self._engine):  # past the layer that would begin a transaction, whose view stays
            driver = self._connection.connection.driver_connection
            rows = driver.execute(_QUERY).fetchall() if driver is not None else []
        else:
            rows = self._connection.execute(text(_QUERY)).fetchall()
        return {name.removeprefix(_NAME): bytes(value).hex() for name, value in rows}
