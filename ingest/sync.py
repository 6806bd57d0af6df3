"""One sync of one repository: releases, issues and pull requests, comments; then facts.

Each page is stored with the cursor that points behind it in one unit of work, so a run that is stopped,
killed or refused goes on where it was. Facts are derived when all pages are safe, or before a long wait:
each issue once, not once for every page that touches it.

Cursor positions (`sync_cursor.position`), by stream:
    issues, comments            {"since": time, "etag": of the last empty answer, "etag_since": its question}
    issues.full, comments.full  {"since": time}: a `--full` walk under way; empty when it is done
    releases                    see `ingest.releases`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlmodel import Session

from app.errors import GitHubError, InputError
from app.knowledge.derive import derive_issues
from app.store.comments import save_comments
from app.store.issues import add_repository, save_issues
from app.store.records import CommentRecord, IssueRecord
from app.store.session import Store
from app.store.sync_state import begin_run, end_run, find_cursor, save_cursor
from ingest.client import GitHubClient
from ingest.limits import Wait
from ingest.pipeline import Derive, Derived, Progress, Report, derive_stale, quiet
from ingest.records import comment_record, issue_record
from ingest.releases import close_releases, pull_releases
from ingest.walk import Stretch, Walk, format_time, reached_by, row_id, updated_of

OVERLAP = timedelta(seconds=60)
"""GitHub's lists can trail by seconds: a row may show up late below the newest time already seen."""
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


@dataclass
class _Run:
    store: Store
    client: GitHubClient
    repo: str
    repo_id: int
    full: bool
    limit: int | None
    report: Report
    derive: Derive
    stored: dict[str, int] = field(default_factory=lambda: {"issues": 0, "comments": 0, "releases": 0})
    derived: Derived = field(default_factory=Derived)
    skipped: list[str] = field(default_factory=list)
    limited: bool = False
    error: GitHubError | None = None
    ended: bool = False
    requests: int = 0
    not_modified: int = 0


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

    `full` walks everything again, in place of what changed since the last run; `limit` stops each list
    after so many rows; `report` is told after each page and batch; `derive` reads the issues.

    Returns:
        The result, also when GitHub failed on the way: then `error` says so.

    Raises:
        StoreError: the database refused.
    """
    with store.unit_of_work() as session:
        repo_id = add_repository(session, repo)
        run_id = begin_run(session, repo_id)
    run = _Run(store, client, repo, repo_id, full, limit, report, derive)
    run.requests, run.not_modified = client.requests, client.not_modified
    before, client.on_wait = client.on_wait, lambda wait: _before_wait(run, wait, before)
    try:
        _pull_all(run)
        _derive(run)
        run.ended = True
    finally:
        client.on_wait = before
        result = _result(run)
        _note_end(run, run_id, result)
    return result


def _pull_all(run: _Run) -> None:
    try:
        pulled = pull_releases(run.store, run.client, run.repo, run.repo_id, full=run.full)
        run.stored["releases"] = pulled.new
        run.skipped.extend(pulled.skipped)
        run.report(Progress("releases", pulled.listed))
        _pull(run, "issues")
        _pull(run, "comments")
    except GitHubError as fault:
        run.error = fault


def _result(run: _Run) -> SyncResult:
    return SyncResult(
        repo=run.repo,
        complete=run.ended and run.error is None and not run.skipped,
        **run.stored,
        read=run.derived.read,
        faults=run.derived.faults,
        requests=run.client.requests - run.requests,
        not_modified=run.client.not_modified - run.not_modified,
        remaining=run.client.remaining,
        skipped=tuple(run.skipped),
        limited=run.limited,
        error=run.error,
    )


# ---- lists by update time


def _pull(run: _Run, stream: str) -> None:
    path = f"/repos/{run.repo}/issues" + ("/comments" if stream == "comments" else "")
    params = {"state": "all"} if stream == "issues" else {}
    with run.store.reading() as session:
        position = find_cursor(session, run.repo_id, stream)
        full_position = find_cursor(session, run.repo_id, f"{stream}.full")
    full = run.full and bool(position)
    start = (full_position if full else position).get("since")
    known = datetime.fromisoformat(start) if start else None
    since = known - OVERLAP if known else None
    etag = position.get("etag") if since and position.get("etag_since") == format_time(since) else None
    budget = _Budget(run.limit, known)
    asked, seen = since, 0
    for stretch in Walk(run.client, path, params, since, None if full else etag):
        part = budget.part_of(stretch)
        if not part.not_modified:
            _store_stretch(run, stream, part, asked, full=full)
        seen += len(part.rows)
        asked = None
        run.report(Progress(stream, seen))
        if part is not stretch or (budget.is_spent and not stretch.is_last):
            run.limited = True
            return
    if full:
        with run.store.unit_of_work() as session:
            save_cursor(session, run.repo_id, f"{stream}.full", {})


@dataclass
class _Budget:
    """A run's limit: counts rows that neither stood in the overlap nor came before in this run."""

    limit: int | None
    known: datetime | None
    counted: set[Any] = field(default_factory=set)

    @property
    def is_spent(self) -> bool:
        return self.limit is not None and len(self.counted) >= self.limit

    def part_of(self, stretch: Stretch) -> Stretch:
        """The stretch up to the row that spends the budget; the stretch itself if that is all of it."""
        if self.limit is None:
            return stretch
        for index, row in enumerate(stretch.rows):
            key, moment = row_id(row), updated_of(row)
            if key in self.counted or (self.known and moment and moment <= self.known):
                continue
            if self.is_spent:
                rows = stretch.rows[:index]
                return Stretch(rows, reached_by(rows), None, is_last=False)
            self.counted.add(key)
        return stretch


def _store_stretch(run: _Run, stream: str, stretch: Stretch, asked: datetime | None, *, full: bool) -> None:
    """Store a page's rows and move the cursor behind them, together.

    `asked` is the `since` of a walk's first page, None for those after it.
    """
    now = datetime.now(UTC)
    issues: list[IssueRecord] = []
    comments: list[CommentRecord] = []
    for row in stretch.rows:
        try:
            if stream == "issues":
                issues.append(issue_record(row, run.repo, now))
            else:
                comments.append(comment_record(row))
        except InputError as fault:
            run.skipped.append(f"{stream[:-1]} {_name_of(row)}: {fault}")
    with run.store.unit_of_work() as session:
        if stream == "issues":
            changed = len(save_issues(session, run.repo_id, issues))
        else:
            changed = len(save_comments(session, run.repo_id, comments))
        _move_cursor(session, run, stream, stretch, asked, full=full)
    run.stored[stream] += changed


def _move_cursor(
    session: Session, run: _Run, stream: str, stretch: Stretch, asked: datetime | None, *, full: bool
) -> None:
    position = find_cursor(session, run.repo_id, stream)
    reached = format_time(stretch.reached) if stretch.reached else None
    if full and reached:
        save_cursor(session, run.repo_id, f"{stream}.full", {"since": reached})
    newest = max(filter(None, (position.get("since"), reached)), default=None)
    if newest is None:
        return
    moved: dict[str, Any] = {"since": newest}
    question = format_time(datetime.fromisoformat(newest) - OVERLAP)
    if stretch.is_last and stretch.etag and asked and format_time(asked) == question:
        moved |= {"etag": stretch.etag, "etag_since": question}
    save_cursor(session, run.repo_id, stream, moved)


def _name_of(row: Any) -> str:
    known = row.get("number") or row.get("id") or row.get("tag_name") if isinstance(row, Mapping) else None
    return str(known)[:40] if known is not None else "without a key"


# ---- facts, waits, the end


def _derive(run: _Run) -> None:
    more = derive_stale(run.store, run.repo, run.report, derive=run.derive)
    run.derived = Derived(run.derived.read + more.read, run.derived.faults + more.faults)


def _before_wait(run: _Run, wait: Wait, told: Callable[[Wait], None] | None) -> None:
    if told:
        told(wait)
    note = f"GitHub's {wait.kind} rate limit: going on at {wait.until:%H:%M:%S} UTC"
    run.report(Progress("waiting", round(wait.seconds), note=note))
    if wait.seconds >= DERIVE_BEFORE_WAIT_S:
        _derive(run)


def _note_end(run: _Run, run_id: int, result: SyncResult) -> None:
    stored = sum(run.stored.values())
    outcome = "complete" if result.complete and not run.limited else "partial" if stored else "failed"
    fault = str(result.error) if result.error else None if run.ended else "stopped"
    with run.store.unit_of_work() as session:
        end_run(
            session, run_id, outcome=outcome, requests=result.requests, not_modified=result.not_modified,
            remaining=result.remaining, stored=stored, fault=fault or next(iter(run.skipped), None),
        )  # fmt: skip
        if run.ended and result.error is None:
            close_releases(session, run.repo_id)
