"""Deletion: expired kept logs, webhook deliveries and sync runs; on request any issue's texts or a kept log.

Rows carry their own expiry, so any number of processes can delete expired ones. An issue is deleted on
request together with everything derived from it.
"""

import re
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from app.errors import NotFoundError, StoreError
from app.knowledge.indexing.batches import derive_changed
from app.store.derived.readings import purge_orphans
from app.store.engine.connect import lock_writers
from app.store.engine.sqlite_file import sqlite_file
from app.store.github.issues import add_repository, find_repository, save_issues
from app.store.github.presence import all_kept_out, take_down
from app.store.github.sync_state import purge_deliveries, purge_runs
from app.store.people import delete_kept_log, purge_kept_logs
from app.store.records import IssueRecord
from app.store.schema import current_revision
from app.store.session import Store, open_store

EVERY_S = 3600.0
SURE_AFTER_S = 86_400.0

_LOG = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Number of deleted rows."""

    kept_logs: int
    deliveries: int
    sync_runs: int


def forget_old(store: Store, *, is_sure: bool = False) -> Forgotten:
    """Delete expired rows; kept logs that expired long ago only if the clock `is_sure`."""
    with store.unit_of_work(changes=None) as session:
        forgotten = Forgotten(
            kept_logs=purge_kept_logs(session, datetime.now(UTC), is_sure=is_sure),
            deliveries=purge_deliveries(session),
            sync_runs=purge_runs(session),
        )
    store.erase_deleted()
    return forgotten


def forget_regularly(store: Store, stop: threading.Event, every_s: float = EVERY_S) -> None:
    """Delete expired rows every `every_s` seconds until stopped; failures are logged.

    The clock counts as sure after a day: by then one that was wrong at start has been corrected.
    """
    began = time.monotonic()
    while not stop.wait(every_s):
        try:
            forgotten = forget_old(store, is_sure=time.monotonic() - began > SURE_AFTER_S)
        except StoreError as error:
            _LOG.warning("nothing_forgotten", reason=error.message)
        else:
            if forgotten != Forgotten(0, 0, 0):
                _LOG.info("forgotten", kept_logs=forgotten.kept_logs, sync_runs=forgotten.sync_runs)


_KEPT_LOG = re.compile(r"(?:https?://[^/]+)?/d/([0-9A-Za-z_-]{1,64})")


def forget_issue(store: Store, repo: str, number: int, *, keep_out: bool) -> None:
    """Delete an issue's texts, comments and everything derived from them: facts, quotes, terms, links.

    The number stays without a text, so that links to it remain valid.

    Args:
        keep_out: also prevent syncs, webhook deliveries and imports from restoring it.

    Raises:
        NotFoundError: the issue is not stored.
    """
    with store.unit_of_work() as session:
        repo_id = find_repository(session, repo)
        if not take_down(session, repo_id, number, keep_out=keep_out):
            raise NotFoundError(f"#{number} of {repo} is not stored: there is nothing to forget")
    derive_changed(store, repo, [number])
    _purge_derived(store)


def kept_out(database_url: str) -> list[tuple[str, int]]:
    """Return the issues that a database keeps out; none if the database does not exist yet."""
    file = sqlite_file(database_url)
    if file is not None and not file.exists():
        return []
    with closing(open_store(database_url)) as store:
        if current_revision(store) is None:
            return []
        with store.reading() as session:
            return all_kept_out(session)


def keep_out(store: Store, issues: Sequence[tuple[str, int]]) -> int:
    """Keep these issues out of this database too, stored or not; return how many were not kept out yet."""
    with store.unit_of_work() as session:
        lock_writers(session)
        new = sorted({*issues} - {*all_kept_out(session)})
        for repo, number in new:
            repo_id = add_repository(session, repo)
            if not take_down(session, repo_id, number, keep_out=True):
                url = f"https://github.com/{repo}/issues/{number}"
                save_issues(session, repo_id, [IssueRecord(number, "", "", "closed", url)])
                take_down(session, repo_id, number, keep_out=True)
    for repo in dict.fromkeys(repo for repo, _ in new):
        derive_changed(store, repo, [number for of, number in new if of == repo])
    if new:
        _purge_derived(store)
    return len(new)


def _purge_derived(store: Store) -> None:
    """Delete everything derived from deleted texts, and compact the database."""
    with store.unit_of_work() as session:
        lock_writers(session)
        purge_orphans(session)
    store.erase_deleted(compact=True)


def forget_kept_log(store: Store, address: str) -> bool:
    """Delete a kept log by the URL of its page; False if `address` is not such a URL.

    Raises:
        NotFoundError: there is no such log.
    """
    found = _KEPT_LOG.fullmatch(address.strip())
    if found is None:
        return False
    with store.unit_of_work(changes=None) as session:
        if not delete_kept_log(session, found[1], None):
            raise NotFoundError(f"no log is kept under /d/{found[1]}: it was deleted, or its time is over")
    store.erase_deleted()
    return True
