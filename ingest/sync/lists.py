"""Walk GitHub's lists of issues and comments, and store a cursor with the progress of each.

A list is walked in one of three ways: by update time from the last run's cursor (the usual one); by update
time from the beginning (a `--full` crawl); or by creation time, newest first, as far as the 60 requests an
hour without a token allow. Each page and the cursor after it are stored in one unit of work, so a run that is
stopped, killed or refused is resumed where it was.

A row updated during a walk by update time moves to the list's end, and all rows after it move up by one, so
that requesting "page 7" then misses a row. So page numbers are not trusted:

- a link with a cursor of GitHub (more than a page number) is stable and is followed;
- otherwise the next request has `since` = the last update time seen, inclusive: one row is repeated;
- if a whole page has the same update time, `since` cannot advance; the walk continues by position, each time
  with a window that overlaps the last row seen. If that row is not in the window, rows have moved, and
  the walk restarts at that update time.

Without a token all bugs are walked first, newest first; then all other issues and pull requests; then the
comments. Changes since a walk began are fetched first, by update time, so that the walk need be done only
once. These walks have their own cursors: the first run with a token still walks everything, oldest update
first.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from sqlalchemy.orm import Session

from app.errors import GitHubError, RefusedError
from app.store.github.sync_state import find_cursor, save_cursor
from app.store.records import Progress
from ingest.github.client import GitHubClient, Page
from ingest.parse import moment_of
from ingest.sync.run import SyncRun

PAGE_ROWS = 100
"""GitHub's maximum page size."""
NEW_STARTS = 20
"""How often a walk restarts at the same update time before it gives up."""

_OWN_PARAMS = frozenset({"state", "labels", "sort", "direction", "per_page", "since", "page"})


def walk(
    client: GitHubClient,
    path: str,
    params: Mapping[str, str],
    since: datetime | None = None,
    etag: str | None = None,
) -> Iterator[Page]:
    """Yield the pages of a list by update time; rows may be repeated.

    Args:
        path: of a list that supports `since`, `sort`, `direction`, `per_page` and `page`.
        params: further parameters, `state` and `labels` for issues.
        since: update time to start at, inclusive; None for the beginning.
        etag: of an earlier first page for the same `since`.

    Raises:
        GitHubError: GitHub refused or is unreachable, or the list changes too fast.
    """

    def ask(page: int = 1, rows: int = PAGE_ROWS, etag: str | None = None) -> Page:
        query: dict[str, str | int] = {**params, "sort": "updated", "direction": "asc", "per_page": rows}
        if since is not None:
            query["since"] = format_time(since)
        if page > 1:
            query["page"] = page
        return client.get_page(path, query, etag=etag)

    page = ask(etag=etag)
    position, starts = len(page.items), 0
    while True:
        yield page
        if page.next_url is None:
            return
        if keeps_its_place(page.next_url):
            page = client.get_page(page.next_url)
            continue
        reached = reached_by(page.items)
        if reached is None:
            raise GitHubError(f"GitHub's list {path} has a page without update times")
        if since is None or reached > since:
            since, starts = reached, 0
        else:
            last = row_id(page.items[-1])
            number, rows = _window(position)
            page = ask(number, rows)
            if any(row_id(row) == last for row in page.items):
                position = (number - 1) * rows + len(page.items)
                continue
            starts += 1
            if starts > NEW_STARTS:
                raise GitHubError(f"GitHub's list {path} moves faster than it can be read: try again later")
        page = ask()
        position = len(page.items)


def _window(position: int) -> tuple[int, int]:
    """Return number and size of the page that contains row `position - 1` and the most rows after it."""
    sizes = range(PAGE_ROWS, PAGE_ROWS // 2, -1)
    rows = max(sizes, key=lambda size: ((position - 1) // size + 1) * size)
    return (position - 1) // rows + 1, rows


def keeps_its_place(url: str) -> bool:
    """True if a link contains a cursor of GitHub, not only a page number."""
    names = {name for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True)}
    return not names <= _OWN_PARAMS


def row_id(row: Any) -> Any:
    return row.get("id") if isinstance(row, dict) else None


def updated_of(row: Any) -> datetime | None:
    """Return a row's update time, or None if it is missing or invalid."""
    try:
        return moment_of(row.get("updated_at")) if isinstance(row, dict) else None
    except ValueError:
        return None


def reached_by(rows: Sequence[Any]) -> datetime | None:
    """Return the last update time among the rows; all earlier rows are known by then."""
    return next(filter(None, map(updated_of, reversed(rows))), None)


def format_time(moment: datetime) -> str:
    """Format a time for GitHub's `since` parameter."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


OVERLAP = timedelta(seconds=60)
"""GitHub's lists may lag by seconds: a row may appear late, with an older time than the newest one seen."""
KEPT_REQUESTS = 5
"""Requests of an hour without a token that the sync leaves, so that reports can still fetch an issue."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Progress of a walk of one list; stored as JSON without its empty fields.

    Attributes:
        since: update time up to which all rows are known.
        whole: the list's end was reached by update time at least once.
        etag, etag_since: of the last page without news, and the `since` of its request.
        next: newest first: URL of the next page, with older rows.
        done: newest first, or in a `--full` crawl: the list's end was reached.
    """

    since: str | None = None
    whole: bool = False
    etag: str | None = None
    etag_since: str | None = None
    next: str | None = None
    done: bool = False


@dataclass(frozen=True, slots=True)
class List:
    """One list of a repository.

    Attributes:
        kind: kind of its rows, "issues" or "comments".
        stream: name of its cursor.
        path: relative to the repository's.
        params: its filters.
    """

    kind: str
    stream: str
    path: str
    params: dict[str, str]


ISSUES = List("issues", "issues", "/issues", {"state": "all"})
COMMENTS = List("comments", "comments", "/issues/comments", {})
NEWEST_BUGS = List("issues", "newest.bugs", "/issues", {"state": "all", "labels": "bug"})
NEWEST_ISSUES = replace(ISSUES, stream="newest.issues")
NEWEST_COMMENTS = replace(COMMENTS, stream="newest.comments")
Move = Callable[[Page, bool, Session], None]
"""Saves the cursor after a page in the session that stores it; the flag says if the limit cut the page."""
_NEWEST = (NEWEST_BUGS, NEWEST_ISSUES, NEWEST_COMMENTS)


def pull_list(run: SyncRun, source: List) -> None:
    """Fetch and store what changed in a list since its cursor; in a `--full` crawl, everything.

    Raises:
        GitHubError: GitHub refused or is unreachable; the pages before that are stored.
    """
    cursor, crawl = _cursor(run, source.stream), _cursor(run, f"{source.stream}.full")
    full = run.full and not crawl.done
    start = crawl.since if full else cursor.since
    known = datetime.fromisoformat(start) if start else None
    since = known - OVERLAP if known else None
    etag = cursor.etag if not full and since and cursor.etag_since == format_time(since) else None
    asked = since  # the `since` of the first page's request; None for later pages

    def move(page: Page, is_cut: bool, session: Session) -> None:
        nonlocal asked
        is_last = page.next_url is None and not is_cut
        stored = _load(session, run, source.stream)
        _save(session, run, source.stream, _behind(stored, page, asked, is_last=is_last))
        if full:
            reached = None if is_last else reached_by(page.items)
            behind = Cursor(since=format_time(reached) if reached else None, done=is_last)
            _save(session, run, f"{source.stream}.full", behind)
        asked = None

    path = f"/repos/{run.repo}{source.path}"
    _store_pages(run, source, walk(run.client, path, source.params, since, etag), known, move)


def pull_newest(run: SyncRun) -> None:
    """Fetch and store what changed in the lists already begun, then continue walking them, newest first.

    Raises:
        GitHubError: the hour's requests are used up, or GitHub refused or is unreachable; the pages
            before that are stored.
    """
    begun = [source for source in _NEWEST if _cursor(run, source.stream) != Cursor()]
    for source in begun:
        if source is not NEWEST_BUGS or NEWEST_ISSUES not in begun:  # all issues include the bugs
            pull_list(run, source)
    for source in _NEWEST:
        cursor = _cursor(run, source.stream)
        if not cursor.done:
            _walk_down(run, source, cursor)


def is_whole(run: SyncRun) -> bool:
    """True if both lists were once walked to their ends, so that only changes are missing."""
    return all(_cursor(run, source.stream).whole for source in (ISSUES, COMMENTS))


def forget_crawl(session: Session, run: SyncRun) -> None:
    """Reset the cursors of the `--full` walks."""
    for source in (ISSUES, COMMENTS):
        save_cursor(session, run.repo_id, f"{source.stream}.full", {})


# ---- common to all walks


@dataclass
class RowBudget:
    """A run's row limit; counts rows that are neither in the overlap nor repeated in this run."""

    limit: int | None
    known: datetime | None = None
    counted: set[Any] = field(default_factory=set)

    @property
    def is_spent(self) -> bool:
        return self.limit is not None and len(self.counted) >= self.limit

    def take(self, rows: tuple[Any, ...]) -> tuple[Any, ...]:
        for index, row in enumerate(rows if self.limit is not None else ()):
            key, moment = row_id(row), updated_of(row)
            if key in self.counted or (self.known and moment and moment <= self.known):
                continue
            if self.is_spent:
                return rows[:index]
            self.counted.add(key)
        return rows


def _store_pages(
    run: SyncRun, source: List, pages: Iterable[Page], known: datetime | None, move: Move
) -> None:
    """Store each page's rows together with the cursor after them, until the run's limit is reached."""
    budget = RowBudget(run.limit, known)
    seen = 0
    for page in pages:
        rows = budget.take(page.items)
        is_cut = len(rows) < len(page.items)
        if not page.not_modified:
            part = replace(page, items=rows)
            run.store_rows(source.kind, rows, page.asked_at, partial(move, part, is_cut))
        seen += len(rows)
        run.report(Progress(source.kind, seen))
        if is_cut or (budget.is_spent and page.next_url is not None):
            run.result.limited = True
            return


def _cursor(run: SyncRun, stream: str) -> Cursor:
    with run.store.reading() as session:
        return _load(session, run, stream)


def _load(session: Session, run: SyncRun, stream: str) -> Cursor:
    position = find_cursor(session, run.repo_id, stream)
    return Cursor(**{item.name: position[item.name] for item in fields(Cursor) if item.name in position})


def _save(session: Session, run: SyncRun, stream: str, cursor: Cursor) -> None:
    if cursor != Cursor():
        position = {name: value for name, value in asdict(cursor).items() if value}
        save_cursor(session, run.repo_id, stream, position)


# ---- by update time


def _behind(cursor: Cursor, page: Page, asked: datetime | None, *, is_last: bool) -> Cursor:
    """Return the cursor after a page; `asked` is the `since` of a walk's first page, None for later ones."""
    reached = reached_by(page.items)
    times = (cursor.since, format_time(reached) if reached else None)
    newest = max(filter(None, times), default=None)
    if newest is None:
        return cursor
    question = format_time(datetime.fromisoformat(newest) - OVERLAP)
    holds = bool(is_last and page.etag and asked and format_time(asked) == question)
    return replace(
        cursor,
        since=newest,
        whole=cursor.whole or is_last,
        etag=page.etag if holds else None,
        etag_since=question if holds else None,
    )


# ---- newest first


def _walk_down(run: SyncRun, source: List, cursor: Cursor) -> None:
    """Walk a list by creation time, newest first, from where the last run left it."""

    def move(page: Page, is_cut: bool, session: Session) -> None:
        nonlocal cursor
        if is_cut:
            return
        # Later changes are fetched from the newest update time on the first page on.
        newest = max(filter(None, map(updated_of, page.items)), default=None)
        since = cursor.since or (format_time(newest) if newest else None)
        cursor = replace(cursor, since=since, next=page.next_url, done=page.next_url is None)
        _save(session, run, source.stream, cursor)

    _store_pages(run, source, _pages_down(run, source, cursor.next), None, move)


def _pages_down(run: SyncRun, source: List, kept: str | None) -> Iterator[Page]:
    """Yield the pages from a stored URL on, or else from the newest row on."""
    query: dict[str, str | int] = {**source.params, "sort": "created", "direction": "desc"}
    query["per_page"] = PAGE_ROWS
    while True:
        page = _page_behind(run, kept) if kept and run.client.origin.has(kept) else None
        page = page or run.client.get_page(f"/repos/{run.repo}{source.path}", query)
        yield page
        if page.next_url is None:
            return
        kept = page.next_url


def _page_behind(run: SyncRun, url: str) -> Page | None:
    """Return the page at a link, or None if GitHub no longer accepts its cursor.

    GitHub limits page numbers, the more so without a token; beyond the limit, return an empty last page.
    """
    try:
        return run.client.get_page(url)
    except RefusedError as error:
        if error.answer != 422:
            raise
    return None if keeps_its_place(url) else Page((), None, None)
