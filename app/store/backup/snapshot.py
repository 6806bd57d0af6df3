"""Snapshots: a compressed copy of the database for publication, with a manifest that describes it.

It contains the data from GitHub and what was derived from it, but no user-submitted data of this server
(votes, judgements, kept logs) and no secrets.
"""

import gzip
import hashlib
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from pydantic import Field, ValidationError

from app.errors import SchemaError, StoreError
from app.extract.facts import Frozen
from app.store.backup.backup import back_up
from app.store.engine.sqlite_file import opened_file
from app.store.records import Report, quiet
from app.store.schema import check_current, known_revisions, newest_revision
from app.store.session import Store

MANIFEST = "manifest.json"
PACKED = "triage-snapshot.db.gz"
STRIP = """BEGIN;
DELETE FROM vote; DELETE FROM remedy_vote; DELETE FROM judgement;
DELETE FROM kept_log; DELETE FROM secret; DELETE FROM delivery;
COMMIT; VACUUM"""
"""Deletes this server's user-submitted data and secrets."""
COMPRESSION = 4
"""gzip level: 6, the usual one, makes snapshots 4 % smaller but takes twice as long."""
STEP_BYTES = 1 << 20


class Manifest(Frozen):
    """Description of a snapshot, stored beside its file."""

    file: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,100}$")
    size_bytes: int = Field(gt=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    unpacked_bytes: int = Field(gt=0)
    made_at: datetime
    schema_revision: str
    rules: str = Field(description="version of the rules by which issues were read")
    issues: int
    repositories: tuple[str, ...]


def write_snapshot(store: Store, target: Path, *, rules: str, report: Report = quiet) -> Manifest:
    """Write a snapshot of a database, which may be in use, and then its manifest.

    Args:
        target: a folder, or the path of the `.gz` file; the manifest is written beside it.

    Raises:
        SchemaError: the database does not have this program's schema.
        StoreError: the database cannot be read, or the files cannot be written.
    """
    check_current(store)
    packed = target if target.name.endswith(".gz") else target / PACKED
    try:
        packed.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".triage-publish-", dir=packed.parent) as folder:
            copy, draft = Path(folder) / "base.db", Path(folder) / packed.name
            back_up(store, copy, report)
            issues, repositories = _strip(copy)
            with copy.open("rb") as source, gzip.open(draft, "wb", compresslevel=COMPRESSION) as packing:
                shutil.copyfileobj(source, packing, STEP_BYTES)
            manifest = Manifest(
                file=packed.name,
                size_bytes=draft.stat().st_size,
                sha256=checksum(draft),
                unpacked_bytes=copy.stat().st_size,
                made_at=datetime.now(UTC),
                schema_revision=newest_revision(),
                rules=rules,
                issues=issues,
                repositories=repositories,
            )
            draft.replace(packed)
            (packed.parent / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{packed} cannot be written: {error.strerror}") from error
    return manifest


def _strip(copy: Path) -> tuple[int, tuple[str, ...]]:
    """Delete what must not be published, free pages included; return issue count and repository names."""
    with opened_file(copy, write=True) as connection:
        connection.executescript(STRIP)
        issues = connection.execute("SELECT count(*) FROM issue").fetchone()[0]
        names = connection.execute("SELECT full_name FROM repository ORDER BY id").fetchall()
    return issues, tuple(name for (name,) in names)


def checksum(path: Path) -> str:
    """Return a file's SHA-256 as hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_manifest(text: bytes) -> Manifest:
    """Parse a manifest and check that this program can use its snapshot.

    Raises:
        SchemaError: the snapshot was made by a newer version of the program.
        StoreError: the text is not a manifest.
    """
    try:
        manifest = Manifest.model_validate_json(text)
    except ValidationError:
        raise StoreError(f"this is no {MANIFEST} of `triage publish`") from None
    if manifest.schema_revision not in known_revisions():
        raise SchemaError(
            f"the snapshot has schema {manifest.schema_revision[:60]!r}, made by a newer version: "
            "install that version"
        )
    return manifest


def unpack(packed: Path, manifest: Manifest, target: Path) -> None:
    """Verify a snapshot's checksum and size, and unpack it into a backup file.

    Raises:
        StoreError: the snapshot does not match its manifest.
    """
    if checksum(packed) != manifest.sha256:
        raise StoreError("the snapshot is damaged: its checksum is not the manifest's; nothing was changed")
    left = manifest.unpacked_bytes
    with gzip.open(packed, "rb") as source, target.open("wb") as file:
        while left >= 0 and (chunk := source.read(STEP_BYTES)):
            left -= len(chunk)
            file.write(chunk)
    if left:
        raise StoreError("the snapshot is not as large as its manifest says; nothing was changed")
