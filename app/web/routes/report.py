"""The report on an issue as page, JSON and Markdown; `POST /report` fetches an issue that is not stored.

Fetches use the operator's GitHub rate limit, so they run one at a time and are limited per minute and hour.
"""

import threading
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Depends, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from app.config import Settings
from app.errors import (
    AddressError,
    GoneError,
    NotFoundError,
    PullRequestError,
    StoreError,
    TriageError,
)
from app.knowledge.issue.address import ADDRESS_CHARS, IssueAddress, parse_issue_address
from app.knowledge.issue.report import Report, make_report, report_markdown
from app.knowledge.issue.view import view_issue
from app.store.session import Store
from app.web.answers.context import RepoContext
from app.web.answers.negotiate import MARKDOWN_TYPE, ReplyDep, markdown_answer, wants
from app.web.answers.openapi import api_router, markdown_too, problems
from app.web.answers.parameters import Number, Repo, Version, issue_routes
from app.web.body import SmallForm
from app.web.deps import Services, ServicesDep
from app.web.middleware.origins import OWN_REFERRER, require_same_origin
from app.web.middleware.rate_limits import Rate, RateWindows
from app.web.views.render import api_address
from app.web.views.version_line import report_stations

RATES = (Rate(6, 60), Rate(60, 3600))

FetchIssue = Callable[[Settings, Store, str, int], bool]
"""Fetches and stores an issue; returns False if GitHub does not have it."""


class RateLimitError(TriageError):
    """Too many issues were requested in a short time."""

    status = 429


class Fetcher:
    """Fetches issues one at a time, within rate limits."""

    def __init__(self, fetch: Callable[[Store, str, int], bool], rates: Sequence[Rate] = RATES) -> None:
        self._fetch = fetch
        self._rates = rates
        self._windows = RateWindows()
        self._turn = threading.Lock()

    def fetch(self, store: Store, repo: str, number: int) -> bool:
        """Fetch one issue; False if GitHub does not have it.

        Raises:
            RateLimitError: another issue is being fetched, or a rate limit is reached.
            GitHubError: GitHub refused the request or is unreachable.
        """
        if not self._turn.acquire(blocking=False):
            raise RateLimitError("Another issue is being fetched just now. Try again in a few seconds.")
        try:
            for rate in self._rates:
                left, wait_s = self._windows.count(rate)
                if left < 0:
                    raise RateLimitError(
                        f"This server fetches at most {rate.amount} issues in {rate.span_s} seconds. Try "
                        f"again in {wait_s} seconds."
                    )
            return self._fetch(store, repo, number)
        finally:
            self._turn.release()


EDGES_LISTED = 60
"""Maximum number of relations on the page; Markdown and JSON have all."""
COPIED_CHARS = 20_000
"""Longest Markdown embedded for copying: a page is at most 100 KiB."""

router = api_router("issues")

Address = Annotated[str, Query(alias="url", max_length=4000)]


@router.get("/report", include_in_schema=False)
def report_page(
    reply: ReplyDep, services: ServicesDep, url: Address = "", vllm_version: Version = None
) -> Response:
    """The field for an issue's address, and below it the report if one was given; Markdown on request."""
    if not url.strip():
        return _page(services, url)
    try:
        asked = parse_issue_address(url, services.settings.repo)
    except AddressError as error:
        return _page(services, url, status=error.status, fault=error.message)
    try:
        report = make_report(
            services.store,
            asked.repo,
            asked.number,
            vllm_version=vllm_version,
            versions_of=services.default_repo,
        )
    except PullRequestError as error:
        return _page(services, url, status=error.status, fault=error.message)
    except NotFoundError:
        return _page(services, url, status=404, fault=f"#{asked.number} is not stored.", wanted=asked)
    if wants(reply.accept, MARKDOWN_TYPE):
        return markdown_answer(report_markdown(report), reply.max_chars)
    return _page(services, url, report=report)


async def fetcher(request: Request) -> Fetcher:
    found: Fetcher = request.app.state.fetcher
    return found


@router.post("/report", include_in_schema=False, dependencies=[Depends(require_same_origin)])
async def fetch_page(
    services: ServicesDep,
    form: SmallForm,
    fetcher: Annotated[Fetcher, Depends(fetcher)],
    url: Address = "",
) -> Response:
    """Fetch an issue of a configured repository from GitHub, then show its report."""
    url = form.get("url") or url
    asked = None
    try:
        asked = parse_issue_address(url, services.settings.repo)
        found = await services.write(fetcher.fetch, asked.repo, asked.number)
    except StoreError:
        raise  # not to be shown on a page
    except TriageError as error:
        return await run_in_threadpool(
            _page, services, url, status=error.status, fault=error.message, wanted=asked
        )
    return await run_in_threadpool(_after_fetch, services, url, asked, found)


def _after_fetch(services: Services, url: str, asked: IssueAddress, found: bool) -> Response:
    if not found and not _is_stored(services, asked):
        fault = f"GitHub has no #{asked.number} in {asked.repo}: deleted, transferred or never was."
        return _page(services, url, status=GoneError.status, fault=fault)
    return RedirectResponse(f"/report?{urlencode({'url': _short_name(services, asked)})}", status_code=303)


def _is_stored(services: Services, asked: IssueAddress) -> bool:
    try:
        view_issue(services.store, asked.repo, asked.number)
    except NotFoundError:
        return False
    return True


def _short_name(services: Services, asked: IssueAddress) -> str:
    is_default = asked.repo == services.default_repo
    return str(asked.number) if is_default else f"{asked.repo}#{asked.number}"


def _page(
    services: Services,
    url: str,
    *,
    status: int = 200,
    fault: str = "",
    report: Report | None = None,
    wanted: IssueAddress | None = None,
) -> HTMLResponse:
    """Render the page in any of its states; `wanted` is an issue offered for fetching."""
    repo = report.repo if report else services.default_repo
    markdown = report_markdown(report) if report else ""
    return RepoContext(services, repo).render(
        "report.html",
        status=status,
        headers=OWN_REFERRER | ({"Retry-After": "60"} if status == HTTPStatus.TOO_MANY_REQUESTS else {}),
        asked=url[:ADDRESS_CHARS],
        fault=fault,
        report=report,
        wanted=f"{wanted.repo}#{wanted.number}" if wanted else "",
        markdown=markdown if len(markdown) <= COPIED_CHARS else "",
        edges=report.graph.edges[:EDGES_LISTED] if report else (),
        stations=report_stations(report.regression, services.overview(repo).newest_release) if report else (),
        json_address=f"{api_address(report.repo, report.number, services.default_repo)}/report"
        if report
        else "",
        repos=services.settings.repo,
    )


@issue_routes(
    router,
    "/report",
    ids=("get_issue_report", "get_repo_issue_report"),
    summary="Get a report on an issue with all sources",
    response_model=Report,
    responses=problems(404) | markdown_too(),
)
def get_report(
    reply: ReplyDep, repo: Repo, number: Number, services: ServicesDep, vllm_version: Version = None
) -> Response:
    """Return a report on a stored issue; every part quotes its sources and links to them.

    Adds to `get_issue` the graph of linked issues and pull requests, a timeline, code examples, and a list of
    what is unknown. With `Accept: text/markdown` the report is Markdown.
    """
    report = make_report(
        services.store, repo, number, vllm_version=vllm_version, versions_of=services.default_repo
    )
    return reply(report, markdown=lambda: report_markdown(report))
