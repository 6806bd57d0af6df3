"""A `--full` crawl: everything is listed again, and what GitHub no longer has is told apart.

Lists have no tombstones. A row is a candidate only if a crawl that came to its end, begun after the row was
last seen, did not list it; then GitHub is asked for that one row. A crawl that is cut off goes on at the
next `--full`, and marks nothing before its end.

Cursor position: full  {"begun": when the crawl's first list was asked for}; empty when none is under way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from app.errors import GitHubError
from app.knowledge.cluster.update import withdraw
from app.store.github.presence import (
    mark_comment_gone,
    note_comments_seen,
    note_issues_seen,
    unseen_comments,
    unseen_issues,
)
from app.store.github.sync_state import save_cursor
from ingest.derive import Progress
from ingest.one_issue import ask_issue, mark_transferred
from ingest.sync.lists import COMMENTS, ISSUES
from ingest.sync.run import Run, now

STREAM = "full"
TOO_OLD = timedelta(days=1)
"""A crawl that was cut off longer ago begins anew: too much has changed unseen in its first part."""


def begin_crawl(run: Run) -> datetime:
    """When the crawl began that this run goes on with, or begins."""
    begun = run.cursor(STREAM).get("begun")
    moment = datetime.fromisoformat(begun) if isinstance(begun, str) else None
    if moment is not None and timedelta(0) <= now() - moment < TOO_OLD:
        return moment
    moment = now()
    with run.store.unit_of_work() as session:
        for stream in (ISSUES.stream, COMMENTS.stream):
            save_cursor(session, run.repo_id, f"{stream}.full", {})
        save_cursor(session, run.repo_id, STREAM, {"begun": moment.isoformat()})
    return moment


def end_crawl(run: Run, begun: datetime) -> None:
    """Ask GitHub for each row that the crawl did not list; label what is gone, store again what is not.

    To be called when both lists were walked to their ends.

    Raises:
        GitHubError: GitHub refused or could not be reached; what was asked before is labelled.
    """
    with run.store.reading() as session:
        numbers = unseen_issues(session, run.repo_id, begun)
    _each(run, "missing issues", numbers, _check_issue)
    with run.store.reading() as session:
        keys = unseen_comments(session, run.repo_id, begun)
    _each(run, "missing comments", keys, _check_comment)
    with run.store.unit_of_work() as session:
        for stream in (STREAM, f"{ISSUES.stream}.full", f"{COMMENTS.stream}.full"):
            save_cursor(session, run.repo_id, stream, {})


def _each(run: Run, stage: str, keys: Sequence[int], check: Callable[[Run, int], None]) -> None:
    for done, key in enumerate(keys, 1):
        check(run, key)
        run.report(Progress(stage, done, len(keys)))


def _check_issue(run: Run, number: int) -> None:
    asked_at = now()
    found = ask_issue(run.client, run.repo, number)
    with run.store.unit_of_work() as session:
        if found.moved_to is not None:
            run.gone += mark_transferred(session, run.repo_id, number, found.moved_to)
        elif found.row is None:
            run.gone += withdraw(session, run.repo_id, number, "deleted")
        else:
            run.stored["issues"] += run.save_rows(session, "issues", (found.row,), asked_at)
            note_issues_seen(session, run.repo_id, [number], asked_at)


def _check_comment(run: Run, key: int) -> None:
    asked_at = now()
    row = run.client.get_object(f"/repos/{run.repo}/issues/comments/{key}")
    if row is not None and row.get("id") != key:
        raise GitHubError(f"GitHub answered another comment for {key}")
    with run.store.unit_of_work() as session:
        if row is None:
            run.gone += mark_comment_gone(session, run.repo_id, key)
        else:
            run.stored["comments"] += run.save_rows(session, "comments", (row,), asked_at)
            note_comments_seen(session, run.repo_id, [key], asked_at)
