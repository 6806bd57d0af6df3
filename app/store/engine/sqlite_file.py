"""What only a SQLite base has: a file, which can be copied live, checked, and put in the place of another."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import cast

from sqlalchemy import Connection, Engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from app.errors import StoreError
from app.store.engine.connect import APPLICATION, own_name
from app.store.engine.errors import explain

ALONE_WAIT_S = 1.0
"""A connection that is just being closed is waited for."""
_OTHERS = """
    SELECT count(DISTINCT application_name) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE :ours AND application_name NOT LIKE :mine
"""


def file_of(engine: Engine) -> Path | None:
    """The file that holds a base; None on PostgreSQL and in memory."""
    return sqlite_file(engine.url.render_as_string(hide_password=False))


def sqlite_file(url: str) -> Path | None:
    """The file that a database address names; None if it names a server, or memory."""
    try:
        named = make_url(url)
    except ArgumentError:
        return None
    if named.get_backend_name() != "sqlite" or not named.database or named.database == ":memory:":
        return None
    return Path(named.database.removeprefix("file:"))


def copy_file_of(connection: Connection, path: Path) -> None:
    """Write a SQLite base as this connection's transaction sees it into a new file, beside its writers.

    Raises:
        StoreError: the file cannot be written.
    """
    live = cast("sqlite3.Connection", connection.connection.driver_connection)
    try:
        with closing(sqlite3.connect(path)) as copy:
            live.backup(copy)  # an open transaction's snapshot is what is copied, in one go
            copy.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be written: {explain(error)}") from error


def settle(path: Path) -> None:
    """Bring a SQLite file that nobody uses into one piece, on the disk.

    Raises:
        StoreError: the file cannot be written.
    """
    try:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be written: {explain(error)}") from error
    for place in (path, path.parent):
        handle = os.open(place, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def check_file(path: Path) -> None:
    """Look through a whole SQLite file, which is left as it is.

    Raises:
        StoreError: it is not there, no database, or damaged.
    """
    if not path.is_file():
        raise StoreError(f"there is no file {path}")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            found = str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be used: {explain(error)}") from error
    if found != "ok":
        raise StoreError(f"{path} is damaged: {found.splitlines()[0]}")


@contextmanager
def alone_with(path: Path) -> Iterator[None]:
    """Nobody else has the SQLite file open while the body runs, and none can open it.

    The file is in one piece then, without a log beside it. A damaged file is taken as it is.

    Raises:
        StoreError: another process uses it.
    """
    connection = sqlite3.connect(path, timeout=ALONE_WAIT_S, isolation_level=None)
    with closing(connection):
        try:
            connection.execute("PRAGMA journal_mode=DELETE")
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            if error.sqlite_errorcode in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
                raise StoreError(f"{path} is in use: stop the server and every sync first") from error
        yield


def put_in_place(new: Path, target: Path, aside: Path) -> None:
    """Put a file in the place of another in one step; the other one, if there is one, is kept as `aside`."""
    if target.exists():
        with suppress(FileNotFoundError):
            os.chmod(new, target.stat().st_mode & 0o777)  # noqa: PTH101
        os.link(target, aside)
    os.replace(new, target)  # noqa: PTH105
    for rest in ("-wal", "-shm"):  # of a damaged file; to be read into another one would damage that
        left = target.with_name(target.name + rest)
        if left.exists():
            left.rename(aside.with_name(aside.name + rest))


def count_users(engine: Engine) -> int:
    """How many other processes of this program are connected to a PostgreSQL base."""
    try:
        with engine.connect() as connection:
            asked = {"ours": f"{APPLICATION}%", "mine": f"%{own_name()}"[:60]}
            return int(connection.execute(text(_OTHERS), asked).scalar_one())
    except DBAPIError as error:
        raise StoreError(f"the database cannot be read: {explain(error)}") from error
