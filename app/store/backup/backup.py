"""Backups: a consistent copy of the database as one SQLite file, from either engine.

A backup is a complete database without a write-ahead log. It is renamed to its final name only when it is
complete and checked; likewise, a restore replaces the existing database only at the end.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from app.errors import StoreError
from app.store.backup.copy import NOT_COPIED, copy_database, copy_rows, find_filled
from app.store.engine.sqlite_file import OWNER_ONLY, exclusive_access, opened_file, sqlite_file
from app.store.records import Report, quiet
from app.store.schema import current_revision, migrate
from app.store.session import Store, open_store

_MAGIC = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class Restored:
    """Result of a restore: the row count of each table, and where the replaced file is kept (`aside`)."""

    rows: dict[str, int]
    aside: Path | None


def back_up(store: Store, path: Path, report: Report = quiet, *, force: bool = False) -> dict[str, int]:
    """Write a backup of a database of any schema version, which may be in use.

    Args:
        report: called as PostgreSQL rows are copied; a SQLite file is copied in one step.

    Returns:
        The row count of each table.

    Raises:
        StoreError: the file exists or cannot be written, or the database cannot be read.
    """
    if path.exists() and not force:
        raise StoreError(f"{path} is there already: name another file, or add --force")
    if not path.absolute().parent.is_dir():
        raise StoreError(f"there is no folder {path.absolute().parent}: make it first")
    schema = current_revision(store)
    if schema is None:
        raise StoreError("the database holds nothing to back up: it was never set up")
    file = sqlite_file(store.engine.url.render_as_string(hide_password=False))
    with _draft_beside(path) as draft:
        if file is not None:
            with opened_file(file) as database:
                database.execute("VACUUM INTO ?", (str(draft),))
        else:
            with _opened(draft) as copy:
                migrate(copy, schema)
                copy_rows(store, copy, report)
        with opened_file(draft, write=True):
            pass  # turns the write-ahead log off
        rows = check_backup(draft)
        draft.replace(path)
    return rows


@contextmanager
def _draft_beside(path: Path) -> Iterator[Path]:
    """Yield a temporary file in the same folder, deleted at the end unless it was renamed."""
    draft = path.absolute().with_name(f".{path.name}.{os.getpid()}.part")
    try:
        draft.touch(OWNER_ONLY)
        yield draft
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        for rest in ("", "-wal", "-shm", "-journal"):
            draft.with_name(draft.name + rest).unlink(missing_ok=True)


def _opened(path: Path) -> closing[Store]:
    return closing(open_store(f"sqlite:///{path}"))


def check_backup(path: Path) -> dict[str, int]:
    """Check a backup completely and return the row count of each table.

    Raises:
        StoreError: the file is missing, not a backup, or damaged.
    """
    if not path.is_file():
        raise StoreError(f"there is no file {path}")
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) not in {_MAGIC, b""}:
            raise StoreError(f"{path} was not made by `triage backup`: it is no SQLite database")
    damaged = StoreError(f"the backup {path} is damaged: restore another one; the database was not touched")
    try:
        with opened_file(path) as connection:
            found = str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
    except StoreError:
        raise damaged from None
    if found != "ok":
        raise damaged
    with opened_file(path) as connection:
        listed = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        names = {name for (name,) in listed if not name.startswith("sqlite_")}
        if "alembic_version" not in names:
            raise StoreError(f"{path} was not made by `triage backup`")
        return {
            name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]
            for name in sorted(names - NOT_COPIED)
        }


def restore(path: Path, url: str, report: Report = quiet, *, force: bool = False) -> Restored:
    """Restore a backup: check it, migrate it to the newest schema, then replace the database with it.

    Args:
        url: the database to replace. A SQLite file must not be in use; on PostgreSQL no sync may run.
        force: replace a database that has rows or is damaged.

    Raises:
        SchemaError: the backup was made by a newer version of the program.
        StoreError: the backup is invalid or damaged; the database is in use, has rows or cannot be written.
    """
    rows = check_backup(path)
    file = sqlite_file(url)
    if file is not None:
        return Restored(rows, _restore_file(path, file, force=force))
    with closing(open_store(url)) as target:
        if not force and (filled := _filled_table(target)):
            raise StoreError(
                f"the database has rows (in {filled}): `triage backup` keeps them, --force replaces them"
            )
        with tempfile.TemporaryDirectory(prefix="triage-restore-") as folder:
            copy = Path(folder) / "backup.db"
            _copy_migrated(path, copy)
            with _opened(copy) as source:
                copy_database(source, target, report, replacing=force)
    return Restored(rows, None)


def _restore_file(path: Path, target: Path, *, force: bool) -> Path | None:
    """Replace a SQLite file with a backup; return where the replaced file is kept, or None if new."""
    if target.exists() and not force and _has_rows(target):
        raise StoreError(f"{target} has rows: add --force to replace it; the old file is kept beside it")
    target.absolute().parent.mkdir(parents=True, exist_ok=True)
    with _draft_beside(target) as draft:
        _copy_migrated(path, draft)
        if not target.exists():
            draft.replace(target)
            return None
        aside = target.with_name(f"{target.name}.before-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
        with exclusive_access(target):
            draft.chmod(target.stat().st_mode & 0o777)
            aside.hardlink_to(target)
            draft.replace(target)
            for rest in ("-wal", "-shm"):  # of a damaged file; SQLite would read them into the new one
                left = target.with_name(target.name + rest)
                if left.exists():
                    left.rename(aside.with_name(aside.name + rest))
        return aside


def _filled_table(store: Store) -> str | None:
    with store.reading() as session:
        return find_filled(session.connection())


def _has_rows(target: Path) -> bool:
    """True if rows would be lost; a damaged non-empty file counts as having some."""
    try:
        with _opened(target) as store:
            return _filled_table(store) is not None
    except StoreError:
        return target.stat().st_size > 0


def _copy_migrated(path: Path, copy: Path) -> None:
    """Copy a backup and migrate the copy to the newest schema."""
    with opened_file(path) as backup:
        backup.execute("VACUUM INTO ?", (str(copy),))
    with _opened(copy) as store:
        migrate(store)
    with opened_file(copy, write=True) as connection:
        connection.execute("DROP TABLE IF EXISTS backup_manifest")  # former versions left one
