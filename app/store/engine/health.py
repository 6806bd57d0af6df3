"""Database health checks: engine version, damage, size, disk space, permissions, and derived data.

Faults in derived data lose nothing, since it can be derived again from the raw rows. The search index is
checked by sample: term ids are hashes, so any range of them is random.
"""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Literal

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from app.extract.facts import Frozen
from app.store.engine.connect import is_sqlite, sql_rows
from app.store.engine.errors import explain
from app.store.engine.sqlite_file import sqlite_file

POSTGRESQL_MINIMUM = 15
PROBE_WAIT_MS = 500
FREE_BYTES_MIN = 200 << 20
"""With less on the disk the next sync may fail."""
WAL_BYTES_MAX = 512 << 20
"""A larger write-ahead log means that some reader never finishes."""
MIB = 1 << 20
LARGE_BYTES = 1 << 20
"""Smaller tables need no planner statistics."""
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
_RESTORE = "stop the server, then `triage restore BACKUP --force`"


class Finding(Frozen):
    """A problem and what to do about it.

    Level `fault`: answers are wrong or data is at risk. Level `advice`: an improvement is recommended.
    """

    level: Literal["fault", "advice"]
    thing: str
    fault: str
    do: str


def a_fault(thing: str, fault: str, do: str) -> Finding:
    """Return a finding of level `fault`."""
    return Finding(level="fault", thing=thing, fault=fault, do=do)


def an_advice(thing: str, fault: str, do: str) -> Finding:
    """Return a finding of level `advice`."""
    return Finding(level="advice", thing=thing, fault=fault, do=do)


def engine_version(connection: Connection) -> str:
    """Return the engine and its version, such as "SQLite 3.40.1"."""
    if is_sqlite(connection):
        return f"SQLite {sqlite3.sqlite_version}"
    return f"PostgreSQL {connection.execute(text('SHOW server_version')).scalar_one()}"


def find_damage(connection: Connection) -> Finding | None:
    """Check a whole SQLite file for damage. PostgreSQL checks its pages itself as it reads them."""
    if not is_sqlite(connection):
        return None
    try:
        found = str(connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one())
        orphan = connection.exec_driver_sql("PRAGMA foreign_key_check").first() if found == "ok" else None
    except DBAPIError as error:
        return a_fault("database file", explain(error), _RESTORE)
    if found != "ok":
        return a_fault("database file", f"it is damaged: {_damage(found)}", _RESTORE)
    if orphan is not None:
        fault = f"a row of the table {orphan[0]} belongs to one of {orphan[2]} that is not there"
        return a_fault("rows", fault, f"{_RESTORE}, or `triage reextract`")
    return None


def _damage(report: str) -> str:
    """Return the first error in `quick_check`'s report, without the `***` line that names the database."""
    lines = [line for line in report.splitlines() if line and not line.startswith("***")]
    return next(iter(lines), "its pages are not in order")[:200]


def examine_engine(connection: Connection) -> Iterator[Finding]:
    """Check the engine's version, settings and permissions."""
    return _examine_sqlite(connection) if is_sqlite(connection) else _examine_server(connection)


def _examine_sqlite(connection: Connection) -> Iterator[Finding]:
    """Check that the file is writable, with a rolled-back write. A lock held by a writer is no fault."""
    path = sqlite_file(str(connection.engine.url))
    if path is None:
        return
    mode = "ro" if "mode=ro" in str(connection.engine.url) else "rw"
    address = f"{path.absolute().as_uri()}?mode={mode}"
    try:
        with closing(
            sqlite3.connect(address, uri=True, isolation_level=None, timeout=PROBE_WAIT_MS / 1000)
        ) as probe:
            probe.execute("BEGIN IMMEDIATE")
            probe.execute("CREATE TABLE doctor_probe (n INTEGER)")
            probe.execute("ROLLBACK")
    except sqlite3.Error as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            yield a_fault("database file", explain(error), "until then nothing new can be stored")


def _examine_server(connection: Connection) -> Iterator[Finding]:
    version = int(connection.execute(text("SHOW server_version_num")).scalar_one()) // 10_000
    if version < POSTGRESQL_MINIMUM:
        do = f"upgrade the server to {POSTGRESQL_MINIMUM} or newer"
        yield a_fault("PostgreSQL", f"version {version} is too old", do)
    encoding = connection.execute(text("SHOW server_encoding")).scalar_one()
    if encoding != "UTF8":
        do = "make a database with ENCODING 'UTF8' and move there: `triage copy`"
        yield a_fault("PostgreSQL", f"the database's encoding is {encoding}, not UTF8", do)
    if connection.execute(text("SELECT pg_is_in_recovery()")).scalar_one():
        yield a_fault("PostgreSQL", "the server is a standby", "name the primary's address")
    made, now = connection.execute(text(_COLLATION)).one()
    if made is not None and made != now:
        do = "REINDEX DATABASE, then ALTER DATABASE … REFRESH COLLATION VERSION"
        yield a_fault("PostgreSQL", f"indexes were made under collation {made}, it is {now}", do)
    unknown = connection.execute(text(_WITHOUT_STATISTICS), {"least": LARGE_BYTES}).scalars().all()
    if unknown:
        fault = f"there are no statistics on the tables {', '.join(unknown)}, so queries are planned badly"
        yield an_advice("PostgreSQL", fault, "VACUUM (ANALYZE), in this database, by its owner")
    if connection.execute(text("SHOW autovacuum")).scalar_one() == "off":
        fault = "autovacuum is off: tables swell, and the statistics for query plans grow old"
        yield an_advice("PostgreSQL", fault, "turn it on, or VACUUM (ANALYZE) each night")


def examine_file(path: Path, *, keeps_logs: bool) -> tuple[str, list[Finding]]:
    """Return a description of a SQLite file, and findings on its size, disk space and permissions."""
    wal = path.with_name(path.name + "-wal")
    wal_bytes = wal.stat().st_size if wal.exists() else 0
    file, free_bytes = path.stat(), shutil.disk_usage(path.absolute().parent).free
    size, free = (f"{size / MIB:,.0f} MiB" for size in (file.st_size, free_bytes))
    findings = []
    if free_bytes < max(FREE_BYTES_MIN, file.st_size // 5):
        do = "free some, or move the database: `triage copy`"
        findings.append(a_fault("disk", f"{free} are free beside a database of {size}", do))
    if wal_bytes > max(WAL_BYTES_MAX, file.st_size):
        fault = f"it has grown to {wal_bytes / MIB:,.0f} MiB: some reader does not end"
        findings.append(an_advice("write-ahead log", fault, "restart the processes that use the database"))
    closed = f"chmod o-rwx {path}"
    if file.st_mode & 0o002:
        findings.append(a_fault("database file", "every user of this machine may write it", closed))
    elif file.st_mode & 0o004 and keeps_logs:
        fault = "every user of this machine may read the logs that people kept in it"
        findings.append(an_advice("database file", fault, closed))
    return f"{path}, {size}, {free} free on its disk", findings


TERMS = 400
AGAIN = "`triage reextract` derives it again"
LATER = "the next `triage sync` does it, or `triage reextract` now"

_TERMS = f"(SELECT id, df FROM term WHERE id > 0 ORDER BY id LIMIT {TERMS}) AS term"
_WRONG_COUNT = f"""
    SELECT count(*) FROM {_TERMS} WHERE df <> (SELECT count(*) FROM posting WHERE term_id = term.id)
"""
_NO_ISSUE = f"""
    SELECT count(*) FROM {_TERMS} JOIN posting p ON p.term_id = term.id
    WHERE NOT EXISTS (SELECT 1 FROM issue WHERE issue.repo_id = p.repo_id AND issue.number = p.number)
"""
_NO_CLUSTER = """
    SELECT count(*) FROM cluster_member m WHERE NOT EXISTS (
        SELECT 1 FROM cluster WHERE cluster.repo_id = m.repo_id AND cluster.id = m.cluster_id)
"""
_READ_WITHOUT = """
    SELECT count(*) FROM reading r JOIN issue i ON i.repo_id = r.repo_id AND i.number = r.number
    WHERE r.repo_id = :repo_id AND NOT i.is_pull_request AND NOT EXISTS (
        SELECT 1 FROM {table} t WHERE t.repo_id = r.repo_id AND t.number = r.number)
"""
_NO_FEATURES = _READ_WITHOUT.format(table="pair_view") + "AND r.fault IS NULL"
_IN_NO_CLUSTER = _READ_WITHOUT.format(table="cluster_member") + (
    "AND i.gone_at IS NULL AND CAST(r.facts ->> 'is_failure' AS text) IN ('1', 'true')"
)


def check_derived(session: Session) -> Iterator[Finding]:
    """Find derived data that is inconsistent with its sources."""
    for thing, query, fault in (
        ("search index", _WRONG_COUNT, f"of {TERMS} terms have a wrong number of issues"),
        ("search index", _NO_ISSUE, "entries lead to no issue"),
        ("clusters", _NO_CLUSTER, "issues are in a cluster that is not there"),
    ):
        if count := sql_rows(session, query)[0][0]:
            yield a_fault(thing, f"{count:,} {fault}", AGAIN)


def check_repository(session: Session, repo_id: int, repo: str) -> Iterator[Finding]:
    """Find issues of a repository whose features or clusters have not been derived yet."""
    for query, fault in (
        (_NO_FEATURES, "issues cannot be compared with others"),
        (_IN_NO_CLUSTER, "issues report a failure and are in no cluster"),
    ):
        if count := sql_rows(session, query, repo_id=repo_id)[0][0]:
            yield an_advice(repo, f"{count:,} {fault}", LATER)
