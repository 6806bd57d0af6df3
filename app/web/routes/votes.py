"""Votes on an issue: as JSON, and as a form that needs no script."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import Depends, Request
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, BeforeValidator, ConfigDict

from app.errors import InputError
from app.knowledge.issue.votes import IssueVotes, Signal, Vote, vote
from app.web.answers.openapi import api_router, json_body, problems
from app.web.answers.parameters import Number, Repo, issue_routes
from app.web.body import json_reader, read_limited
from app.web.deps import ServicesDep
from app.web.middleware.client import ClientDep
from app.web.middleware.origins import require_same_origin
from app.web.views.render import page_address

BODY_BYTES = 4096

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


async def _form_vote(request: Request) -> VoteRequest:
    content = await read_limited(request, BODY_BYTES, f"A vote is at most {BODY_BYTES >> 10} KiB.")
    signal, _, value = dict(parse_qsl(content.decode("utf-8", "replace"))).get("vote", "").partition(":")
    try:
        return VoteRequest.model_validate({"signal": signal, "value": int(value)})
    except ValueError:
        raise InputError("vote: press one of the buttons below the issue.") from None


JsonVote = Annotated[VoteRequest, Depends(json_reader(VoteRequest, BODY_BYTES, "vote"))]
FormVote = Annotated[VoteRequest, Depends(_form_vote)]


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
    repo: Repo, number: Number, services: ServicesDep, sent: FormVote, client: ClientDep
) -> RedirectResponse:
    """The button below an issue."""
    await services.write(vote, repo, number, sent.signal, sent.value, client=client)
    address = page_address(repo, number, services.default_repo)
    return RedirectResponse(f"{address}#vote", status_code=303)
