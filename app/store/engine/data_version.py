"""Whether anything was written to a base since it was last asked, answered in microseconds.

For those who keep an answer for as long as the data is the same. On SQLite it is `PRAGMA data_version` of
one connection that never writes (https://www.sqlite.org/pragma.html#pragma_data_version); on PostgreSQL the
present snapshot, which every transaction that writes moves on and none that only reads.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import suppress

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from app.errors import StoreError
from app.store.engine.connect import is_sqlite
from app.store.engine.errors import explain


class DataVersion:
    """The version of one base's data, over a connection of its own. Close it before the engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._guard = threading.Lock()
        self._connection: Connection | None = None

    def current(self) -> str:
        """A token that changes with every commit.

        Raises:
            StoreError: the database cannot be read.
        """
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

    def _ask(self) -> str:
        if self._connection is None:
            self._connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        if is_sqlite(self._engine):  # past the layer that would begin a transaction, whose view stays
            driver = self._connection.connection.driver_connection
            return str(driver.execute("PRAGMA data_version").fetchone()[0]) if driver is not None else ""
        return str(self._connection.execute(text("SELECT pg_current_snapshot()::text")).scalar())
