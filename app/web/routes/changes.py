"""What changed here since a mirror or a bot asked last."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import Query
from pydantic import Field

from app.extract.facts import Frozen
from app.store.derived.readings import read_since
from app.store.github.issues import find_heads, find_repository
from app.web.answers.openapi import api_router
from app.web.answers.parameters import ChosenRepo
from app.web.deps import ServicesDep

router = api_router("issues")

SETTLED_S = 30.0
"""What is younger is sent later: a sync that began before may still commit something older."""
_BEGIN = datetime(2000, 1, 1, tzinfo=UTC)
_CURSOR = "^[0-9]{1,17}-[0-9]{1,10}$"
_MICROSECOND = timedelta(microseconds=1)


class ChangedIssue(Frozen):
    """An issue or pull request that was stored, changed, lost or read anew."""

    number: int
    title: str
    state: str
    is_pull_request: bool
    is_gone: bool = Field(description="GitHub has it no more")
    url: str
    changed_at: datetime = Field(description="when it was last read here")


class ChangeList(Frozen):
    """Changes in their order; each issue stands at its newest one."""

    items: tuple[ChangedIssue, ...]
    next_cursor: str = Field(description="`since` of the next question, also where there is nothing new")
    has_more: bool = Field(description="whether to ask again at once")


@router.get(
    "/api/v1/changes",
    operation_id="list_changes",
    summary="What changed here since a cursor: for mirrors and bots",
)
def list_changes(
    services: ServicesDep,
    repo: ChosenRepo,
    since: Annotated[
        str | None,
        Query(
            pattern=_CURSOR,
            description="`next_cursor` of the answer before; all without it",
            examples=["848311200000000-39288"],
        ),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> ChangeList:
    """List issues and pull requests in the order in which they were last read.

    An issue is read anew when GitHub's text, a comment, its presence or our rules changed; then fetch it from
    `/api/v1/issues/{number}`. The cursor never ends: keep the newest, and ask again later. What is younger
    than half a minute comes with the next question.
    """
    after = _read_cursor(since)
    until = datetime.now(UTC) - timedelta(seconds=SETTLED_S)
    with services.store.reading() as session:
        repo_id = find_repository(session, repo)
        found = [] if repo_id is None else read_since(session, repo_id, after, until, limit + 1)
        part = dict(found[:limit])
        heads = find_heads(session, repo_id, list(part)) if repo_id is not None else []
    items = tuple(
        ChangedIssue(
            number=head.number,
            title=head.title,
            state=head.state,
            is_pull_request=head.is_pull_request,
            is_gone=head.gone_at is not None,
            url=head.url,
            changed_at=part[head.number],
        )
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
