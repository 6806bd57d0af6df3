"""The JSON routes: a log in, a diagnosis out; a number in, an issue out."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse, Response
from pydantic import ValidationError

from app.knowledge.answers import Diagnosis
from app.web.body import JSON_TYPE, RawBody, parse_body, read_json_or_text
from app.web.deps import Desk, DeskDep
from app.web.kept import KeptDiagnosis, keep_answer
from app.web.openapi import diagnose_body, problems
from app.web.schemas import (
    NUMBER_MAX,
    DiagnoseOptions,
    DiagnoseRequest,
    IssueDocument,
    RelatedList,
    issue_document,
)

MARKDOWN_TYPE = "text/markdown"

router = APIRouter(prefix="/api/v1")

Number = Annotated[int, Path(ge=1, le=NUMBER_MAX)]
RepoPart = Annotated[str, Path(pattern=r"^[A-Za-z0-9._-]+$", max_length=100)]
Version = Annotated[str | None, Query(max_length=100, description="see the fix from this vLLM version")]


@router.post(
    "/diagnose",
    operation_id="diagnose",
    summary="What a crash log is known as, and what helps",
    response_model=KeptDiagnosis | Diagnosis,
    responses=problems(400, 413, 415, 422, 503)
    | {200: {"content": {MARKDOWN_TYPE: {"schema": {"type": "string"}}}}},
    openapi_extra=diagnose_body(),
)
def post_diagnose(
    request: Request,
    body: Annotated[RawBody, Depends(read_json_or_text)],
    query: Annotated[DiagnoseOptions, Query(description="with a text/plain body")],
    desk: DeskDep,
) -> Response:
    """Diagnose a log. With `Accept: text/markdown` the answer is Markdown."""
    fields = parse_body(body)
    if body.media_type == JSON_TYPE:
        asked = validate_request(fields, strict=True)
    else:
        asked = DiagnoseRequest(log=fields["log"], **query.model_dump())
    diagnosis = ask(asked, desk)
    links = keep_answer(desk, asked, diagnosis) if asked.keep else None
    if wants_markdown(request.headers.get("accept", "")):
        text = desk.knowledge.markdown(diagnosis)
        if links:
            until = f"{links.expires_at:%Y-%m-%d}"
            text += f"\nKept until {until}: {links.url}. To delete it: {links.delete_url}\n"
        return PlainTextResponse(text, media_type=MARKDOWN_TYPE, headers={"Vary": "Accept"})
    told = KeptDiagnosis(**dict(diagnosis), kept=links) if links else diagnosis
    # As it is: the answer is of its shape already, and checking it anew costs a third of the request.
    return Response(told.model_dump_json(), media_type=JSON_TYPE)


@router.get(
    "/issues/{number}",
    operation_id="get_issue",
    summary="One issue of the default repository: GitHub's facts and ours, with evidence",
    responses=problems(404, 422, 503),
)
def get_issue(
    number: Number,
    desk: DeskDep,
    vllm_version: Version = None,
) -> IssueDocument:
    """One issue of the default repository."""
    return _document(desk, desk.settings.default_repo, number, vllm_version)


@router.get(
    "/repos/{owner}/{name}/issues/{number}",
    operation_id="get_repo_issue",
    summary="One issue of any stored repository",
    responses=problems(404, 422, 503),
)
def get_repo_issue(
    owner: RepoPart,
    name: RepoPart,
    number: Number,
    desk: DeskDep,
    vllm_version: Version = None,
) -> IssueDocument:
    """One issue of any stored repository."""
    return _document(desk, f"{owner}/{name}", number, vllm_version)


@router.get(
    "/issues/{number}/related",
    operation_id="list_related_issues",
    summary="What belongs to an issue: what people said, then what is alike",
    responses=problems(404, 422, 503),
)
def get_related(
    number: Number,
    desk: DeskDep,
    limit: Annotated[int, Query(ge=1, le=200, description="most items to return")] = 20,
    with_: Annotated[
        int | None, Query(alias="with", ge=1, le=NUMBER_MAX, description="only this one, linked or not")
    ] = None,
) -> RelatedList:
    """Relations of an issue of the default repository."""
    repo = desk.settings.default_repo
    if with_ is not None:
        items = desk.knowledge.likeness_of(desk.store, repo, number, with_)
    else:
        items = desk.knowledge.related(desk.store, repo, number, limit=limit)
    return RelatedList(items=items, total=len(items))


def _document(desk: Desk, repo: str, number: int, vllm_version: str | None) -> IssueDocument:
    answer = desk.knowledge.view_issue(desk.store, repo, number, vllm_version=vllm_version or None)
    return issue_document(answer)


def validate_request(fields: dict[str, Any], *, strict: bool) -> DiagnoseRequest:
    """The request in a body's fields; `strict` where they come with JSON's own types.

    Raises:
        RequestValidationError: a field is missing, of another type or out of range.
    """
    try:
        return DiagnoseRequest.model_validate(fields, strict=strict)
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_input=False, include_url=False)) from None


def ask(asked: DiagnoseRequest, desk: Desk) -> Diagnosis:
    """Put a request to the room behind the desk."""
    return desk.knowledge.diagnose(
        desk.store,
        asked.log,
        repos=desk.settings.repo,
        vllm_version=asked.vllm_version,
        gpu=asked.gpu,
        model=asked.model,
        limit=asked.limit,
        exclude=frozenset(asked.exclude),
    )


def wants_markdown(accept: str) -> bool:
    """Whether an Accept header names text/markdown, and not application/json above it."""
    weights: dict[str, float] = {}
    for item in accept.lower().split(",")[:20]:
        name, *parameters = (part.strip() for part in item.split(";"))
        weight = next((part[2:] for part in parameters if part.startswith("q=")), "1")
        try:
            weights[name] = float(weight)
        except ValueError:
            weights[name] = 0.0
    markdown = weights.get(MARKDOWN_TYPE, 0.0)
    return markdown > 0 and markdown >= weights.get(JSON_TYPE, 0.0)
