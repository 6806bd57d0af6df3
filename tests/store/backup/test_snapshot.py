"""A snapshot holds what came from GitHub, and nothing that people did here; what is not whole is refused."""

from __future__ import annotations

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from app.errors import SchemaError, StoreError
from app.store.backup.snapshot import MANIFEST, PACKED, read_manifest, unpack, write_snapshot
from app.store.session import open_store
from tests.starter_base import starter_file

KEY = b"a key of votes, which nobody else may have"


@pytest.fixture
def published(tmp_path: Path) -> Path:
    base = tmp_path / "own.db"
    base.write_bytes(starter_file().read_bytes())
    with closing(sqlite3.connect(base)) as connection, connection:
        connection.execute("INSERT INTO secret (name, value) VALUES ('votes', ?)", (KEY,))
    with closing(open_store(f"sqlite:///{base}")) as store:
        write_snapshot(store, tmp_path / "out", rules="r1")
    return tmp_path / "out"


def test_what_was_published_is_unpacked_without_what_people_did_here(published: Path) -> None:
    manifest = read_manifest((published / MANIFEST).read_bytes())
    unpack(published / PACKED, manifest, published / "base.db")

    assert (manifest.file, manifest.rules, manifest.repositories) == (PACKED, "r1", ("vllm-project/vllm",))
    assert KEY not in (published / "base.db").read_bytes()
    with closing(sqlite3.connect(published / "base.db")) as connection:
        assert connection.execute("SELECT count(*) FROM secret").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM issue").fetchone() == (manifest.issues,)
    assert sorted(path.name for path in published.iterdir()) == ["base.db", MANIFEST, PACKED]


def test_a_flipped_byte_is_refused(published: Path) -> None:
    manifest = read_manifest((published / MANIFEST).read_bytes())
    packed = bytearray((published / PACKED).read_bytes())
    packed[len(packed) // 2] ^= 1
    (published / PACKED).write_bytes(packed)

    with pytest.raises(StoreError, match="checksum"):
        unpack(published / PACKED, manifest, published / "base.db")


def test_more_than_the_manifest_says_is_not_unpacked(published: Path) -> None:
    manifest = read_manifest((published / MANIFEST).read_bytes())
    smaller = manifest.model_copy(update={"unpacked_bytes": 1000})

    with pytest.raises(StoreError, match="not as large"):
        unpack(published / PACKED, smaller, published / "base.db")


@pytest.mark.parametrize(
    ("changed", "error", "said"),
    [
        ({"schema_revision": "29990101_later"}, SchemaError, "newer version"),
        ({"file": "../../etc/passwd"}, StoreError, "no manifest"),
        ({"file": "https://elsewhere.example.org/x"}, StoreError, "no manifest"),
        ({"sha256": "x"}, StoreError, "no manifest"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_refused(
    published: Path, changed: dict[str, str], error: type[StoreError], said: str
) -> None:
    found = json.loads((published / MANIFEST).read_text()) | changed

    with pytest.raises(error, match=said):
        read_manifest(json.dumps(found).encode())


def test_a_name_of_a_file_is_taken(tmp_path: Path) -> None:
    with closing(open_store(f"sqlite:///{starter_file()}")) as store:
        manifest = write_snapshot(store, tmp_path / "vllm.db.gz", rules="r1")

    assert manifest.file == "vllm.db.gz"
    assert gzip.open(tmp_path / "vllm.db.gz").read(15) == b"SQLite format 3"
