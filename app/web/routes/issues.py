"""Filtered lists of issues: the page with facets and the JSON route. The URL holds the page's whole state.

`/api/v1/changes` lists what changed since a cursor, for mirrors and bots.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, get_args
from urllib.parse import urlencode

from fastapi import Query
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import ConfigDict, Field

from app.errors import AddressError, InputError
from app.extract.facts import Frozen
from app.extract.versions import ordered
from app.knowledge.issue.address import IssueAddress, parse_issue_address
from app.knowledge.issue.browse import (
    EMPTY,
    FacetValue,
    IssuePage,
    IssueQuery,
    ListedIssue,
    Sort,
    browse,
    or_blank,
)
from app.knowledge.issue.facets import FacetName
from app.knowledge.labels import FACETS, FAILURES, FLAGS, SORTS, label
from app.knowledge.stack.shapes import Affects
from app.knowledge.stack.stack import MAX_CHARS, parse_stack, write_stack
from app.knowledge.stack.upgrade import Touches, affecting
from app.store.derived.readings import read_since
from app.store.github.issues import find_heads, find_repository
from app.web.answers.context import RepoContext
from app.web.answers.negotiate import ReplyDep
from app.web.answers.openapi import api_router
from app.web.answers.parameters import ChosenRepo, RepoName, known_repo, narrowed, read_cursor, write_cursor
from app.web.deps import ServicesDep
from app.web.views.render import page_address

router = api_router("issues")

PAGE_ISSUES = 30
_KIND = "issues"
_NOT_A_FILTER = {"limit", "cursor", "facets", "repo", "sort", "stack"}


class IssueFilters(IssueQuery):
    """The query parameters of an issue list; an empty value counts as absent."""

    model_config = ConfigDict(extra="ignore")

    repo: Annotated[RepoName, or_blank(RepoName)] = Field(
        None, description="owner/name; default: the default repository"
    )
    cursor: Annotated[str | None, Field(max_length=200), EMPTY] = Field(
        None, description="`next_cursor` of the previous page, unchanged"
    )

    stack: Annotated[str | None, Field(max_length=MAX_CHARS), EMPTY] = Field(
        None,
        description="what you run, such as 0.21.0~H100~Qwen/Qwen3-8B: `affects` then says what affects you",
    )
    affects: Annotated[Touches | None, or_blank(Touches)] = Field(
        None,
        description="with a `stack` that names a version: only what affects it, or what may (`unsure`): the "
        "version has the failure, and as far as the report says what it ran on it agrees",
    )

    def query(self) -> IssueQuery:
        return IssueQuery.based_on(self)

    def in_force(self) -> dict[str, str]:
        """Return the active filters as query parameters."""
        values = self.model_dump(mode="json", exclude=_NOT_A_FILTER, exclude_none=True)
        if not self.stack:
            values.pop("affects", None)
        return {name: _as_text(value) for name, value in values.items() if value != ""}

    def list_kind(self) -> str:
        """Return the identity of this list, which its cursors include."""
        return narrowed(_KIND, {**self.in_force(), "sort": self.sort or "", "repo": self.repo or ""})


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value).strip()


class IssueListOptions(IssueFilters):
    """The filters, and how much of the list."""

    limit: int = Field(30, ge=1, le=100)
    facets: bool = Field(False, description="also return the most frequent values of each filter")


class IssueList(Frozen):
    """One page of issues. `ignored_words` of `q` occur in no issue or are too short to search for."""

    items: tuple[ListedIssue, ...]
    next_cursor: str | None = None
    total: int
    ignored_words: tuple[str, ...] = ()
    affects: dict[int, Affects] | None = Field(
        None, description="whether each issue affects `stack`, by issue number; only with `stack`"
    )
    facets: dict[FacetName, tuple[FacetValue, ...]] | None = Field(
        None, description="most frequent values of each filter, counted with all other filters applied"
    )


@router.get(
    "/api/v1/issues",
    operation_id="list_issues",
    summary="List or search issues by text and facts",
    response_model=IssueList,
)
def list_issues(
    reply: ReplyDep, services: ServicesDep, asked: Annotated[IssueListOptions, Query()]
) -> Response:
    """List issues that match all filters.

    With `q`, issues with all its distinctive words, by relevance; without it, newest first. `facets=true`
    adds the most frequent values of each filter, counted with all other filters applied.
    """
    context = RepoContext(services, known_repo(services, asked.repo), parse_stack(asked.stack))
    if asked.affects and (context.stack is None or ordered(context.stack.vllm) is None):
        raise InputError("affects: needs a stack that names a release, such as stack=0.21.0~H100.")
    page = _browse(context, asked, limit=asked.limit, facets=asked.facets)
    found = IssueList(
        items=page.items,
        total=page.total,
        ignored_words=page.ignored_words,
        next_cursor=write_cursor(asked.list_kind(), page.next) if page.next is not None else None,
        affects=context.affects(item.number for item in page.items),
        facets={**page.facets, "kind": page.facets["failure_kind"]} if asked.facets else None,
    )
    return reply(
        found,
        cursor_at=lambda at: (
            write_cursor(asked.list_kind(), page.items[at - 1].number) if at else asked.cursor or ""
        ),
    )


@router.get("/issues", include_in_schema=False, response_class=HTMLResponse)
def issues_page(services: ServicesDep, asked: Annotated[IssueFilters, Query()]) -> Response:
    """The list with its filters and facets; where `q` names an issue and nothing else is asked, its page."""
    context = RepoContext(services, asked.repo or services.default_repo, parse_stack(asked.stack))
    if set(asked.in_force()) == {"q"} and (one := _named_issue(context, asked.q)):
        return RedirectResponse(page_address(one.repo, one.number, services.default_repo), 303)
    page = _browse(context, asked, limit=PAGE_ISSUES, facets=True)
    addresses = Addresses(asked)
    return context.render(
        "issues.html",
        path="/issues",
        query=addresses.carried(),
        affects=context.affects(item.number for item in page.items) or {},
        asked=asked,
        page=page,
        tokens=addresses.tokens(),
        facet_titles=FACETS,
        sorts=SORTS,
        addresses=addresses,
        json_address=f"/api/v1{addresses.without()}",
    )


def _named_issue(context: RepoContext, text: str) -> IssueAddress | None:
    """Return the issue that a search names by number or URL; None if the search has other words."""
    try:
        return parse_issue_address(text, (context.repo, *context.services.settings.repo))
    except AddressError:
        return None


def _browse(context: RepoContext, asked: IssueFilters, *, limit: int, facets: bool) -> IssuePage:
    stack = context.stack if asked.affects else None
    touched = context.cached(affecting, stack).numbers if stack else None
    return context.cached(
        browse,
        asked.query(),
        after=read_cursor(asked.list_kind(), asked.cursor),
        limit=limit,
        facets=facets,
        among=touched.get(asked.affects, ()) if touched is not None and asked.affects else None,
    )


@dataclass(frozen=True, slots=True)
class FilterLink:
    """An active filter or a facet's value; `address` removes or sets it."""

    word: str
    address: str
    count: int = 0
    is_on: bool = True


class Addresses:
    """Builds the URLs that a list links to."""

    def __init__(self, asked: IssueFilters) -> None:
        self._filters = asked.in_force()
        self._kind = asked.list_kind()
        others = (
            ("sort", asked.sort),
            ("repo", asked.repo),
            ("stack", write_stack(parse_stack(asked.stack))),
        )
        self._others: dict[str, str] = {name: value for name, value in others if value}

    def hidden(self) -> dict[str, str]:
        """Return the hidden fields of the search form: everything but `q`."""
        return {name: value for name, value in {**self._filters, **self._others}.items() if name != "q"}

    def carried(self) -> dict[str, str]:
        """Return the query of the same list for another repository."""
        carried = {**self._filters, **self._others}
        return {name: value for name, value in carried.items() if name not in {"repo", "stack"}}

    def without(self, *names: str) -> str:
        """Return the URL of the list's first page without these filters."""
        return self._address({name: value for name, value in self._filters.items() if name not in names})

    def cleared(self) -> str:
        return self._address({})

    def sorted_by(self, sort: Sort) -> str:
        """Return the URL of the same list in another order."""
        return self._address(self._filters, sort=sort)

    def part(self, after: int) -> str:
        """Return the URL of the page that begins after an issue; 0 is the first page."""
        return (
            self._address(self._filters, cursor=write_cursor(self._kind, after)) if after else self.without()
        )

    def tokens(self) -> list[FilterLink]:
        return [FilterLink(_label(name, value), self.without(name)) for name, value in self._filters.items()]

    def touching(self) -> list[FilterLink]:
        """Return links to issues that affect, or may affect, the user's stack; empty without a stack."""
        if "stack" not in self._others:
            return []
        return [self._link("affects", FacetValue(value=value, count=0)) for value in get_args(Touches)]

    def links(self, name: FacetName, values: Sequence[FacetValue]) -> list[FilterLink]:
        return [self._link(name, value) for value in values]

    def _link(self, name: str, value: FacetValue) -> FilterLink:
        is_on = value.value.casefold() == self._filters.get(name, "").casefold()
        address = self.without(name) if is_on else self._address({**self._filters, name: value.value})
        return FilterLink(_label(name, value.value), address, value.count, is_on)

    def _address(self, filters: Mapping[str, str], **more: str) -> str:
        query = urlencode({**filters, **self._others, **more})
        return f"/issues?{query}" if query else "/issues"


def _label(name: str, value: str) -> str:
    """Return a filter's value as shown on the page."""
    if name == "failure_kind":
        return label(value, FAILURES)
    formats = {
        "q": f"“{value}”",
        "since": f"since {value[:10]}",
        "updated_since": f"changed since {value[:10]}",
        "label": f"label {value}",
    }
    return formats.get(name) or FLAGS.get((name, value), value)


SETTLED_S = 30.0
"""Newer changes are held back: a running sync may still commit one with an earlier time."""
_BEGIN = datetime(2000, 1, 1, tzinfo=UTC)
_CURSOR = "^[0-9]{1,17}-[0-9]{1,10}$"
_MICROSECOND = timedelta(microseconds=1)


class ChangedIssue(Frozen):
    """An issue or pull request that was stored, changed, deleted or processed again."""

    number: int
    title: str
    state: str
    is_pull_request: bool
    is_gone: bool = Field(description="whether it no longer exists on GitHub")
    url: str
    changed_at: datetime = Field(description="time at which it was last processed by this server")


class ChangeList(Frozen):
    """Changes in order; each issue appears once, at its latest change."""

    items: tuple[ChangedIssue, ...]
    next_cursor: str = Field(description="`since` of the next request; set even if nothing is new")
    has_more: bool = Field(description="whether more changes can be fetched now")


@router.get(
    "/api/v1/changes",
    operation_id="list_changes",
    summary="List changes since a cursor, for mirrors and bots",
)
def list_changes(
    services: ServicesDep,
    repo: ChosenRepo,
    since: Annotated[
        str | None,
        Query(
            pattern=_CURSOR,
            description="`next_cursor` of the previous answer; omit it to list everything",
            examples=["848311200000000-39288"],
        ),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> ChangeList:
    """List issues and pull requests in the order in which they were last processed.

    An issue is processed again if its text, a comment, its existence on GitHub or our rules changed; fetch it
    from `/api/v1/issues/{number}`. The list has no end: keep the newest cursor and poll. Changes of the last
    30 seconds are held back until a later request.
    """
    after = _read_cursor(since)
    until = datetime.now(UTC) - timedelta(seconds=SETTLED_S)
    with services.store.reading() as session:
        repo_id = find_repository(session, repo)
        found = read_since(session, repo_id, after, until, limit + 1)
        part = dict(found[:limit])
        heads = find_heads(session, repo_id, list(part))
    items = tuple(
        ChangedIssue.based_on(head, is_gone=head.gone_at is not None, changed_at=part[head.number])
        for head in heads
    )
    last = found[:limit][-1] if part else (after[1], after[0])
    return ChangeList(items=items, next_cursor=_write_cursor(last[1], last[0]), has_more=len(found) > limit)


def _write_cursor(read_at: datetime, number: int) -> str:
    return f"{(read_at - _BEGIN) // _MICROSECOND}-{number}"


def _read_cursor(since: str | None) -> tuple[datetime, int]:
    if not since:
        return _BEGIN, 0
    microseconds, number = since.split("-")
    return _BEGIN + int(microseconds) * _MICROSECOND, int(number)
