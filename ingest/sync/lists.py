"""The walks over GitHub's lists of issues and comments, and the cursors that say how far each came.

Three ways to walk a list. By update time from where the last run left it: the usual one. By update time from
the beginning: a `--full` crawl. By creation, newest first, as far as an hour's 60 requests reach without a
token. Each page is stored with the cursor that points behind it in one unit of work, so a run that is
stopped, killed or refused goes on where it was.

A row that changes during a walk by update time moves to the list's end, and all rows behind it move up by
one: whoever then asks for "page 7" misses a row. So page numbers are not trusted:

- a link that carries a cursor of GitHub's own (more than the page number) keeps its place: it is followed;
- otherwise the walk asks again with `since` = the last update time seen, inclusive: one row comes twice;
- where a whole page has one update time, `since` cannot move; the walk goes deeper by position, each time
  with a window that overlaps the last row seen. If that row is not in the window, rows have moved, and
  the walk begins again at that update time.

Without a token first all bugs are walked, newest first; then all other issues and pull requests; then the
comments. What changed in a list after its walk began is asked first, by update time, so that the walk need
only be done once. These walks have cursors of their own: the first run with a token still walks everything,
oldest change first.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from sqlalchemy.orm import Session

from app.errors import GitHubError, RefusedError
from app.knowledge.indexing.batches import Progress
from app.store.github.sync_state import find_cursor, save_cursor
from ingest.github.client import GitHubClient, Page
from ingest.parse import moment_of
from ingest.sync.run import SyncRun

PAGE_ROWS = 100
"""The most that GitHub gives in one page."""
NEW_STARTS = 20
"""How often a walk begins again at one update time before it gives up."""

_OWN_PARAMS = frozenset({"state", "labels", "sort", "direction", "per_page", "since", "page"})


def walk(
    client: GitHubClient,
    path: str,
    params: Mapping[str, str],
    since: datetime | None = None,
    etag: str | None = None,
) -> Iterator[Page]:
    """The pages of a list; rows may come twice.

    Args:
        path: of a list that takes `since`, `sort`, `direction`, `per_page` and `page`.
        params: what else the list is asked, `state` and `labels` for issues.
        since: update time to begin at, inclusive; None is the beginning.
        etag: of an earlier first page for the same `since`.

    Raises:
        GitHubError: GitHub refused or could not be reached, or the list moves too fast.
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
    """Page number and size of the page that holds row `position - 1` and the most rows after it."""
    sizes = range(PAGE_ROWS, PAGE_ROWS // 2, -1)
    rows = max(sizes, key=lambda size: ((position - 1) // size + 1) * size)
    return (position - 1) // rows + 1, rows


def keeps_its_place(url: str) -> bool:
    """Whether a link carries a cursor of GitHub's own, not a page number alone."""
    names = {name for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True)}
    return not names <= _OWN_PARAMS


def row_id(row: Any) -> Any:
    """GitHub's key of a row, or None."""
    return row.get("id") if isinstance(row, dict) else None


def updated_of(row: Any) -> datetime | None:
    """A row's update time; None where it is missing or odd."""
    try:
        return moment_of(row.get("updated_at")) if isinstance(row, dict) else None
    except ValueError:
        return None


def reached_by(rows: Sequence[Any]) -> datetime | None:
    """The update time of the last row that has one: all rows before it are known."""
    return next(filter(None, map(updated_of, reversed(rows))), None)


def format_time(moment: datetime) -> str:
    """A time as GitHub takes it in `since`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


OVERLAP = timedelta(seconds=60)
"""GitHub's lists can trail by seconds: a row may show up late below the newest time already seen."""
KEPT_REQUESTS = 5
"""Of an hour's budget without a token: a report can still ask for its issue."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where the walk of one list stands; stored as JSON without its empty fields.

    Attributes:
        since: update time up to which all rows are known.
        whole: whether the list's end was ever reached by update time.
        etag, etag_since: of the last empty answer, and the `since` that was asked.
        next: newest first: address of the next page, older than all before.
        done: newest first, or in a `--full` crawl: whether the list's end was reached.
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
NEWEST_BUGS = List("issues", "newest.bugs", "/issues", {"state": "all", "labels": "bug"})
NEWEST_ISSUES = replace(ISSUES, stream="newest.issues")
NEWEST_COMMENTS = replace(COMMENTS, stream="newest.comments")
Move = Callable[[Page, bool, Session], None]
"""Saves the cursor behind a page in the unit of work that stores it; true where the limit cut the page."""
_NEWEST = (NEWEST_BUGS, NEWEST_ISSUES, NEWEST_COMMENTS)


def pull_list(run: SyncRun, source: List) -> None:
    """Fetch and store what changed in a list since its cursor; in a `--full` crawl, everything.

    Raises:
        GitHubError: GitHub refused or could not be reached; the pages before it are stored.
    """
    cursor, crawl = _cursor(run, source.stream), _cursor(run, f"{source.stream}.full")
    full = run.full and not crawl.done
    start = crawl.since if full else cursor.since
    known = datetime.fromisoformat(start) if start else None
    since = known - OVERLAP if known else None
    etag = cursor.etag if not full and since and cursor.etag_since == format_time(since) else None
    asked = since  # the question of the first page; those after it are no answer to it

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
    """Fetch and store what changed in the lists that were begun, then more of them.

    Raises:
        GitHubError: the hour's budget is spent, or GitHub refused or could not be reached; what came
            before is stored.
    """
    begun = [source for source in _NEWEST if _cursor(run, source.stream) != Cursor()]
    for source in begun:
        if source is not NEWEST_BUGS or NEWEST_ISSUES not in begun:  # all issues hold the bugs
            pull_list(run, source)
    for source in _NEWEST:
        cursor = _cursor(run, source.stream)
        if not cursor.done:
            _walk_down(run, source, cursor)


def is_whole(run: SyncRun) -> bool:
    """Whether the copy was once walked to its end, so that only changes are wanting."""
    return all(_cursor(run, source.stream).whole for source in (ISSUES, COMMENTS))


def forget_crawl(session: Session, run: SyncRun) -> None:
    """Empty the cursors of the `--full` walks."""
    for source in (ISSUES, COMMENTS):
        save_cursor(session, run.repo_id, f"{source.stream}.full", {})


# ---- what all walks do


@dataclass
class RowBudget:
    """A run's limit: counts rows that neither stood in the overlap nor came before in this run."""

    limit: int | None
    known: datetime | None = None
    counted: set[Any] = field(default_factory=set)

    @property
    def is_spent(self) -> bool:
        return self.limit is not None and len(self.counted) >= self.limit

    def take(self, rows: tuple[Any, ...]) -> tuple[Any, ...]:
        """The rows up to the one that spends the budget."""
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
    """Store each page's rows and move the cursor behind them, together, until the run's limit is reached."""
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
    """The cursor behind a page; `asked` is the `since` of a walk's first page, None for those after it."""
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
    """Walk a list by its rows' creation, newest first, from where the last run left it."""

    def move(page: Page, is_cut: bool, session: Session) -> None:
        nonlocal cursor
        if is_cut:
            return
        # The first page says since when changes are to be asked.
        newest = max(filter(None, map(updated_of, page.items)), default=None)
        since = cursor.since or (format_time(newest) if newest else None)
        cursor = replace(cursor, since=since, next=page.next_url, done=page.next_url is None)
        _save(session, run, source.stream, cursor)

    _store_pages(run, source, _pages_down(run, source, cursor.next), None, move)


def _pages_down(run: SyncRun, source: List, kept: str | None) -> Iterator[Page]:
    """The pages from an address that was kept on, or from the newest on."""
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
    """The page at a link; None where GitHub no longer takes its cursor.

    How deep GitHub goes by page number is limited, the more so without a token: there the list ends.
    """
    try:
        return run.client.get_page(url)
    except RefusedError as error:
        if error.answer != 422:
            raise
    return None if keeps_its_place(url) else Page((), None, None)
