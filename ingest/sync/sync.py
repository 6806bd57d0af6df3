"""One sync of one repository: releases, issues and pull requests, comments; facts; releases of fixes.

Facts are derived once all pages are stored, or before a long wait. With a token the lists are walked by
update time; without one, newest first until the copy is whole (`ingest.sync.lists`).
"""

from __future__ import annotations

from collections.abc import Callable

from app.errors import GitHubError
from app.knowledge.indexing.batches import Progress, Report, quiet
from app.store.github.issues import add_repository
from app.store.github.sync_state import begin_run, end_run
from app.store.session import Store
from ingest.github.client import GitHubClient
from ingest.github.rate_limits import Wait
from ingest.sync.full_crawl import begin_crawl, end_crawl
from ingest.sync.lists import COMMENTS, ISSUES, KEPT_REQUESTS, is_whole, pull_list, pull_newest
from ingest.sync.releases import ask_containment, close_releases, pull_releases
from ingest.sync.run import SyncResult, SyncRun

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
    """Bring the copy of one repository up to date.

    `full` walks everything again, in place of what changed since the last run, and labels what GitHub no
    longer has; `limit` stops each list after so many rows; `report` is called after each page and batch.

    Returns:
        The result, also when GitHub failed on the way: then `error` says so.
    """
    with store.unit_of_work() as session:
        repo_id = add_repository(session, repo)
        run_id = begin_run(session, repo_id)
    run = SyncRun(store, client, repo, repo_id, run_id, full, limit, report, SyncResult(repo))
    before, client.on_wait = client.on_wait, lambda wait: _before_wait(run, wait, before)
    kept, client.limits.kept = client.limits.kept, KEPT_REQUESTS
    try:
        _pull_all(run)
        run.derive_facts()
        if run.result.error is None and not run.result.limited:
            ask_containment(run)
        run.result.ended = True
    finally:
        client.on_wait, client.limits.kept = before, kept
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


def _before_wait(run: SyncRun, wait: Wait, before: Callable[[Wait], None] | None) -> None:
    if before:
        before(wait)
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
