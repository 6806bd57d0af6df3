"""A list by update time ascending, from where the last run left it to its end.

Each page is stored with the cursor that points behind it in one unit of work, so a run that is stopped,
killed or refused goes on where it was.

Cursor positions (`sync_cursor.position`), by stream:
    issues, comments            {"since": time, "whole": whether the list's end was ever reached,
                                 "etag": of the last empty answer, "etag_since": its question}
    issues.full, comments.full  {"since": time} in a `--full` crawl; {"ended": true} when its list is walked
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlmodel import Session

from app.store.github.sync_state import find_cursor, save_cursor
from ingest.derive import Progress
from ingest.github.walk import Stretch, Walk, format_time, row_id, updated_of
from ingest.sync.run import Run

OVERLAP = timedelta(seconds=60)
"""GitHub's lists can trail by seconds: a row may show up late below the newest time already seen."""


@dataclass(frozen=True, slots=True)
class List:
    """One list of a repository.

    Attributes:
        kind: what its rows are, "issues" or "comments".
        stream: of its cursor.
        path: below the repository's.
        params: what narrows it.
    """

    kind: str
    stream: str
    path: str
    params: dict[str, str]


ISSUES = List("issues", "issues", "/issues", {"state": "all"})
COMMENTS = List("comments", "comments", "/issues/comments", {})


def pull_list(run: Run, source: List) -> None:
    """Fetch and store what changed in a list since its cursor; in a `--full` crawl, everything.

    Raises:
        GitHubError: GitHub refused or could not be reached; the pages before it are stored.
    """
    position = run.cursor(source.stream)
    crawl = run.cursor(f"{source.stream}.full") if run.full else {}
    full = run.full and not crawl.get("ended")
    start = (crawl if full else position).get("since")
    known = datetime.fromisoformat(start) if start else None
    since = known - OVERLAP if known else None
    etag = position.get("etag") if since and position.get("etag_since") == format_time(since) else None
    budget = RowBudget(run.limit, known)
    asked, seen = since, 0
    path = f"/repos/{run.repo}{source.path}"
    for stretch in Walk(run.client, path, source.params, since, None if full else etag):
        part = budget.part_of(stretch)
        if not part.not_modified:
            _store(run, source, part, asked, full=full)
        seen += len(part.rows)
        asked = None
        run.report(Progress(source.kind, seen))
        if part is not stretch or (budget.is_spent and not stretch.is_last):
            run.limited = True
            return


@dataclass
class RowBudget:
    """A run's limit: counts rows that neither stood in the overlap nor came before in this run."""

    limit: int | None
    known: datetime | None = None
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
                return stretch.before(index)
            self.counted.add(key)
        return stretch


def _store(run: Run, source: List, stretch: Stretch, asked: datetime | None, *, full: bool) -> None:
    """Store a page's rows and move the cursor behind them, together.

    `asked` is the `since` of a walk's first page, None for those after it.
    """
    with run.store.unit_of_work() as session:
        changed = run.save_rows(session, source.kind, stretch.rows, stretch.asked_at)
        _move_cursor(session, run, source.stream, stretch, asked)
        if full:
            _move_crawl(session, run, source.stream, stretch)
    run.stored[source.kind] += changed


def _move_cursor(session: Session, run: Run, stream: str, stretch: Stretch, asked: datetime | None) -> None:
    position = find_cursor(session, run.repo_id, stream)
    reached = format_time(stretch.reached) if stretch.reached else None
    newest = max(filter(None, (position.get("since"), reached)), default=None)
    if newest is None:
        return
    moved = {name: value for name, value in position.items() if name not in {"etag", "etag_since"}}
    moved["since"] = newest
    if stretch.is_last:
        moved["whole"] = True
    question = format_time(datetime.fromisoformat(newest) - OVERLAP)
    if stretch.is_last and stretch.etag and asked and format_time(asked) == question:
        moved |= {"etag": stretch.etag, "etag_since": question}
    save_cursor(session, run.repo_id, stream, moved)


def _move_crawl(session: Session, run: Run, stream: str, stretch: Stretch) -> None:
    if stretch.is_last:
        save_cursor(session, run.repo_id, f"{stream}.full", {"ended": True})
    elif stretch.reached:
        save_cursor(session, run.repo_id, f"{stream}.full", {"since": format_time(stretch.reached)})
