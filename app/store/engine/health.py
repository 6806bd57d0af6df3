"""What each engine tells of its own condition: version, damage, size, room, rights."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from app.store.engine.connect import is_sqlite
from app.store.engine.errors import explain
from app.store.engine.sqlite_file import file_of

POSTGRESQL_MINIMUM = 15
LOOK_WAIT_MS = 500
LARGE_BYTES = 1 << 20
"""A table below this is read as quickly without statistics."""
_COLLATION = """
    SELECT datcollversion, pg_database_collation_actual_version(oid)
    FROM pg_database WHERE datname = current_database()
"""
_WITHOUT_STATISTICS = """
    SELECT relname FROM pg_class
    WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace AND pg_relation_size(oid) >= :least
    AND NOT EXISTS (SELECT FROM pg_stats WHERE schemaname = current_schema() AND tablename = relname)
    ORDER BY relname
"""


@dataclass(frozen=True, slots=True)
class EngineFault:
    """What is wrong with the engine or its file, and what to do."""

    thing: str
    fault: str
    do: str


@dataclass(frozen=True, slots=True)
class FileCondition:
    """A SQLite base on the disk; sizes in bytes."""

    path: Path
    size: int
    wal_size: int
    free: int
    others_may_read: bool
    others_may_write: bool


def engine_version(connection: Connection) -> str:
    """The engine and its version, such as "SQLite 3.40.1"."""
    if is_sqlite(connection):
        return f"SQLite {sqlite3.sqlite_version}"
    return f"PostgreSQL {connection.execute(text('SHOW server_version')).scalar_one()}"


def find_damage(connection: Connection) -> EngineFault | None:
    """Damage of a SQLite file, found by reading all of it; PostgreSQL checks its pages as it reads them."""
    if not is_sqlite(connection):
        return None
    restore = "stop the server, then `triage restore BACKUP --force`"
    try:
        found = str(connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one())
        orphan = connection.exec_driver_sql("PRAGMA foreign_key_check").first() if found == "ok" else None
    except DBAPIError as error:
        return EngineFault("database file", explain(error), restore)
    if found != "ok":
        return EngineFault("database file", f"it is damaged: {found.splitlines()[0][:200]}", restore)
    if orphan is not None:
        fault = f"a row of the table {orphan[0]} belongs to one of {orphan[2]} that is not there"
        return EngineFault("rows", fault, f"{restore}, or `triage reextract`")
    return None


def find_engine_advice(connection: Connection) -> list[EngineFault]:
    """What makes PostgreSQL slower than it need be; SQLite has nothing of the kind."""
    if is_sqlite(connection):
        return []
    found = []
    unknown = connection.execute(text(_WITHOUT_STATISTICS), {"least": LARGE_BYTES}).scalars().all()
    if unknown:
        fault = f"what the tables {', '.join(unknown)} hold was never looked at, so queries are planned badly"
        found.append(EngineFault("PostgreSQL", fault, "VACUUM (ANALYZE), in this database, by its owner"))
    if connection.execute(text("SHOW autovacuum")).scalar_one() == "off":
        fault = "autovacuum is off: tables swell, and what queries are planned by grows old"
        found.append(EngineFault("PostgreSQL", fault, "turn it on, or VACUUM (ANALYZE) each night"))
    return found


def find_engine_faults(connection: Connection) -> list[EngineFault]:
    """Whether the engine is of a version and in a state that the program can write to."""
    return _sqlite_faults(connection) if is_sqlite(connection) else _server_faults(connection)


def _sqlite_faults(connection: Connection) -> list[EngineFault]:
    """A write is begun and given up; a lock that another writer holds is no fault."""
    live = connection.connection.driver_connection
    if not isinstance(live, sqlite3.Connection):
        return []
    path = file_of(connection.engine)
    place = f"{path.absolute().as_uri()}?mode=rw" if path else ":memory:"
    if "mode=ro" in str(connection.engine.url):
        place = place.replace("mode=rw", "mode=ro")
    try:
        probe = sqlite3.connect(place, uri=True, isolation_level=None, timeout=LOOK_WAIT_MS / 1000)
    except sqlite3.Error as error:
        return [EngineFault("database file", explain(error), "give this user the right to read and write it")]
    try:
        probe.execute("BEGIN IMMEDIATE")
        probe.execute("CREATE TABLE doctor_looks (n INTEGER)")
        probe.execute("ROLLBACK")
    except sqlite3.Error as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            return [EngineFault("database file", explain(error), "until then nothing new can be stored")]
    finally:
        probe.close()
    return []


def _server_faults(connection: Connection) -> list[EngineFault]:
    found = []
    version = int(connection.execute(text("SHOW server_version_num")).scalar_one())
    if version // 10_000 < POSTGRESQL_MINIMUM:
        fault = f"version {version // 10_000} is too old"
        found.append(EngineFault("PostgreSQL", fault, f"upgrade the server to {POSTGRESQL_MINIMUM} or newer"))
    encoding = connection.execute(text("SHOW server_encoding")).scalar_one()
    if encoding != "UTF8":
        do = "make a database with ENCODING 'UTF8' and move there: `triage copy`"
        found.append(EngineFault("PostgreSQL", f"the database's encoding is {encoding}, not UTF8", do))
    if connection.execute(text("SELECT pg_is_in_recovery()")).scalar_one():
        found.append(EngineFault("PostgreSQL", "the server is a standby", "name the primary's address"))
    made, now = connection.execute(text(_COLLATION)).one()
    if made is not None and made != now:
        do = "REINDEX DATABASE, then ALTER DATABASE … REFRESH COLLATION VERSION"
        found.append(EngineFault("PostgreSQL", f"indexes were made under collation {made}, it is {now}", do))
    return found


def find_file_condition(connection: Connection) -> FileCondition | None:
    """Sizes, room and rights of a SQLite base's file; None where the base is no file of this machine."""
    path = file_of(connection.engine)
    if path is None or not path.exists():
        return None
    wal = path.with_name(path.name + "-wal")
    return FileCondition(
        path,
        path.stat().st_size,
        wal.stat().st_size if wal.exists() else 0,
        shutil.disk_usage(path.absolute().parent).free,
        bool(path.stat().st_mode & 0o004),
        bool(path.stat().st_mode & 0o002),
    )
