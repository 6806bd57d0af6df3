"""Translate database errors into one-line messages: what failed and what to do."""

import sqlite3
from collections.abc import Mapping

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

_RESTORE = "stop the server, then put a backup in its place: `triage restore BACKUP --force`"
_SQLITE: Mapping[int, str] = {
    sqlite3.SQLITE_BUSY: "it is locked: another process is writing for too long; try again when it is done",
    sqlite3.SQLITE_LOCKED: "it is locked by this process; try again",
    sqlite3.SQLITE_READONLY: "it may not be written: let this user write the file and its folder",
    sqlite3.SQLITE_IOERR: "the disk refused to read or write: look at its free space, quotas and health",
    sqlite3.SQLITE_CORRUPT: f"the file is damaged: {_RESTORE} (the damaged file is kept beside it)",
    sqlite3.SQLITE_FULL: "there is no room left on the disk: free some; what was stored stays",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened: is it there, and may this user write its folder?",
    sqlite3.SQLITE_NOTADB: f"the file is no SQLite database, or its start is damaged: {_RESTORE}",
}
_PRIMARY = 0xFF
"""SQLite's extended error codes have the primary code in their low byte."""

_POSTGRESQL: Mapping[str, str] = {
    "53100": "the server has no room left on its disk: free some; what was stored stays",
    "53200": "the server is out of memory",
    "53300": "the server takes no more connections: raise its max_connections, or serve with fewer workers",
    "25006": "the server takes no writes: is it a standby?",
    "55P03": "it is locked: another process has been at work for too long; try again when it is done",
    "57P01": "the server is being stopped; try again when it is back",
    "57P02": "the server has failed and is being started again; try again in a minute",
    "57P03": "the server is starting or stopping; try again in a minute",
    "42501": "this user lacks a right on the database: let it own the database",
    "XX001": "a table is damaged: restore the server's backup",
    "XX002": "an index is damaged: REINDEX it",
}
REASON_CHARS = 200


def explain(error: SQLAlchemyError | Exception) -> str:
    """Return a database error as one line, without the SQL and its values; known errors say what to do."""
    if isinstance(error, PoolTimeoutError):
        return "all connections of this process are in use; try again"
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", None)
        known = _SQLITE.get(code & _PRIMARY) if code is not None else None
    else:
        known = _POSTGRESQL.get(getattr(cause, "sqlstate", None) or "")
    if known is None and _is_unreachable(cause):
        return f"the server cannot be reached: {_first_line(cause)}"
    return known or _first_line(cause)


def _is_unreachable(cause: Exception | BaseException) -> bool:
    """True for psycopg's connection errors, which have no SQLSTATE."""
    return type(cause).__name__ == "OperationalError" and getattr(cause, "sqlstate", "") is None


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:REASON_CHARS] if lines else type(error).__name__
