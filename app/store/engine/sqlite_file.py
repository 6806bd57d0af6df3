"""What only a SQLite base has: a file, which can be checked and replaced."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from app.errors import StoreError
from app.store.engine.errors import explain

OWNER_ONLY = 0o600
"""A base holds the logs that people kept, and the key of their votes."""
CHECKPOINT_WAIT_MS = 500
ALONE_WAIT_S = 1.0
"""A connection that is just being closed is waited for."""


def sqlite_file(url: str) -> Path | None:
    """The file that a database address names; None if it names a server, or memory."""
    try:
        named = make_url(url)
    except ArgumentError:
        return None
    if named.get_backend_name() != "sqlite" or not named.database or named.database == ":memory:":
        return None
    return Path(named.database.removeprefix("file:"))


def close_to_others(path: Path) -> None:
    """Let nobody but its owner read or write a base, its log included."""
    for rest in ("", "-wal", "-shm"):
        with suppress(OSError):
            path.with_name(path.name + rest).chmod(OWNER_ONLY)


def empty_log(path: Path) -> None:
    """Write the log beside a base into it and empty it, so that it holds no more what was deleted.

    Where somebody reads or writes for too long the next time will do it.
    """
    address = f"{path.absolute().as_uri()}?mode=rw"
    with suppress(sqlite3.Error), closing(sqlite3.connect(address, uri=True)) as connection:
        connection.execute(f"PRAGMA busy_timeout={CHECKPOINT_WAIT_MS}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextmanager
def opened_file(path: Path, *, write: bool = False) -> Iterator[sqlite3.Connection]:
    """A connection to a SQLite file of which nothing is read yet; whoever writes gets one file without a log.

    Raises:
        StoreError: it is not there, no database, damaged, or cannot be written.
    """
    if not path.is_file():
        raise StoreError(f"there is no file {path}")
    address = f"{path.absolute().as_uri()}?mode=rw"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection, connection:
            if write:
                connection.execute("PRAGMA journal_mode=DELETE")
            yield connection
    except sqlite3.Error as error:
        what = "written" if write else "used"
        raise StoreError(f"{path} cannot be {what}: {explain(error)}") from error


@contextmanager
def alone_with(path: Path) -> Iterator[None]:
    """Lock a SQLite file against everybody else; it has no log beside it then. A damaged file is let pass.

    Raises:
        StoreError: another process uses it.
    """
    with closing(sqlite3.connect(path, timeout=ALONE_WAIT_S, isolation_level=None)) as connection:
        try:
            connection.execute("PRAGMA journal_mode=DELETE")
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            if error.sqlite_errorcode in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
                raise StoreError(f"{path} is in use: stop the server and every sync first") from error
        yield
