"""A `--full` crawl: everything is listed again, and what GitHub no longer has is marked.

Lists have no tombstones: GitHub is asked for each row that a finished crawl did not list. A crawl that is cut
off goes on at the next `--full`, and marks nothing before its end.
Cursor: full  {"begun": when the crawl's first list was asked for}; empty when none is under way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial

from app.errors import GitHubError
from app.knowledge.cluster.update import withdraw
from app.knowledge.indexing.batches import Progress
from app.store.github.presence import find_unseen, mark_gone, note_seen
from app.store.github.sync_state import find_cursor, save_cursor
from ingest.one_issue import ask_issue, mark_transferred
from ingest.sync.lists import forget_crawl
from ingest.sync.run import SyncRun, now

STREAM = "full"
TOO_OLD = timedelta(days=1)
"""A crawl that was cut off longer ago begins anew: too much has changed unseen in its first part."""


def begin_crawl(run: SyncRun) -> datetime:
    """When the crawl began that this run goes on with, or begins."""
    with run.store.reading() as session:
        begun = find_cursor(session, run.repo_id, STREAM).get("begun")
    moment = datetime.fromisoformat(begun) if isinstance(begun, str) else None
    if moment is not None and timedelta(0) <= now() - moment < TOO_OLD:
        return moment
    moment = now()
    with run.store.unit_of_work() as session:
        forget_crawl(session, run)
        save_cursor(session, run.repo_id, STREAM, {"begun": moment.isoformat()})
    return moment


def end_crawl(run: SyncRun, begun: datetime) -> None:
    """Ask GitHub for each row that the crawl did not list; label what is gone, store again what is not.

    To be called when both lists were walked to their ends.

    Raises:
        GitHubError: GitHub refused or could not be reached; what was asked before is labelled.
    """
    with run.store.reading() as session:
        numbers = find_unseen(session, "issue", run.repo_id, begun)
    _each(run, "missing issues", numbers, _check_issue)
    with run.store.reading() as session:
        keys = find_unseen(session, "comment", run.repo_id, begun)
    _each(run, "missing comments", keys, _check_comment)
    with run.store.unit_of_work() as session:
        save_cursor(session, run.repo_id, STREAM, {})
        forget_crawl(session, run)


def _each(run: SyncRun, stage: str, keys: Sequence[int], check: Callable[[SyncRun, int], None]) -> None:
    for done, key in enumerate(keys, 1):
        check(run, key)
        run.report(Progress(stage, done, len(keys)))


def _check_issue(run: SyncRun, number: int) -> None:
    asked_at = now()
    found = ask_issue(run.client, run.repo, number)
    if found.row is not None:
        note = partial(note_seen, kind="issue", repo_id=run.repo_id, keys=[number], seen_at=asked_at)
        run.store_rows("issues", (found.row,), asked_at, note)
        return
    with run.store.unit_of_work() as session:
        if found.moved_to is not None:
            run.result.gone += mark_transferred(session, run.repo_id, number, found.moved_to)
        else:
            run.result.gone += withdraw(session, run.repo_id, number, "deleted")


def _check_comment(run: SyncRun, key: int) -> None:
    asked_at = now()
    row = run.client.get_object(f"/repos/{run.repo}/issues/comments/{key}")
    if row is None:
        with run.store.unit_of_work() as session:
            run.result.gone += mark_gone(session, "comment", run.repo_id, key)
        return
    if row.get("id") != key:
        raise GitHubError(f"GitHub answered another comment for {key}")
    note = partial(note_seen, kind="comment", repo_id=run.repo_id, keys=[key], seen_at=asked_at)
    run.store_rows("comments", (row,), asked_at, note)
