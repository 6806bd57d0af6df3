"""One sync of one repository: releases, issues and pull requests, comments; facts; releases of fixes.

Facts are derived when all pages are safe, or before a long wait: each issue once, not once for every page
that touches it. With a token the lists are walked by update time (`ingest.sync.lists`), and for `--full` what
is gone is looked for (`ingest.sync.full_crawl`); without one, newest first (`ingest.sync.newest_first`),
until the copy is whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.errors import GitHubError
from app.knowledge.indexing.derive import derive_issues
from app.store.github.issues import add_repository
from app.store.github.sync_state import begin_run, end_run
from app.store.session import Store
from ingest.derive import Derive, Progress, Report, quiet
from ingest.github.client import GitHubClient
from ingest.github.rate_limits import Wait
from ingest.sync.fix_containment import ask_containment
from ingest.sync.full_crawl import begin_crawl, end_crawl
from ingest.sync.lists import COMMENTS, ISSUES, pull_list
from ingest.sync.newest_first import KEPT_REQUESTS, is_whole, pull_newest
from ingest.sync.releases import close_releases, pull_releases
from ingest.sync.run import Run

DERIVE_BEFORE_WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class SyncResult:
    """How a run ended.

    Attributes:
        complete: all that was asked for is stored; an exit code of 0.
        issues, comments, releases: rows that were new or changed.
        read, faults: issues whose facts were derived, and those among them where a rule threw.
        requests, not_modified, remaining: what it cost, and what is left of the hour's budget if known.
        skipped: rows that could not be used, each with its place and fault.
        limited: stopped because `limit` rows were reached.
        error: why it stopped early; everything before it is stored.
        gone: issues and comments that a full run found deleted or transferred.
    """

    repo: str
    complete: bool
    issues: int
    comments: int
    releases: int
    read: int
    faults: int
    requests: int
    not_modified: int
    remaining: int | None
    skipped: tuple[str, ...] = ()
    limited: bool = False
    error: GitHubError | None = None
    gone: int = 0


def sync(
    store: Store,
    client: GitHubClient,
    repo: str,
    *,
    full: bool = False,
    limit: int | None = None,
    report: Report = quiet,
    derive: Derive = derive_issues,
) -> SyncResult:
    """Bring the copy of one repository up to date.

    `full` walks everything again, in place of what changed since the last run, and labels what GitHub no
    longer has; `limit` stops each list after so many rows; `report` is told after each page and batch;
    `derive` reads the issues.

    Returns:
        The result, also when GitHub failed on the way: then `error` says so.

    Raises:
        StoreError: the database refused.
    """
    with store.unit_of_work() as session:
        repo_id = add_repository(session, repo)
        run_id = begin_run(session, repo_id)
    run = Run(store, client, repo, repo_id, run_id, full, limit, report, derive)
    before, client.on_wait = client.on_wait, lambda wait: _before_wait(run, wait, before)
    kept, client.kept = client.kept, KEPT_REQUESTS
    try:
        _pull_all(run)
        run.derive_facts()
        if run.error is None and not run.limited:
            ask_containment(run)
        run.ended = True
    finally:
        client.on_wait, client.kept = before, kept
        result = _result(run)
        _note_end(run, result)
    return result


def _pull_all(run: Run) -> None:
    try:
        pulled = pull_releases(run.store, run.client, run.repo, run.repo_id, full=run.full)
        run.stored["releases"] = pulled.new
        run.skipped.extend(pulled.skipped)
        run.report(Progress("releases", pulled.listed))
        if run.client.has_token or is_whole(run):
            _pull_lists(run)
        else:
            pull_newest(run)
    except GitHubError as fault:
        run.error = fault


def _pull_lists(run: Run) -> None:
    begun = begin_crawl(run) if run.full else None
    pull_list(run, ISSUES)
    pull_list(run, COMMENTS)
    if begun is not None and not run.limited:
        end_crawl(run, begun)


def _result(run: Run) -> SyncResult:
    return SyncResult(
        repo=run.repo,
        complete=run.ended and run.error is None and not run.skipped,
        **run.stored,
        read=run.derived.read,
        faults=run.derived.faults,
        requests=run.figures["requests"],
        not_modified=run.figures["not_modified"],
        remaining=run.client.remaining,
        skipped=tuple(run.skipped),
        limited=run.limited,
        error=run.error,
        gone=run.gone,
    )


def _before_wait(run: Run, wait: Wait, told: Callable[[Wait], None] | None) -> None:
    if told:
        told(wait)
    note = f"GitHub's {wait.kind} rate limit: going on at {wait.until:%H:%M:%S} UTC"
    run.report(Progress("waiting", round(wait.seconds), note=note))
    if wait.seconds >= DERIVE_BEFORE_WAIT_S:
        run.derive_facts()


def _note_end(run: Run, result: SyncResult) -> None:
    stored = sum(run.stored.values())
    outcome = "complete" if result.complete and not run.limited else "partial" if stored else "failed"
    fault = str(result.error) if result.error else None if run.ended else "stopped"
    with run.store.unit_of_work() as session:
        end_run(
            session,
            run.run_id,
            outcome=outcome,
            **run.figures,
            fault=fault or next(iter(run.skipped), None),
        )
        if run.ended and result.error is None:
            close_releases(session, run.repo_id)
