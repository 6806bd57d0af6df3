"""Snapshots over HTTP: cut downloads go on, what is wrong changes nothing, the base syncs on from its cursor."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from app.errors import ConfigError, SchemaError, ServerError, StoreError
from app.remote import snapshot
from app.remote.snapshot import restore_snapshot
from app.store.backup.backup import check_backup
from app.store.backup.snapshot import MANIFEST, PACKED, read_manifest, write_snapshot
from app.store.records import quiet
from app.store.session import open_store
from tests.command import triage
from tests.starter_base import starter_file


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    with closing(open_store(f"sqlite:///{starter_file()}")) as store:
        write_snapshot(store, folder, rules="r1")
    return folder


@contextmanager
def offered(folder: Path, *, cuts: int = 0, ranges: bool = True) -> Iterator[tuple[str, list[int]]]:
    """The address of a folder, and where each request of the packed file began; the first ones are cut."""
    starts: list[int] = []
    dice = random.Random(7)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = (folder / Path(self.path).name).read_bytes()
            asked = re.match(r"bytes=(\d+)-", self.headers.get("range", "")) if ranges else None
            start = int(asked[1]) if asked else 0
            self.send_response(206 if asked else 200)
            self.send_header("Content-Length", str(len(content) - start))
            if asked:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            self.end_headers()
            content = content[start:]
            if self.path.endswith(".gz"):
                starts.append(start)
                if len(starts) <= cuts:
                    content = content[: dice.randrange(1, len(content) // 3)]
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/", starts
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "PAUSE_S", 0)


@pytest.mark.parametrize("ranges", [True, False])
def test_a_download_cut_at_ten_places_comes_to_its_end(published: Path, tmp_path: Path, ranges: bool) -> None:
    with offered(published, cuts=10 if ranges else 1, ranges=ranges) as (url, starts):
        manifest, restored = restore_snapshot(url, f"sqlite:///{tmp_path}/new/triage.db", quiet)

    assert restored.rows["issue"] == manifest.issues > 50
    assert starts == sorted(set(starts)) or not ranges
    assert check_backup(tmp_path / "new" / "triage.db")["issue"] == manifest.issues
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["triage.db"]


def test_what_an_earlier_run_brought_is_not_asked_for_again(published: Path, tmp_path: Path) -> None:
    manifest = read_manifest((published / MANIFEST).read_bytes())
    part = tmp_path / f".triage-snapshot-{manifest.sha256[:16]}.part"
    part.write_bytes((published / PACKED).read_bytes()[:1000])
    with offered(published) as (url, starts):
        restore_snapshot(url, f"sqlite:///{tmp_path}/triage.db", quiet)

    assert starts == [1000]
    assert not part.exists()


def test_a_flipped_byte_or_a_newer_schema_changes_nothing(published: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.mkdir()
    packed = bytearray((published / PACKED).read_bytes())
    packed[-100] ^= 1
    (bad / PACKED).write_bytes(packed)
    found = (published / MANIFEST).read_text()
    (bad / MANIFEST).write_text(found)
    base = f"sqlite:///{tmp_path}/base/triage.db"
    with offered(bad) as (url, starts):
        with pytest.raises(StoreError, match="checksum"):
            restore_snapshot(url, base, quiet)
        (bad / MANIFEST).write_text(re.sub(r'"schema_revision": "\d+', '"schema_revision": "2999', found))
        with pytest.raises(SchemaError, match="newer version"):
            restore_snapshot(url, base, quiet)

    assert len(starts) == 1
    assert not any((tmp_path / "base").iterdir())


@pytest.mark.parametrize(
    ("url", "error"),
    [("ftp://x/", ConfigError), ("http://127.0.0.1:9/", ServerError), ("{}none.json", ServerError)],
)
def test_an_address_that_gives_none_is_told(
    published: Path, tmp_path: Path, url: str, error: type[Exception]
) -> None:
    (tmp_path / "none.json").write_text("{}")
    with offered(published) as (address, _), pytest.raises(error):
        restore_snapshot(url.format(address), f"sqlite:///{tmp_path}/triage.db", quiet)


def test_the_commands_publish_and_restore(tmp_path: Path) -> None:
    (tmp_path / "triage.db").write_bytes(starter_file().read_bytes())
    assert triage("publish", "out", folder=tmp_path).returncode == 0
    with offered(tmp_path / "out") as (url, _):
        refused = triage("restore", url, folder=tmp_path)
        back = triage("restore", url, folder=tmp_path, TRIAGE_DATABASE_URL="sqlite:///other.db")

    assert (refused.returncode, b"has rows" in refused.stderr) == (1, True)
    assert (back.returncode, b"rows are back, checked" in back.stderr) == (0, True)
