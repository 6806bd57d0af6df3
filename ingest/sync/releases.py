"""The releases of one repository: newest first, until a page brings nothing new.

The list takes no `since`, so the first page's etag tells whether anything is new; most runs end there.
All that was new is stored with the cursor in one unit of work:
    {"etag": of the first page, "asked": time, "open": whether the run that asked is still under way,
     "full": whether it asked for all}
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlmodel import Session

from app.errors import InputError
from app.knowledge.indexing.batches import Progress
from app.store.github.releases import save_releases, tags_of
from app.store.github.sync_state import find_cursor, save_cursor
from app.store.records import ReleaseRecord
from ingest.github.client import Page
from ingest.parse.records import release_record
from ingest.sync.run import SyncRun, now

STREAM = "releases"
ASKED_JUST_NOW = timedelta(minutes=10)
"""A run that goes on after a stop this short ago does not ask for the releases again."""


def pull_releases(run: SyncRun) -> None:
    """Fetch and store what is new among the releases; everything in a `--full` run.

    Raises:
        GitHubError: GitHub refused or could not be reached; nothing of this call is stored.
    """
    with run.store.reading() as session:
        position = find_cursor(session, run.repo_id, STREAM)
        known = tags_of(session, run.repo_id)
    records: list[ReleaseRecord] = []
    if not _was_asked_just_now(position, full=run.full):
        records, etag = _fetch(run, known, None if run.full else position.get("etag"))
        asked = {"etag": etag, "asked": now().isoformat(), "open": True, "full": run.full}
        with run.store.unit_of_work() as session:
            save_releases(session, run.repo_id, records)
            save_cursor(session, run.repo_id, STREAM, asked)
    tags = {record.tag for record in records}
    run.result.releases = len(tags - known)
    run.report(Progress("releases", len(tags)))


def close_releases(session: Session, repo_id: int) -> None:
    """Note that the run which asked for the releases came to its end."""
    position = find_cursor(session, repo_id, STREAM)
    if position.get("open"):
        save_cursor(session, repo_id, STREAM, {**position, "open": False})


def _fetch(run: SyncRun, known: set[str], etag: str | None) -> tuple[list[ReleaseRecord], str | None]:
    """The releases up to a page without news, and the etag of the first page."""
    first = page = run.client.get_page(f"/repos/{run.repo}/releases", {"per_page": 100}, etag=etag)
    records = found = _records(run, page)
    while page.next_url and (run.full or {record.tag for record in found} - known):
        page = run.client.get_page(page.next_url)
        found = _records(run, page)
        records = records + found
    return records, first.etag


def _records(run: SyncRun, page: Page) -> list[ReleaseRecord]:
    records = []
    for row in page.items:
        try:
            records.append(release_record(row, run.repo))
        except InputError as fault:
            tag = row.get("tag_name") if isinstance(row, dict) else None
            run.result.skipped += (f"release {str(tag)[:40]}: {fault}",)
    return records


def _was_asked_just_now(position: dict[str, Any], *, full: bool) -> bool:
    if not position.get("open") or (full and not position.get("full")):
        return False
    return timedelta(0) <= now() - datetime.fromisoformat(position["asked"]) < ASKED_JUST_NOW
