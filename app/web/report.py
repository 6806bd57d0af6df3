"""The report on one issue: as a page, as JSON and as Markdown."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.errors import (
    AddressError,
    GoneError,
    NotFoundError,
    PullRequestError,
    StoreError,
    TooLargeError,
    TriageError,
)
from app.knowledge.report_address import ADDRESS_CHARS, IssueAddress, parse_issue_address
from app.knowledge.report_shapes import Report
from app.web.answer_shapes import REPORT
from app.web.answering import MaxChars, answer, markdown_answer, wants_markdown
from app.web.api import NamedRepo, Number, Version
from app.web.deps import Desk, DeskDep
from app.web.fetching import Fetcher
from app.web.graph_picture import draw
from app.web.openapi import markdown_too, problems
from app.web.render import render_page
from app.web.version_line import report_stations

EDGES_SHOWN = 60
"""Most relations listed on the page; the Markdown and the JSON have all."""
COPIED_CHARS = 20_000
"""Longest Markdown that the page holds a second time to be copied: a page weighs 100 KiB at most."""

router = APIRouter()

_READ = ["GET", "HEAD"]
_FORM_BYTES = 4096

Address = Annotated[str, Query(alias="url", max_length=4000)]


@router.api_route("/report", methods=_READ, include_in_schema=False)
def report_page(
    request: Request,
    desk: DeskDep,
    url: Address = "",
    vllm_version: Version = None,
    max_chars: MaxChars = None,
) -> Response:
    """The field for an issue's address, and below it the report if one was given; Markdown on request."""
    if not url.strip():
        return _page(desk, url)
    try:
        asked = parse_issue_address(url, desk.settings.repo)
    except AddressError as error:
        return _page(desk, url, status=error.status, fault=error.message)
    try:
        report = desk.knowledge.report(
            desk.store, asked.repo, asked.number, vllm_version=(vllm_version or "").strip() or None,
            versions_of=desk.settings.default_repo,
        )  # fmt: skip
    except PullRequestError as error:
        return _page(desk, url, status=error.status, fault=error.message)
    except NotFoundError:
        return _page(desk, url, status=404, fault=f"#{asked.number} is not stored.", wanted=asked)
    if wants_markdown(request.headers.get("accept", "")):
        return markdown_answer(desk.knowledge.report_markdown(report), max_chars)
    return _page(desk, url, report=report)


async def read_address(request: Request, url: Address = "") -> str:
    """The issue that a form names, in its body or in the address it is sent to.

    Raises:
        TooLargeError: the form holds more than an address.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _FORM_BYTES:
            raise TooLargeError("This form holds more than an issue's address.")
    sent = dict(parse_qsl(body.decode("utf-8", "replace")))
    return sent.get("url") or url


async def fetcher(request: Request) -> Fetcher:
    """What fetches issues for this server."""
    found: Fetcher = request.app.state.fetcher
    return found


@router.post("/report", include_in_schema=False)
def fetch_page(
    desk: DeskDep,
    url: Annotated[str, Depends(read_address)],
    fetcher: Annotated[Fetcher, Depends(fetcher)],
) -> Response:
    """Fetch an issue of a configured repository from GitHub, then show its report."""
    try:
        asked = parse_issue_address(url, desk.settings.repo)
    except AddressError as error:
        return _page(desk, url, status=error.status, fault=error.message)
    try:
        found = fetcher.fetch(asked.repo, asked.number)
    except StoreError:
        raise  # its words are not for a page
    except TriageError as error:
        return _page(desk, url, status=error.status, fault=error.message, wanted=asked)
    if not found and not _is_stored(desk, asked):
        fault = f"GitHub has no #{asked.number} in {asked.repo}: deleted, transferred or never was."
        return _page(desk, url, status=GoneError.status, fault=fault)
    return RedirectResponse(f"/report?{urlencode({'url': _short(desk, asked)})}", status_code=303)


def _is_stored(desk: Desk, asked: IssueAddress) -> bool:
    try:
        desk.knowledge.view_issue(desk.store, asked.repo, asked.number)
    except NotFoundError:
        return False
    return True


def _short(desk: Desk, asked: IssueAddress) -> str:
    is_default = asked.repo == desk.settings.default_repo
    return str(asked.number) if is_default else f"{asked.repo}#{asked.number}"


def _page(
    desk: Desk, url: str, *, status: int = 200, fault: str = "", report: Report | None = None,
    wanted: IssueAddress | None = None,
) -> HTMLResponse:  # fmt: skip
    """The page in any of its states; `wanted` is an issue that a button may fetch."""
    repo = report.repo if report else desk.settings.default_repo
    overview = desk.knowledge.overview(desk.store, repo)
    markdown = desk.knowledge.report_markdown(report) if report else ""
    return render_page(
        "report.html",
        status=status,
        headers={"Retry-After": "60"} if status == HTTPStatus.TOO_MANY_REQUESTS else None,
        asked=url[:ADDRESS_CHARS],
        fault=fault,
        report=report,
        wanted=f"{wanted.repo}#{wanted.number}" if wanted else "",
        markdown=markdown if len(markdown) <= COPIED_CHARS else "",
        edges=report.graph.edges[:EDGES_SHOWN] if report else (),
        picture=draw(report.graph, desk.settings.repo) if report else None,
        stations=report_stations(report.regression, overview.newest_release) if report else (),
        json_address=f"{_json_address(desk, report)}/report" if report else "",
        overview=overview,
        repo=repo,
        repos=desk.settings.repo,
    )


def _json_address(desk: Desk, report: Report) -> str:
    short = report.repo == desk.settings.default_repo
    return f"/api/v1/{'' if short else f'repos/{report.repo}/'}issues/{report.number}"


_ANSWERS = problems(404, 422, 503) | markdown_too()


@router.get(
    "/api/v1/issues/{number}/report",
    operation_id="get_issue_report",
    summary="All that is known of an issue of the default repository, each sentence with its source",
    response_model=Report,
    responses=_ANSWERS,
)
def get_report(
    request: Request, number: Number, desk: DeskDep, vllm_version: Version = None, max_chars: MaxChars = None
) -> Response:
    """Report on a stored issue, every part with the words it rests on and their address.

    It tells what `get_issue` tells, and besides the graph of linked issues and pull requests, a timeline,
    code examples, and what is not known.
    With `Accept: text/markdown` the report is Markdown, fit to be posted.
    """
    return _answer(request, desk, desk.settings.default_repo, number, vllm_version, max_chars)


@router.get(
    "/api/v1/repos/{owner}/{name}/issues/{number}/report",
    operation_id="get_repo_issue_report",
    summary="The report on an issue of any stored repository",
    response_model=Report,
    responses=_ANSWERS,
)
def get_repo_report(
    request: Request,
    repo: NamedRepo,
    number: Number,
    desk: DeskDep,
    vllm_version: Version = None,
    max_chars: MaxChars = None,
) -> Response:
    """Report on a stored issue, as `get_issue_report` does, for a repository that is named."""
    return _answer(request, desk, repo, number, vllm_version, max_chars)


def _answer(
    request: Request, desk: Desk, repo: str, number: int, version: str | None, max_chars: int | None
) -> Response:
    yours = (version or "").strip() or None
    try:
        report = desk.knowledge.report(
            desk.store, repo, number, vllm_version=yours, versions_of=desk.settings.default_repo
        )
    except NotFoundError:
        raise NotFoundError(
            f"#{number} is not stored. `triage report` or the button on /report fetches an issue of a "
            "configured repository."
        ) from None
    return answer(request, report, REPORT, max_chars, markdown=lambda: desk.knowledge.report_markdown(report))
