"""Download a published snapshot, verify it, and replace the database with it.

An interrupted download is resumed, in the same run or the next one.
"""

import tempfile
import time
from pathlib import Path
from urllib.parse import urljoin

import httpx

from app import __version__
from app.errors import ConfigError, ServerError, StoreError
from app.store.backup.backup import Restored, restore
from app.store.backup.snapshot import MANIFEST, Manifest, read_manifest, unpack
from app.store.engine.sqlite_file import sqlite_file
from app.store.records import Progress, Report

TIMEOUT_S = 30.0
FRUITLESS_MAX = 5
"""Consecutive connections without progress before giving up."""
PAUSE_S = 1.0
MANIFEST_MAX_BYTES = 64 * 1024


def restore_snapshot(
    url: str, database_url: str, report: Report, *, force: bool = False
) -> tuple[Manifest, Restored]:
    """Fetch a snapshot of `triage publish`, verify it, and replace the database with it.

    Args:
        url: of the manifest, or of its folder.
        database_url: the database to replace, which must not be in use.

    Raises:
        ConfigError: not an http(s) URL.
        ServerError: no response, or an error status.
        SchemaError, StoreError: the snapshot is invalid or the database cannot be replaced; nothing changed.
    """
    if not url.startswith(("http://", "https://")):
        raise ConfigError("the snapshot's address must be an http:// or https:// address")
    address = url if url.endswith(".json") else f"{url.rstrip('/')}/{MANIFEST}"
    file = sqlite_file(database_url)
    folder = file.absolute().parent if file else Path(tempfile.gettempdir())
    agent = {"User-Agent": f"vllm-triage/{__version__}", "Accept-Encoding": "identity"}
    with httpx.Client(timeout=TIMEOUT_S, follow_redirects=True, headers=agent) as client:
        manifest = _fetch_manifest(client, address)
        part = folder / f".triage-snapshot-{manifest.sha256[:16]}.part"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _fetch(client, urljoin(address, manifest.file), manifest, part, report)
            with tempfile.TemporaryDirectory(prefix=".triage-snapshot-", dir=folder) as room:
                backup = Path(room) / "base.db"
                try:
                    unpack(part, manifest, backup)
                finally:
                    part.unlink()
                restored = restore(backup, database_url, report, force=force)
        except OSError as error:
            raise StoreError(f"{folder} cannot take the snapshot: {error.strerror}") from error
    return manifest, restored


def _fetch_manifest(client: httpx.Client, address: str) -> Manifest:
    try:
        with client.stream("GET", address) as reply:
            _check(reply, address)
            text = b""
            for chunk in reply.iter_raw():
                text += chunk
                if len(text) > MANIFEST_MAX_BYTES:
                    raise StoreError(f"{address} is too large for a manifest of `triage publish`")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ServerError(f"{address} cannot be fetched: {type(error).__name__}") from None
    return read_manifest(text)


def _check(reply: httpx.Response, address: str) -> None:
    if reply.status_code not in {httpx.codes.OK, httpx.codes.PARTIAL_CONTENT}:
        raise ServerError(f"{address} cannot be fetched: it answers {reply.status_code}")


def _fetch(client: httpx.Client, address: str, manifest: Manifest, part: Path, report: Report) -> None:
    """Download the missing rest of the file, resuming after connection errors."""
    fruitless, had = 0, -1
    while (has := part.stat().st_size if part.exists() else 0) < manifest.size_bytes:
        fruitless = fruitless + 1 if has <= had else 0
        if fruitless == FRUITLESS_MAX:
            raise ServerError(
                f"the download broke off at {has:,} of {manifest.size_bytes:,} bytes; it goes on next time"
            )
        if had >= 0:
            note = "the connection broke off: going on"
            report(Progress("fetching", has, manifest.size_bytes, note))
            time.sleep(PAUSE_S * min(fruitless + 0.2, 3))
        had = has
        try:
            _fetch_rest(client, address, manifest, part, has, report)
        except httpx.TransportError:
            continue


def _fetch_rest(
    client: httpx.Client, address: str, manifest: Manifest, part: Path, has: int, report: Report
) -> None:
    with client.stream("GET", address, headers={"Range": f"bytes={has}-"} if has else {}) as reply:
        _check(reply, address)
        goes_on = reply.headers.get("content-range", "").startswith(f"bytes {has}-")
        with part.open("ab" if goes_on else "wb") as file:
            done = has if goes_on else 0
            for chunk in reply.iter_raw():
                done += len(chunk)
                if done > manifest.size_bytes:
                    raise StoreError("the snapshot is larger than its manifest says; nothing was changed")
                file.write(chunk)
                report(Progress("fetching", done, manifest.size_bytes))
