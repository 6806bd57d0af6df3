"""The routes of one issue: as JSON, as Markdown, and what belongs to it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from app.knowledge.answers import IssueAnswer
from app.web.answer_shapes import ISSUE, RELATED
from app.web.answering import MaxChars, answer, markdown_answer
from app.web.api import NamedRepo, Number, Version
from app.web.deps import Desk, DeskDep
from app.web.openapi import markdown_too, problems
from app.web.schemas import NUMBER_MAX, IssueDocument, RelatedList, issue_document

router = APIRouter()

Limit = Annotated[int, Query(ge=1, le=200, description="most items to return")]
With = Annotated[
    int | None, Query(alias="with", ge=1, le=NUMBER_MAX, description="only this one, linked or not")
]


@router.get(
    "/api/v1/issues/{number}",
    operation_id="get_issue",
    summary="One issue of the default repository: GitHub's facts and ours, with evidence",
    response_model=IssueDocument,
    responses=problems(404, 422, 503) | markdown_too(),
)
def get_issue(
    request: Request, number: Number, desk: DeskDep, vllm_version: Version = None, max_chars: MaxChars = None
) -> Response:
    """Tell what one issue reports.

    That is its error, versions, hardware, remedies with their outcome, cause, regression range and fix state;
    `evidence` quotes the words each value was read from. While `read` is false only GitHub's facts are known.
    With `vllm_version` the fix is seen from that version (`fix.for_you`). With `Accept: text/markdown`, or at
    `/issues/{number}.md`, the answer is Markdown.
    """
    issue = _view(desk, desk.settings.default_repo, number, vllm_version)
    return _answer(request, desk, issue, max_chars)


@router.get(
    "/api/v1/repos/{owner}/{name}/issues/{number}",
    operation_id="get_repo_issue",
    summary="One issue of any stored repository",
    response_model=IssueDocument,
    responses=problems(404, 422, 503) | markdown_too(),
)
def get_repo_issue(
    request: Request,
    repo: NamedRepo,
    number: Number,
    desk: DeskDep,
    vllm_version: Version = None,
    max_chars: MaxChars = None,
) -> Response:
    """Tell what one issue reports, as `get_issue` does, for a repository that is named."""
    issue = _view(desk, repo, number, vllm_version)
    return _answer(request, desk, issue, max_chars)


@router.get(
    "/api/v1/issues/{number}/related",
    operation_id="list_related_issues",
    summary="What belongs to an issue: what people said, then what is alike",
    response_model=RelatedList,
    responses=problems(404, 422, 503),
)
def get_related(
    request: Request,
    number: Number,
    desk: DeskDep,
    limit: Limit = 20,
    with_: With = None,
    max_chars: MaxChars = None,
) -> Response:
    """List duplicates, fixing and causing pull requests, mentions, and issues that are alike by their texts.

    `band` and `score` stand only where `kind` is `similar`: there a score is the calibrated chance that both
    are the same failure. `with` asks for one pair, whether it is linked or not.
    """
    return _related(request, desk, desk.settings.default_repo, number, limit, with_, max_chars)


@router.get(
    "/api/v1/repos/{owner}/{name}/issues/{number}/related",
    operation_id="list_repo_related_issues",
    summary="What belongs to an issue of any stored repository",
    response_model=RelatedList,
    responses=problems(404, 422, 503),
)
def get_repo_related(
    request: Request,
    repo: NamedRepo,
    number: Number,
    desk: DeskDep,
    limit: Limit = 20,
    with_: With = None,
    max_chars: MaxChars = None,
) -> Response:
    """List what belongs to an issue, as `list_related_issues` does, for a repository that is named."""
    return _related(request, desk, repo, number, limit, with_, max_chars)


@router.get("/issues/{number}.md", include_in_schema=False)
def issue_as_markdown(
    number: Number, desk: DeskDep, vllm_version: Version = None, max_chars: MaxChars = None
) -> Response:
    """The Markdown twin of an issue's page."""
    issue = _view(desk, desk.settings.default_repo, number, vllm_version)
    return markdown_answer(desk.knowledge.issue_markdown(issue), max_chars)


@router.get("/r/{owner}/{name}/issues/{number}.md", include_in_schema=False)
def repo_issue_as_markdown(
    repo: NamedRepo,
    number: Number,
    desk: DeskDep,
    vllm_version: Version = None,
    max_chars: MaxChars = None,
) -> Response:
    """The Markdown twin of an issue's page, for a repository that is named."""
    issue = _view(desk, repo, number, vllm_version)
    return markdown_answer(desk.knowledge.issue_markdown(issue), max_chars)


def _view(desk: Desk, repo: str, number: int, vllm_version: str | None) -> IssueAnswer:
    yours = (vllm_version or "").strip() or None
    return desk.knowledge.view_issue(
        desk.store, repo, number, vllm_version=yours, versions_of=desk.settings.default_repo
    )


def _answer(request: Request, desk: Desk, issue: IssueAnswer, max_chars: int | None) -> Response:
    return answer(
        request,
        issue_document(issue),
        ISSUE,
        max_chars,
        markdown=lambda: desk.knowledge.issue_markdown(issue),
    )


def _related(
    request: Request, desk: Desk, repo: str, number: int, limit: int, other: int | None, max_chars: int | None
) -> Response:
    if other is not None:
        items = desk.knowledge.likeness_of(desk.store, repo, number, other)
    else:
        items = desk.knowledge.related(desk.store, repo, number, limit=limit)
    return answer(request, RelatedList(items=items, total=len(items)), RELATED, max_chars)
