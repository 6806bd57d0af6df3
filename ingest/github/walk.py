"""One of GitHub's lists, walked by update time ascending so that no row is lost while rows move.

A row that changes during the walk moves to the list's end, and all rows behind it move up by one: whoever
then asks for "page 7" misses a row. So page numbers are not trusted:

- a link that carries a cursor of GitHub's own (more than the page number) keeps its place: it is followed;
- otherwise the walk asks again with `since` = the last update time seen, inclusive: one row comes twice;
- where a whole page has one update time, `since` cannot move; the walk goes deeper by position, each time
  with a window that overlaps the last row seen. If that row is not in the window, rows have moved, and
  the walk begins again at that update time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from app.errors import GitHubError
from ingest.github.client import GitHubClient, Page
from ingest.parse.fields import moment_of

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
        client: what asks.
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
