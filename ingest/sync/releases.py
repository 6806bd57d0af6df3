"""The releases of one repository: newest first, until a page brings nothing new.

The list takes no `since`, so the first page's etag tells whether anything is new; most runs end there.
All that was new is stored with the cursor in one unit of work:
    {"etag": of the first page, "asked": time, "open": whether the run that asked is still under way,
     "full": whether it asked for all}
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlmodel import Session

from app.errors import InputError
from app.store.github.releases import save_releases, tags_of
from app.store.github.sync_state import find_cursor, save_cursor
from app.store.records import ReleaseRecord
from app.store.session import Store
from ingest.github.client import GitHubClient, Page
from ingest.parse.records import release_record

STREAM = "releases"
ASKED_JUST_NOW = timedelta(minutes=10)
"""A run that goes on after a stop this short ago does not ask for the releases again."""


@dataclass(frozen=True, slots=True)
class PulledReleases:
    """How many were listed, how many of them were new, and what could not be used."""

    listed: int = 0
    new: int = 0
    skipped: tuple[str, ...] = ()


def pull_releases(
    store: Store, client: GitHubClient, repo: str, repo_id: int, *, full: bool = False
) -> PulledReleases:
    """Fetch and store what is new among the releases; everything if `full`.

    Raises:
        GitHubError: GitHub refused or could not be reached; nothing of this call is stored.
    """
    with store.reading() as session:
        position = find_cursor(session, repo_id, STREAM)
        known = tags_of(session, repo_id)
    is_enough = position.get("full", False) or not full
    if is_enough and position.get("open") and _is_recent(position.get("asked")):
        return PulledReleases()
    page = client.get_page(
        f"/repos/{repo}/releases", {"per_page": 100}, etag=None if full else position.get("etag")
    )
    etag = page.etag
    records, skipped = _records(page, repo)
    news = {record.tag for record in records} - known
    while page.next_url and (news or full):
        page = client.get_page(page.next_url)
        more, faults = _records(page, repo)
        records, skipped = records + more, skipped + faults
        news = {record.tag for record in more} - known
    with store.unit_of_work() as session:
        save_releases(session, repo_id, records)
        asked = {"etag": etag, "asked": datetime.now(UTC).isoformat(), "open": True, "full": full}
        save_cursor(session, repo_id, STREAM, asked)
    tags = {record.tag for record in records}
    return PulledReleases(len(tags), len(tags - known), tuple(skipped))


def close_releases(session: Session, repo_id: int) -> None:
    """Note that the run which asked for the releases came to its end."""
    position = find_cursor(session, repo_id, STREAM)
    if position.get("open"):
        save_cursor(session, repo_id, STREAM, {**position, "open": False})


def _records(page: Page, repo: str) -> tuple[list[ReleaseRecord], list[str]]:
    records, skipped = [], []
    for row in page.items:
        try:
            records.append(release_record(row, repo))
        except InputError as fault:
            tag = row.get("tag_name") if isinstance(row, dict) else None
            skipped.append(f"release {str(tag)[:40]}: {fault}")
    return records, skipped


def _is_recent(asked: Any) -> bool:
    if not isinstance(asked, str):
        return False
    return timedelta(0) <= datetime.now(UTC) - datetime.fromisoformat(asked) < ASKED_JUST_NOW
