"""Without a token: newest first, as far as an hour's 60 requests reach, and on from there in the next hour.

First all bugs, newest first; then all other issues and pull requests; then the comments. What changed in a
list after its walk began is asked first, by update time, so that the walk need only be done once. These
walks have cursors of their own: the first run with a token still walks everything, oldest change first.

Cursor positions, by stream `newest.bugs`, `newest.issues`, `newest.comments`: those of
`ingest.sync.lists`, and
    "next": address of the next page, older than all before; "done": whether the list's end was reached
"""

from __future__ import annotations

from typing import Any

from app.errors import RefusedError
from app.store.github.sync_state import save_cursor
from ingest.derive import Progress
from ingest.github.client import Page
from ingest.github.walk import PAGE_ROWS, Stretch, format_time, keeps_its_place, updated_of
from ingest.sync.lists import COMMENTS, ISSUES, List, RowBudget, pull_list
from ingest.sync.run import Run, now

KEPT_REQUESTS = 5
"""Of an hour's budget: a report can still ask for its issue."""

BUGS = List("issues", "newest.bugs", "/issues", {"state": "all", "labels": "bug"})
ALL_ISSUES = List("issues", "newest.issues", ISSUES.path, ISSUES.params)
ALL_COMMENTS = List("comments", "newest.comments", COMMENTS.path, COMMENTS.params)


def is_whole(run: Run) -> bool:
    """Whether the copy was once walked to its end, so that only changes are wanting."""
    return all(run.cursor(source.stream).get("whole") for source in (ISSUES, COMMENTS))


def pull_newest(run: Run) -> None:
    """Fetch and store what changed in the lists that were begun, then more of them.

    Raises:
        GitHubError: the hour's budget is spent, or GitHub refused or could not be reached; what came
            before is stored.
    """
    begun = [source for source in (BUGS, ALL_ISSUES, ALL_COMMENTS) if run.cursor(source.stream)]
    for source in begun:
        if source is not BUGS or ALL_ISSUES not in begun:  # all issues hold the bugs
            pull_list(run, source)
    for source in (BUGS, ALL_ISSUES, ALL_COMMENTS):
        if not run.cursor(source.stream).get("done"):
            _walk_down(run, source)


def _walk_down(run: Run, source: List) -> None:
    """Walk a list by its rows' creation, newest first, from where the last run left it."""
    position = run.cursor(source.stream)
    budget = RowBudget(run.limit)
    seen = 0
    while True:
        asked_at = now()
        page = _ask(run, source, position.get("next"))
        stretch = Stretch(page.items, None, asked_at, None, is_last=page.next_url is None)
        part = budget.part_of(stretch)
        position = _moved(position, page) if part is stretch else position
        with run.store.unit_of_work() as session:
            changed = run.save_rows(session, source.kind, part.rows, asked_at)
            if part is stretch:
                save_cursor(session, run.repo_id, source.stream, position)
        run.stored[source.kind] += changed
        seen += len(part.rows)
        run.report(Progress(source.kind, seen))
        if stretch.is_last:
            return
        if part is not stretch or budget.is_spent:
            run.limited = True
            return


def _ask(run: Run, source: List, kept: Any) -> Page:
    """The page behind an address that was kept, or the newest one.

    How deep GitHub goes by page number is limited, the more so without a token: there the list ends.
    """
    if isinstance(kept, str) and run.client.can_follow(kept):
        try:
            return run.client.get_page(kept)
        except RefusedError as error:
            if error.answer != 422:
                raise
            if not keeps_its_place(kept):
                return Page((), None, None)
    params: dict[str, str | int] = {
        **source.params,
        "sort": "created",
        "direction": "desc",
        "per_page": PAGE_ROWS,
    }
    return run.client.get_page(f"/repos/{run.repo}{source.path}", params)


def _moved(position: dict[str, Any], page: Page) -> dict[str, Any]:
    """The position behind a page; the first one tells since when changes are to be asked."""
    moved = {name: value for name, value in position.items() if name != "next"}
    newest = max(filter(None, map(updated_of, page.items)), default=None)
    if "since" not in moved and newest is not None:
        moved["since"] = format_time(newest)
    if page.next_url is None:
        return moved | {"done": True}
    return moved | {"next": page.next_url}
