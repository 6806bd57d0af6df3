"""Sync a repository: releases, issues and pull requests, comments; then facts, then releases of fixes.

Facts are derived once all pages are stored, or before a long wait. With a token the lists are walked by
update time; without one, newest first until the copy is complete (`ingest.sync.lists`).

A `--full` crawl lists everything again and marks what is gone from GitHub. As lists have no tombstones, each
stored row that a completed crawl did not list is requested by itself. An interrupted crawl is resumed by the
next `--full` and marks nothing before its end.
Cursor: full  {"begun": when the crawl's first list was requested}; empty if no crawl is in progress.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial

from app.errors import GitHubError
from app.knowledge.cluster.update import withdraw
from app.store.github.issues import add_repository
from app.store.github.presence import find_unseen, mark_gone, note_seen
from app.store.github.sync_state import begin_run, end_run, find_cursor, save_cursor
from app.store.records import Progress, Report, quiet
from app.store.session import Store
from ingest.github.client import GitHubClient
from ingest.github.rate_limits import Wait
from ingest.one_issue import ask_issue, mark_transferred
from ingest.sync.lists import COMMENTS, ISSUES, KEPT_REQUESTS, forget_crawl, is_whole, pull_list, pull_newest
from ingest.sync.releases import ask_containment, close_releases, pull_releases
from ingest.sync.run import SyncResult, SyncRun, now

DERIVE_BEFORE_WAIT_S = 30.0


def sync(
    store: Store,
    client: GitHubClient,
    repo: str,
    *,
    full: bool = False,
    limit: int | None = None,
    report: Report = quiet,
) -> SyncResult:
    """Bring the stored copy of one repository up to date.

    `full` lists everything again, not only what changed since the last run, and marks what is gone from
    GitHub; `limit` is the maximum number of rows per list; `report` is called after each page and batch.

    Returns:
        The result; if GitHub failed, its `error` is set.
    """
    with store.unit_of_work() as session:
        repo_id = add_repository(session, repo)
        run_id = begin_run(session, repo_id)
    run = SyncRun(store, client, repo, repo_id, run_id, full, limit, report, SyncResult(repo))
    client.on_wait = lambda wait: _before_wait(run, wait)
    kept, client.limits.kept = client.limits.kept, KEPT_REQUESTS
    try:
        _pull_all(run)
        run.derive_facts()
        if run.result.error is None and not run.result.limited:
            ask_containment(run)
        run.result.ended = True
    finally:
        client.on_wait, client.limits.kept = None, kept
        _note_end(run)
    return run.result


def _pull_all(run: SyncRun) -> None:
    try:
        pull_releases(run)
        if not run.client.limits.has_token and not is_whole(run):
            pull_newest(run)
            return
        begun = begin_crawl(run) if run.full else None
        pull_list(run, ISSUES)
        pull_list(run, COMMENTS)
        if begun is not None and not run.result.limited:
            end_crawl(run, begun)
    except GitHubError as fault:
        run.result.error = fault


def _before_wait(run: SyncRun, wait: Wait) -> None:
    note = f"GitHub's {wait.kind} rate limit: going on at {wait.until:%H:%M:%S} UTC"
    run.report(Progress("waiting", round(wait.seconds), note=note))
    if wait.seconds >= DERIVE_BEFORE_WAIT_S:
        run.derive_facts()


def _note_end(run: SyncRun) -> None:
    result = run.result
    outcome = "partial" if result.stored else "failed"
    if result.complete and not result.limited:
        outcome = "complete"
    fault = str(result.error) if result.error else None if result.ended else "stopped"
    fault = fault or next(iter(result.skipped), None)
    with run.store.unit_of_work() as session:
        end_run(session, run.run_id, outcome=outcome, **run.figures, fault=fault)
        if result.ended and result.error is None:
            close_releases(session, run.repo_id)


STREAM = "full"
TOO_OLD = timedelta(days=1)
"""A crawl that began longer ago is restarted, as too much may have changed in its first part."""


def begin_crawl(run: SyncRun) -> datetime:
    """Resume the interrupted crawl or begin a new one; return when it began."""
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
    """Request each row that the crawl did not list; mark it if it is gone, or else store it.

    Call this when both lists were walked to their ends.

    Raises:
        GitHubError: GitHub refused or is unreachable; rows checked before that are marked.
    """
    with run.store.reading() as session:
        numbers = find_unseen(session, "issue", run.repo_id, begun)
    _each(run, "unlisted issues looked up", numbers, _check_issue)
    with run.store.reading() as session:
        keys = find_unseen(session, "comment", run.repo_id, begun)
    _each(run, "unlisted comments looked up", keys, _check_comment)
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
