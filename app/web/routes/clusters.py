"""Clusters of one failure: `/signatures` and `/signatures/{id}`, as pages and as JSON.

An id that is no cluster's today - merged, of an older version, or of a report's signature - leads by 301 to
the cluster that holds it.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import AfterValidator

from app.knowledge.cluster.shapes import ClusterDetail, ClusterPage
from app.knowledge.cluster.view import clusters, current_id, view_cluster
from app.web.answers.negotiate import MaxChars, answer, answer_list
from app.web.answers.openapi import problems
from app.web.answers.parameters import CursorText, RepoQuery
from app.web.deps import Services, ServicesDep
from app.web.views.render import render_page, repo_switch
from app.web.views.version_line import version_line

PAGE_CLUSTERS = 12
PAGE_FOUND = 40
PARTS: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("biggest", "Biggest", "by reports", {"min_size": 2}),
    ("newest", "Newest", "by their newest report", {"min_size": 2, "sort": "recent"}),
    ("alive", "Closed but alive", "reported again after the canonical issue was closed", {"alive": True}),
)
"""Of the page of all signatures: key, heading, order in words, and what to ask for."""
REPORTS_SHOWN = 20
_KIND = "signatures"

router = APIRouter(tags=["signatures"])

SignatureId = Annotated[str, Path(max_length=100, description="such as s1-0123456789ab")]
_ID = r"^s\d{1,3}-[0-9a-f]{4,32}$"
Via = Annotated[str | None, Query(max_length=40, pattern=_ID, description="the signature that led here")]
Sort = Literal["size", "recent", "growing"]


class ClusterList(ClusterPage):
    next_cursor: str | None = None


@router.get(
    "/api/v1/signatures",
    operation_id="list_signatures",
    summary="Clusters: each is one failure with all its reports",
    response_model=ClusterList,
    responses=problems(422, 503),
)
def get_signatures(
    request: Request,
    services: ServicesDep,
    q: Annotated[
        str, Query(max_length=200, description="words of the text or title, an id, or an issue's number")
    ] = "",
    min_size: Annotated[int, Query(ge=1, le=100_000, description="reports at least")] = 1,
    alive: Annotated[bool, Query(description="closed, and reported again after that")] = False,
    sort: Annotated[Sort, Query(description="`growing`: the newest 28 days less those before")] = "size",
    repo: RepoQuery = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
    cursor: CursorText = None,
    max_chars: MaxChars = None,
) -> Response:
    """List failures by how many reports each has, by its newest report, or by how it grows."""
    where = repo or services.default_repo
    return answer_list(
        request,
        ClusterList,
        lambda after: services.cached(
            clusters, where, q=q, min_size=min_size, alive=alive, sort=sort, after=after, limit=limit
        ),
        kind=f"{_KIND}.{sort}",
        cursor=cursor,
        limit=limit,
        max_chars=max_chars,
    )


@router.get(
    "/api/v1/signatures/{signature_id}",
    operation_id="get_signature",
    summary="One failure with all its reports, what helps, the state of the fix, and since when",
    response_model=ClusterDetail,
    responses={301: {"description": "Another cluster holds this id."}, **problems(404, 422, 503)},
)
def get_signature(
    request: Request,
    services: ServicesDep,
    signature_id: SignatureId,
    repo: RepoQuery = None,
    via: Via = None,
    max_chars: MaxChars = None,
) -> Response:
    """All that is known of a failure: its reports, their versions and hardware, remedies, fix, range."""
    where = repo or services.default_repo
    current = current_id(services.store, where, signature_id)
    if current != signature_id:
        return _moved("/api/v1/signatures/", current, signature_id, repo)
    detail = services.cached(view_cluster, where, current, via=via)
    return answer(request, detail, max_chars)


@router.api_route("/signatures", methods=["GET", "HEAD"], include_in_schema=False)
def signatures_page(
    services: ServicesDep,
    q: Annotated[str, Query(max_length=200), AfterValidator(str.strip)] = "",
    repo: RepoQuery = None,
) -> HTMLResponse:
    """The biggest, the newest and those that go on after they were closed; or what a search finds."""
    where = repo or services.default_repo
    chosen = (("found", "Found", "biggest first", {"q": q, "limit": PAGE_FOUND}),) if q else PARTS
    parts = [
        (key, heading, order, services.cached(clusters, where, **{"limit": PAGE_CLUSTERS, **asked}))
        for key, heading, order, asked in chosen
    ]
    return render_page(
        "signatures.html",
        q=q,
        parts=parts,
        overview=services.overview(where),
        repo=where,
        suffix=_suffix(services, where),
        default_repo=services.default_repo,
        repos=repo_switch(services.settings, "/signatures", where, q=q),
    )


@router.api_route("/signatures/{signature_id}", methods=["GET", "HEAD"], include_in_schema=False)
def signature_page(
    services: ServicesDep, signature_id: SignatureId, repo: RepoQuery = None, via: Via = None
) -> Response:
    """One failure with all its reports."""
    where = repo or services.default_repo
    current = current_id(services.store, where, signature_id)
    if current != signature_id:
        return _moved("/signatures/", current, signature_id, repo)
    detail = services.cached(view_cluster, where, current, via=via)
    overview = services.overview(where)
    return render_page(
        "signature.html",
        cluster=detail,
        helps=[item for item in detail.workarounds if item.outcome != "fails"],
        via=via if via != current else None,
        failed=[item for item in detail.workarounds if item.outcome == "fails"],
        stations=version_line(detail.regression, None, overview.newest_release),
        shown=REPORTS_SHOWN,
        overview=overview,
        repo=where,
        suffix=_suffix(services, where),
        default_repo=services.default_repo,
    )


def _moved(path: str, current: str, asked: str, repo: str | None) -> RedirectResponse:
    """To the cluster that holds the id today; what was asked for goes along where it reads as an id."""
    query = {"via": asked if re.search(_ID, asked) else None, "repo": repo}
    known = urlencode({name: value for name, value in query.items() if value})
    return RedirectResponse(f"{path}{current}" + (f"?{known}" if known else ""), status_code=301)


def _suffix(services: Services, repo: str) -> str:
    """What an address needs behind it for a repository other than the default one."""
    return "" if repo == services.default_repo else "?" + urlencode({"repo": repo})
