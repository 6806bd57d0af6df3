"""Votes: on an issue as JSON, and on its remedies by buttons that need no script."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import Depends, Request
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, BeforeValidator, ConfigDict

from app.errors import InputError
from app.knowledge.issue.votes import IssueVotes, Signal, Vote, vote, vote_on_remedy
from app.web.answers.openapi import api_router, json_body, problems
from app.web.answers.parameters import Number, Repo, issue_routes
from app.web.body import json_reader, read_limited
from app.web.deps import ServicesDep
from app.web.middleware.client import ClientDep
from app.web.middleware.origins import require_same_origin
from app.web.views.render import page_address

BODY_BYTES = 4096
VISITOR_COOKIE = "visitor"
COOKIE_S = 365 * 24 * 3600
_HELPED: dict[str, Vote] = {"1": 1, "-1": -1, "0": 0}

router = api_router("issues")


def _no_flag(value: object) -> object:
    if isinstance(value, bool):  # which equals 0 or 1
        raise ValueError("must be 1, -1 or 0")
    return value


class VoteRequest(BaseModel):
    """A visitor's word on an issue; a second one on the same signal takes the first one's place."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    signal: Signal
    value: Annotated[Vote, BeforeValidator(_no_flag)]


async def _form_vote(request: Request) -> tuple[str, Vote]:
    content = await read_limited(request, BODY_BYTES, f"A vote is at most {BODY_BYTES >> 10} KiB.")
    remedy, _, value = dict(parse_qsl(content.decode("utf-8", "replace"))).get("vote", "").partition(":")
    if not re.fullmatch(r"[0-9a-f]{16}", remedy) or value not in _HELPED:
        raise InputError("vote: press one of the buttons below a remedy.")
    return remedy, _HELPED[value]


JsonVote = Annotated[VoteRequest, Depends(json_reader(VoteRequest, BODY_BYTES, "vote"))]
FormVote = Annotated[tuple[str, Vote], Depends(_form_vote)]


@issue_routes(
    router,
    "/votes",
    ids=("vote", "vote_in_repo"),
    summary="Say what an issue is worth to you; 0 takes it back",
    methods=("POST",),
    responses=problems(400, 404, 413, 415),
    openapi_extra=json_body(VoteRequest.model_json_schema()),
)
async def post_vote(
    repo: Repo, number: Number, services: ServicesDep, sent: JsonVote, client: ClientDep
) -> IssueVotes:
    """Vote on a stored issue, one vote for each visitor and signal; the answer counts all votes.

    Visitors are distinguished by their address, of which a keyed hash is kept.
    """
    return await services.write(vote, repo, number, sent.signal, sent.value, client=client)


@issue_routes(router, "/votes", methods=("POST",), dependencies=[Depends(require_same_origin)])
async def send_vote(
    request: Request, repo: Repo, number: Number, services: ServicesDep, sent: FormVote, client: ClientDep
) -> RedirectResponse:
    """The buttons below a remedy; the visitor gets a signed cookie with the first vote."""
    remedy, value = sent
    cookie = await services.write(
        vote_on_remedy, repo, number, remedy, value, cookie=request.cookies.get(VISITOR_COOKIE), client=client
    )
    answer = RedirectResponse(f"{page_address(repo, number, services.default_repo)}#rem", status_code=303)
    answer.set_cookie(
        VISITOR_COOKIE,
        cookie,
        max_age=COOKIE_S,
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )
    return answer
