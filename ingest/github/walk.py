"""One list of GitHub's, walked by update time ascending so that no row is lost while rows move.

A row that changes during the walk moves to the list's end, and all behind it move up by one: whoever then
asks for "page 7" misses a row. So a page number is trusted nowhere:

- a link that carries a cursor of GitHub's own (more than the page number) keeps its place: it is followed;
- otherwise the walk asks again with `since` = the last update time seen, inclusive: one row comes twice;
- where a whole page has one update time, `since` cannot move; the walk goes deeper by position, each time
  with a window that overlaps the last row seen. If that row is not in the window, rows have moved, and
  the walk begins again at that update time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from app.errors import GitHubError, InputError
from ingest.github.client import GitHubClient, Page
from ingest.parse.fields import time_of

PAGE_ROWS = 100
"""The most that GitHub gives in one page."""
NEW_STARTS = 20
"""How often a walk begins again at one update time before it gives up."""

_OWN_PARAMS = frozenset({"state", "labels", "sort", "direction", "per_page", "since", "page"})


@dataclass(frozen=True, slots=True)
class Stretch:
    """What one request brought.

    Attributes:
        rows: GitHub's rows; some may have come before.
        reached: update time of the last row: all rows before it are known. None if there is no row.
        asked_at: this machine's time just before it was asked.
        etag: of this answer.
        is_last: whether the list ends here.
        not_modified: the list is as it was when the etag was given.
    """

    rows: tuple[Any, ...]
    reached: datetime | None
    asked_at: datetime
    etag: str | None
    is_last: bool
    not_modified: bool = False

    def before(self, index: int) -> Stretch:
        """Its first rows only: what stands behind them is still to come."""
        rows = self.rows[:index]
        return Stretch(rows, reached_by(rows), self.asked_at, None, is_last=False)


@dataclass
class Walk:
    """Iterate to get stretches.

    Args:
        path: of a list that takes `since`, `sort`, `direction`, `per_page` and `page`.
        params: what else the list is asked, `state` and `labels` for issues.
        since: update time to begin at, inclusive; None is the beginning.
        etag: of an earlier first page for the same `since`.
    """

    client: GitHubClient
    path: str
    params: Mapping[str, str]
    since: datetime | None = None
    etag: str | None = None
    _position: int = field(default=0, init=False)
    _last_id: Any = field(default=None, init=False)
    _starts: int = field(default=0, init=False)
    _asked_at: datetime = field(init=False)

    def __iter__(self) -> Iterator[Stretch]:
        page = self._ask(etag=self.etag)
        while True:
            if page.items:
                self._last_id = row_id(page.items[-1])
            reached = reached_by(page.items)
            is_last = page.next_url is None
            yield Stretch(page.items, reached, self._asked_at, page.etag, is_last, page.not_modified)
            if page.next_url is None:
                return
            page = self._next(page.next_url, reached)

    def _next(self, next_url: str, reached: datetime | None) -> Page:
        if keeps_its_place(next_url):
            self._asked_at = datetime.now(UTC)
            return self.client.get_page(next_url)
        if reached is None:
            raise GitHubError(f"GitHub's list {self.path} has a page without update times")
        if self.since is None or reached > self.since:
            self.since, self._starts = reached, 0
            return self._ask()
        return self._deeper()

    def _ask(self, *, page: int = 1, rows: int = PAGE_ROWS, etag: str | None = None) -> Page:
        params: dict[str, str | int] = {
            **self.params,
            "sort": "updated",
            "direction": "asc",
            "per_page": rows,
        }
        if self.since is not None:
            params["since"] = format_time(self.since)
        if page > 1:
            params["page"] = page
        self._asked_at = datetime.now(UTC)
        answer = self.client.get_page(self.path, params, etag=etag)
        self._position = (page - 1) * rows + len(answer.items)
        return answer

    def _deeper(self) -> Page:
        number, rows = _window(self._position)
        page = self._ask(page=number, rows=rows)
        if any(row_id(row) == self._last_id for row in page.items):
            return page
        self._starts += 1
        if self._starts > NEW_STARTS:
            raise GitHubError(f"GitHub's list {self.path} moves faster than it can be read: try again later")
        return self._ask()


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
        return time_of(row, "updated_at") if isinstance(row, dict) else None
    except InputError:
        return None


def reached_by(rows: Sequence[Any]) -> datetime | None:
    """The update time of the last row that has one."""
    return next(filter(None, map(updated_of, reversed(rows))), None)


def format_time(moment: datetime) -> str:
    """A time as GitHub takes it in `since`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
