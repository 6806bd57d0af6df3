"""The comment on a new issue, for a workflow that installs nothing: GitHub's event in, Markdown out."""

from __future__ import annotations

from fastapi import Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from app.errors import InputError
from app.extract.facts import Frozen
from app.knowledge.diagnosis.diagnose import diagnose
from app.knowledge.diagnosis.markdown import comment_markdown, read_event
from app.web.answers.openapi import api_router, json_body, problems
from app.web.body import check_structure, read_limited
from app.web.deps import Services, ServicesDep

router = api_router("diagnosis")

EVENT_LIMIT_BYTES = 5 * 1024 * 1024
"""An issue's text has at most 64 KiB; the rest of an event is addresses."""


class IssueComment(Frozen):
    """A comment as GitHub's API takes it."""

    body: str | None = Field(description="Markdown; null where there is nothing to say")


@router.post(
    "/api/v1/comment",
    operation_id="write_comment",
    summary="One comment on an issue that was just opened, if it is a known failure",
    responses=problems(400, 413, 415),
    openapi_extra=json_body({"type": "object", "description": "GitHub's event `issues`, as it comes"}),
)
async def write_comment(request: Request, services: ServicesDep) -> IssueComment:
    """Name the known issue with its evidence, what helps, and what the report leaves open.

    `body` is null for *related* and *unknown*, for pull requests, for what reports no failure, and where the
    report names the known issue itself. Nothing is kept.
    """
    content = await read_limited(request, EVENT_LIMIT_BYTES, "The event is larger than 5 MiB.")
    return IssueComment(body=await run_in_threadpool(_comment, services, content))


def _comment(services: Services, content: bytes) -> str | None:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError("The event is no UTF-8 text.") from None
    check_structure(text)
    issue = read_event(text)
    if issue is None:
        return None
    answer = diagnose(
        services.store,
        issue.log,
        repos=services.settings.repo,
        vllm_version=issue.vllm_version,
        exclude=frozenset({issue.number}),
    )
    return comment_markdown(issue, answer) or None
