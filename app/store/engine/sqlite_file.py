"""Operations on the file of a SQLite database: permissions, checkpoints, direct and exclusive access."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from app.errors import StoreError
from app.store.engine.errors import explain

OWNER_ONLY = 0o600
"""File mode: a database contains kept logs and the key that hashes voters."""
CHECKPOINT_WAIT_MS = 500
ALONE_WAIT_S = 1.0
"""Gives a connection that is closing time to finish."""


def sqlite_file(url: str) -> Path | None:
    """Return the file of a database URL; None for a server or an in-memory database."""
    try:
        named = make_url(url)
    except ArgumentError:
        return None
    if named.get_backend_name() != "sqlite" or not named.database or named.database == ":memory:":
        return None
    return Path(named.database.removeprefix("file:"))


def restrict_to_owner(path: Path) -> None:
    """Restrict a database file and its write-ahead log to their owner."""
    for rest in ("", "-wal", "-shm"):
        with suppress(OSError):
            path.with_name(path.name + rest).chmod(OWNER_ONLY)


def truncate_wal(path: Path) -> None:
    """Checkpoint and truncate the write-ahead log, so that it no longer contains deleted rows.

    Skipped if a reader or writer blocks it for too long; the next call does it then.
    """
    address = f"{path.absolute().as_uri()}?mode=rw"
    with suppress(sqlite3.Error), closing(sqlite3.connect(address, uri=True)) as connection:
        connection.execute(f"PRAGMA busy_timeout={CHECKPOINT_WAIT_MS}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextmanager
def opened_file(path: Path, *, write: bool = False) -> Iterator[sqlite3.Connection]:
    """Open a SQLite file directly. With `write`, turn write-ahead logging off, so that it is a single file.

    Raises:
        StoreError: the file is missing, not a database, damaged, or cannot be written.
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
def exclusive_access(path: Path) -> Iterator[None]:
    """Lock a SQLite file exclusively, with no write-ahead log beside it. A damaged file is not an error.

    Raises:
        StoreError: another process is using the file.
    """
    with closing(sqlite3.connect(path, timeout=ALONE_WAIT_S, isolation_level=None)) as connection:
        try:
            connection.execute("PRAGMA journal_mode=DELETE")
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            if error.sqlite_errorcode in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
                raise StoreError(f"{path} is in use: stop the server and every sync first") from error
        yield
