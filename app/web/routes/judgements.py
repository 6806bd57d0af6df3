"""The routes of people's judgement: two issues are the same failure, or are not. For the admin only."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Query, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from app.errors import NotFoundError
from app.extract.facts import Frozen
from app.knowledge.cluster.judgements import Judgement, judge, judgements, undo
from app.store.people.judgements import Verdict
from app.web.answers.openapi import api_router, json_body, problems
from app.web.answers.parameters import ChosenRepo, CursorText, RepoName, read_cursor, write_cursor
from app.web.answers.schemas import NUMBER_MAX, IssueNumber, none_if_blank
from app.web.body import json_reader
from app.web.deps import ServicesDep, require_admin

BODY_LIMIT_BYTES = 64 * 1024
_KIND = "judgements"

router = api_router("judgements", prefix="/api/v1/judgements", dependencies=[Depends(require_admin)])


class JudgementRequest(BaseModel):
    """Two issues of one repository, and whether they are the same failure."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    a: IssueNumber
    b: IssueNumber
    verdict: Verdict
    note: Annotated[str | None, Field(max_length=2000), AfterValidator(none_if_blank)] = None
    repo: RepoName = Field(None, description="owner/name; the default repository without it")


class JudgementList(Frozen):
    items: tuple[Judgement, ...]
    next_cursor: str | None = None


Sent = Annotated[JudgementRequest, Depends(json_reader(JudgementRequest, BODY_LIMIT_BYTES, "judgement"))]


@router.post(
    "",
    operation_id="judge",
    status_code=201,
    summary="Say that two issues are the same failure, or are not; this outlives every rebuild",
    responses=problems(400, 401, 403, 404, 413, 415)
    | {200: {"model": Judgement, "description": "It was in force already."}},
    openapi_extra=json_body(JudgementRequest.model_json_schema()),
)
async def post_judgement(asked: Sent, services: ServicesDep, response: Response) -> Judgement:
    """Put a judgement in force, in place of the pair's former one."""
    repo = asked.repo or services.default_repo
    if repo not in services.settings.repo:
        raise NotFoundError(f"{repo} is not one of the repositories kept here.")
    judgement, is_new = await services.write(judge, repo, asked.a, asked.b, asked.verdict, asked.note)
    response.status_code = 201 if is_new else 200
    return judgement


@router.get(
    "",
    operation_id="list_judgements",
    summary="The judgements in force, the newest first; with `ended=true` the whole audit trail",
    responses=problems(401, 403),
)
def get_judgements(
    services: ServicesDep,
    repo: ChosenRepo,
    ended: Annotated[bool, Query(description="also those undone or replaced")] = False,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: CursorText = None,
) -> JudgementList:
    """Judgements of one repository."""
    below = read_cursor(_KIND, cursor)
    found = judgements(services.store, repo, below=below, limit=limit + 1, ended=ended)
    more = write_cursor(_KIND, found[limit - 1].id) if len(found) > limit else None
    return JudgementList(items=found[:limit], next_cursor=more)


@router.delete(
    "/{id}",
    operation_id="undo_judgement",
    summary="Take a judgement back; it stays in the audit trail",
    responses=problems(401, 403, 404),
)
async def delete_judgement(
    judgement_id: Annotated[int, Path(alias="id", ge=1, le=NUMBER_MAX)], services: ServicesDep
) -> Judgement:
    """The judgement as it ended; undoing it again changes nothing."""
    return await services.write(undo, services.settings.repo, judgement_id)
