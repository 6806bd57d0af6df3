"""Admin routes: judgements whether two issues are the same failure, and the inbox of possible duplicates.

The JSON routes take the token as a header. The inbox also takes it from a form, and sets a signed cookie
that is hidden from scripts and not sent from other sites.
"""

import time
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from app.errors import NotFoundError
from app.extract.facts import Frozen
from app.knowledge.cluster.judgements import Judgement, judge, judgements, undo
from app.knowledge.inbox import Decision, decide, inbox
from app.store.people import Verdict
from app.web.answers.context import ContextDep, RepoContext
from app.web.answers.openapi import api_router, json_body, problems
from app.web.answers.parameters import ChosenRepo, CursorText, RepoName, read_cursor, write_cursor
from app.web.answers.schemas import NUMBER_MAX, IssueNumber, none_if_blank
from app.web.body import SmallForm, json_reader, validated
from app.web.deps import (
    ADMIN_COOKIE,
    ADMIN_SECONDS,
    AdminTokenError,
    HasAdmin,
    ServicesDep,
    admin_session,
    admin_token,
    is_admin_token,
    require_admin,
)
from app.web.middleware.origins import OWN_REFERRER, require_same_origin

BODY_LIMIT_BYTES = 64 * 1024
NO_STORE = {"Cache-Control": "no-store", "X-Robots-Tag": "noindex", **OWN_REFERRER}
_KIND = "judgements"

api = api_router("judgements", prefix="/api/v1/judgements", dependencies=[Depends(require_admin)])


class JudgementRequest(BaseModel):
    """Two issues of one repository, and whether they are the same failure."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    a: IssueNumber
    b: IssueNumber
    verdict: Verdict
    note: Annotated[str | None, Field(max_length=2000), AfterValidator(none_if_blank)] = None
    repo: RepoName = Field(None, description="owner/name; default: the default repository")


class JudgementList(Frozen):
    items: tuple[Judgement, ...]
    next_cursor: str | None = None


Sent = Annotated[JudgementRequest, Depends(json_reader(JudgementRequest, BODY_LIMIT_BYTES, "judgement"))]


@api.post(
    "",
    operation_id="judge",
    status_code=201,
    summary="Judge whether two issues are the same failure",
    responses=problems(400, 401, 403, 404, 413, 415)
    | {200: {"model": Judgement, "description": "The same judgement was already in force."}},
    openapi_extra=json_body(JudgementRequest.model_json_schema()),
)
async def post_judgement(asked: Sent, services: ServicesDep, response: Response) -> Judgement:
    """Store a judgement; it replaces the pair's earlier one and survives every rebuild."""
    repo = asked.repo or services.default_repo
    if repo not in services.settings.repo:
        raise NotFoundError(f"{repo} is not one of the repositories kept here.")
    judgement, is_new = await services.write(judge, repo, asked.a, asked.b, asked.verdict, asked.note)
    response.status_code = 201 if is_new else 200
    return judgement


@api.get(
    "",
    operation_id="list_judgements",
    summary="List judgements, newest first",
    responses=problems(401, 403),
)
def get_judgements(
    services: ServicesDep,
    repo: ChosenRepo,
    ended: Annotated[bool, Query(description="also return judgements that were undone or replaced")] = False,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: CursorText = None,
) -> JudgementList:
    """List the judgements in force; with `ended=true`, the whole audit trail."""
    below = read_cursor(_KIND, cursor)
    found = judgements(services.store, repo, below=below, limit=limit + 1, ended=ended)
    more = write_cursor(_KIND, found[limit - 1].id) if len(found) > limit else None
    return JudgementList(items=found[:limit], next_cursor=more)


@api.delete(
    "/{id}",
    operation_id="undo_judgement",
    summary="Undo a judgement; it stays in the audit trail",
    responses=problems(401, 403, 404),
)
async def delete_judgement(
    judgement_id: Annotated[int, Path(alias="id", ge=1, le=NUMBER_MAX)], services: ServicesDep
) -> Judgement:
    """Undo a judgement and return it; repeating the call changes nothing."""
    return await services.write(undo, services.settings.repo, judgement_id)


# ---- the inbox

pages = api_router("inbox")
OWN_FORM = [Depends(require_same_origin)]


class DecisionForm(BaseModel):
    """A decision as the page's buttons send it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    number: IssueNumber
    candidate: IssueNumber
    decision: Decision
    repo: RepoName = None


@pages.get("/inbox", include_in_schema=False)
def inbox_page(
    context: ContextDep,
    is_admin: HasAdmin,
    number: Annotated[int | None, Query(ge=1, le=NUMBER_MAX)] = None,
) -> HTMLResponse:
    """The new failures that may repeat an older one; the login form to who is not the admin."""
    found = inbox(context.services.store, context.repo, number) if is_admin else None
    status = 200 if is_admin else 401
    return context.render(
        "inbox.html", path="/inbox", status=status, headers=NO_STORE, found=found, is_wrong=False
    )


@pages.post("/inbox/login", include_in_schema=False, dependencies=OWN_FORM)
def log_in(request: Request, services: ServicesDep, form: SmallForm) -> Response:
    """Set the admin's cookie for who sends the token."""
    token = admin_token(request)
    if not is_admin_token(form.get("token", ""), token):
        context = RepoContext(services, services.default_repo)
        return context.render("inbox.html", status=401, headers=NO_STORE, found=None, is_wrong=True)
    answer = RedirectResponse("/inbox", status_code=303, headers=NO_STORE)
    answer.set_cookie(
        ADMIN_COOKIE,
        admin_session(token, time.time()),
        max_age=ADMIN_SECONDS,
        path="/inbox",
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return answer


@pages.post("/inbox/logout", include_in_schema=False, dependencies=OWN_FORM)
def log_out() -> RedirectResponse:
    """Take the admin's cookie away."""
    answer = RedirectResponse("/inbox", status_code=303, headers=NO_STORE)
    answer.delete_cookie(ADMIN_COOKIE, path="/inbox", httponly=True, samesite="strict")
    return answer


@pages.post("/inbox", include_in_schema=False, dependencies=OWN_FORM)
async def post_decision(services: ServicesDep, is_admin: HasAdmin, form: SmallForm) -> RedirectResponse:
    """Store a decision, and on to the next."""
    if not is_admin:
        raise AdminTokenError("Log in at /inbox first.")
    asked = validated(DecisionForm, form, strict=False)
    repo = asked.repo or services.default_repo
    if repo not in services.settings.repo:
        raise NotFoundError(f"{repo} is not one of the repositories kept here.")
    await services.write(decide, repo, asked.number, asked.candidate, asked.decision)
    address = RepoContext(services, repo).address("/inbox")
    return RedirectResponse(address, status_code=303, headers=NO_STORE)


router = APIRouter()
router.routes.extend(api.routes)
router.routes.extend(pages.routes)
