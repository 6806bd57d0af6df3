"""What only a SQLite base has: a file, which can be copied while in use, checked, and replaced."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import cast

from sqlalchemy import Connection, Engine
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from app.errors import StoreError
from app.store.engine.errors import explain

ALONE_WAIT_S = 1.0
"""A connection that is just being closed is waited for."""
PAGES_PER_STEP = 4096


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


def copy_file_of(connection: Connection, path: Path, report: Callable[[int, int], None]) -> None:
    """Write a SQLite base as this connection's transaction sees it into a file, while others write to it.

    Args:
        connection: of the base.
        path: the file.
        report: called with the pages that are done, and their total.

    Raises:
        StoreError: the file cannot be written.
    """
    source = cast("sqlite3.Connection", connection.connection.driver_connection)
    source.execute("SELECT 1 FROM sqlite_master").fetchone()  # the transaction's snapshot is taken here
    try:
        with closing(sqlite3.connect(path)) as copy:
            source.backup(
                copy, pages=PAGES_PER_STEP, progress=lambda _, left, total: report(total - left, total)
            )
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be written: {explain(error)}") from error
    settle(path)


def settle(path: Path) -> None:
    """Write the log of a SQLite file that nobody uses back into it, so that it is one file.

    Raises:
        StoreError: the file cannot be written.
    """
    try:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be written: {explain(error)}") from error


def check_file(path: Path) -> None:
    """Check a whole SQLite file by its `integrity_check`.

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
