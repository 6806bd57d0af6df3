"""Backups: one file of one moment, SQLite's whichever engine the base is in, with a manifest inside.

The manifest tells each table's columns, row count and checksum, so a backup can be checked where nothing else
is left, and restored into either engine. A backup appears under its name only when it is whole and checked; a
restored base takes the old one's place only then too.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from app import __version__
from app.errors import StoreError
from app.store.backup.checksums import Shape, Summed, shapes_in
from app.store.backup.copy import (
    NO_ROWS_OF_OURS,
    Report,
    check_sums,
    copy_base,
    copy_rows,
    find_filled,
    no_report,
    sum_tables,
)
from app.store.engine.connect import is_sqlite
from app.store.engine.errors import explain
from app.store.engine.sqlite_file import (
    alone_with,
    check_file,
    copy_file_of,
    count_users,
    put_in_place,
    settle,
    sqlite_file,
)
from app.store.schema import check_not_newer, current_revision, migrate
from app.store.session import Store, open_store

OWNER_ONLY = 0o600
"""A backup holds the logs that people kept."""
_MAKE = "CREATE TABLE backup_manifest (manifest TEXT NOT NULL)"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup says of itself. `schema` is its revision; columns are told with their kinds."""

    made_at: datetime
    program: str
    schema: str
    shapes: tuple[Shape, ...]
    tables: dict[str, Summed]

    @property
    def rows(self) -> int:
        """How many rows there are in all."""
        return sum(summed.rows for summed in self.tables.values())


@dataclass(frozen=True, slots=True)
class Restored:
    """What was put back; `aside` is where the file is that was there before."""

    manifest: Manifest
    aside: Path | None


def back_up(store: Store, path: Path, report: Report = no_report, *, force: bool = False) -> Manifest:
    """Write a backup of a base that may be in use.

    Args:
        store: the base; of any schema version.
        path: the file to write; it appears at once and whole.
        report: told how far it is.
        force: put it in the place of a file that is there.

    Raises:
        StoreError: there is such a file already, it cannot be written, or the base cannot be read.
    """
    if path.exists() and not force:
        raise StoreError(f"{path} is there already: name another file, or add --force")
    if not path.absolute().parent.is_dir():
        raise StoreError(f"there is no folder {path.absolute().parent}: make it first")
    schema = current_revision(store)
    if schema is None:
        raise StoreError("the database holds nothing to back up: it was never set up")
    with _draft_beside(path) as draft:
        shapes, tables = (_draw if is_sqlite(store.engine) else _translate)(store, draft, report)
        manifest = Manifest(datetime.now(UTC), __version__, schema, tuple(shapes), tables)
        _write_manifest(draft, manifest)
        settle(draft)
        check_file(draft)
        draft.replace(path)
    return manifest


@contextmanager
def _draft_beside(path: Path) -> Iterator[Path]:
    """A name beside the file's for what is not whole yet; what is left there in the end goes."""
    draft = path.absolute().with_name(f".{path.name}.{os.getpid()}.part")
    try:
        draft.touch(OWNER_ONLY)
        yield draft
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        for rest in ("", "-wal", "-shm", "-journal"):
            draft.with_name(draft.name + rest).unlink(missing_ok=True)


def _draw(store: Store, draft: Path, report: Report) -> tuple[list[Shape], dict[str, Summed]]:
    """The file's pages, as one transaction sees them."""
    with store.reading() as session:
        connection = session.connection()
        shapes = shapes_in(connection, leaving_out=NO_ROWS_OF_OURS)
        tables = sum_tables(connection, shapes, report)
        copy_file_of(connection, draft)
    _check_rows(draft, shapes, tables, report)
    return shapes, tables


def _translate(store: Store, draft: Path, report: Report) -> tuple[list[Shape], dict[str, Summed]]:
    """Another engine's rows in a new SQLite file of the same schema."""
    with _opened(draft) as copy:
        migrate(copy, current_revision(store) or "head")
        tables = copy_rows(store, copy, report)
        with copy.reading() as session:
            return shapes_in(session.connection(), leaving_out=NO_ROWS_OF_OURS), tables


@contextmanager
def _opened(path: Path) -> Iterator[Store]:
    store = open_store(f"sqlite:///{path}")
    try:
        yield store
    finally:
        store.close()


def _check_rows(path: Path, shapes: list[Shape], wanted: dict[str, Summed], report: Report) -> None:
    with _opened(path) as copy, copy.reading() as session:
        check_sums(session.connection(), shapes, wanted, report)


def _write_manifest(path: Path, manifest: Manifest) -> None:
    told = {
        "made_at": manifest.made_at.isoformat(),
        "program": manifest.program,
        "schema": manifest.schema,
        "tables": [
            {"name": shape.name, "columns": dict(shape.columns), **asdict(manifest.tables[shape.name])}
            for shape in manifest.shapes
        ],
    }
    try:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("DROP TABLE IF EXISTS backup_manifest")
            connection.execute(_MAKE)
            connection.execute("INSERT INTO backup_manifest VALUES (?)", (json.dumps(told),))
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be written: {explain(error)}") from error


def read_manifest(path: Path) -> Manifest:
    """What a backup says of itself.

    Raises:
        StoreError: it is no backup, or a damaged one.
    """
    check_file(path)
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            told = json.loads(connection.execute("SELECT manifest FROM backup_manifest").fetchone()[0])
        return Manifest(
            datetime.fromisoformat(told["made_at"]),
            told["program"],
            told["schema"],
            tuple(Shape(table["name"], table["columns"]) for table in told["tables"]),
            {table["name"]: Summed(table["rows"], table["checksum"]) for table in told["tables"]},
        )
    except (sqlite3.Error, KeyError, TypeError, ValueError):
        raise StoreError(f"{path} was not made by `triage backup`; `triage copy` moves a base") from None


def restore(path: Path, url: str, report: Report = no_report, *, force: bool = False) -> Restored:
    """Put a backup back: checked first, brought to the newest schema, then in the place of what is there.

    Args:
        path: the backup, which is left as it is.
        url: the base's address; nobody else may use it.
        report: told how far it is.
        force: also in the place of a base that has rows, or is damaged.

    Raises:
        SchemaError: the backup was made by a newer version of the program.
        StoreError: it is no backup or damaged, the base is in use or has rows, or cannot be written.
    """
    manifest = read_manifest(path)
    file = sqlite_file(url)
    if file is not None:
        return Restored(manifest, _restore_file(path, manifest, file, report, force=force))
    target = open_store(url)
    try:
        if users := count_users(target.engine):
            raise StoreError(f"the base is in use ({users} other processes): stop servers and syncs first")
        if not force and (filled := _filled_table(target)):
            raise StoreError(
                f"the base has rows (in {filled}): `triage backup` keeps them, --force replaces them"
            )
        with tempfile.TemporaryDirectory(prefix="triage-restore-") as folder:
            copy = Path(folder) / "backup.db"
            _copy_checked(path, copy, manifest, report)
            with _opened(copy) as source:
                copy_base(source, target, report, replacing=force)
    finally:
        target.close()
    return Restored(manifest, None)


def _restore_file(
    path: Path, manifest: Manifest, target: Path, report: Report, *, force: bool
) -> Path | None:
    there = target.exists()
    if there and not force and _has_rows(target):
        raise StoreError(f"{target} has rows: add --force to replace it; the old file is kept beside it")
    target.absolute().parent.mkdir(parents=True, exist_ok=True)
    with _draft_beside(target) as draft:
        _copy_checked(path, draft, manifest, report)
        if not there:
            draft.replace(target)
            return None
        aside = target.with_name(f"{target.name}.before-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
        with alone_with(target):
            put_in_place(draft, target, aside)
        return aside


def _filled_table(store: Store) -> str | None:
    with store.reading() as session:
        return find_filled(session.connection())


def _has_rows(target: Path) -> bool:
    """Whether rows would be lost; a damaged file may hold some."""
    try:
        with _opened(target) as store:
            return _filled_table(store) is not None
    except StoreError:
        return target.stat().st_size > 0


def _copy_checked(path: Path, copy: Path, manifest: Manifest, report: Report) -> None:
    """A copy of a backup whose rows are those of its manifest, in the newest schema, without the manifest."""
    shutil.copyfile(path, copy)
    with _opened(copy) as store:
        check_not_newer(store)
        _check_rows(copy, list(manifest.shapes), manifest.tables, report)
        with store.unit_of_work() as session:
            session.connection().exec_driver_sql("DROP TABLE backup_manifest")
        migrate(store)
    settle(copy)
