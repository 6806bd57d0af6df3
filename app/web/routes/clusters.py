"""Clusters of the same failure: `/signatures` and `/signatures/{id}`, as pages and as JSON.

An id that is no longer a cluster's (merged, or of an older version), or is a report's signature, redirects
(301) to the cluster that contains it.
"""

import re
from typing import Annotated, Any, Literal

from fastapi import Path, Query
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import AfterValidator, Field

from app.knowledge.cluster.families import FamilyPage, families
from app.knowledge.cluster.view import ClusterDetail, ClusterPage, clusters, current_id, view_cluster
from app.knowledge.stack.cases import affects_clusters
from app.knowledge.stack.shapes import Affects
from app.web.answers.context import ContextDep, RepoContext, StackContextDep
from app.web.answers.negotiate import ListReplyDep, ReplyDep
from app.web.answers.openapi import api_router, problems
from app.web.views.version_line import version_line

PAGE_CLUSTERS = 12
PAGE_FOUND = 40
PARTS: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("biggest", "Biggest", "by reports", {"min_size": 2}),
    ("newest", "Newest", "by their newest report", {"min_size": 2, "sort": "recent"}),
    ("alive", "Closed but alive", "reported again after the canonical issue was closed", {"alive": True}),
)
"""Sections of the page of all signatures: key, heading, order in words, query arguments."""
REPORTS_LISTED = 20
FAMILIES_LISTED, PAGE_FAMILIES = 12, 100

router = api_router("signatures")

SignatureId = Annotated[str, Path(max_length=100, description="signature id, such as s1-0123456789ab")]
_ID = r"^s\d{1,3}-[0-9a-f]{4,32}$"
Via = Annotated[str | None, Query(max_length=40, pattern=_ID, description="signature that redirected here")]
Sort = Literal["size", "recent", "growing"]


Family = Annotated[str, Query(max_length=120, description="with a report in this family")]


class ClusterList(ClusterPage):
    affects: dict[str, Affects] | None = Field(
        None, description="whether each failure affects `stack`, by signature id; only with `stack`"
    )
    next_cursor: str | None = None


class FamilyList(FamilyPage):
    next_cursor: str | None = None


@router.get(
    "/api/v1/signatures",
    operation_id="list_signatures",
    summary="List clusters: failures with their reports",
    response_model=ClusterList,
)
def get_signatures(
    reply: ListReplyDep,
    context: StackContextDep,
    q: Annotated[str, Query(max_length=200, description="words, a signature id, or an issue number")] = "",
    min_size: Annotated[int, Query(ge=1, le=100_000, description="minimum number of reports")] = 1,
    alive: Annotated[bool, Query(description="reported again after it was closed")] = False,
    sort: Annotated[Sort, Query(description="`growing`: newest 28 days minus the 28 before")] = "size",
    family: Family = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
) -> Response:
    """List failures by number of reports, newest report, or growth."""

    def part(after: int) -> ClusterList:
        page = context.cached(
            clusters,
            q=q,
            min_size=min_size,
            alive=alive,
            sort=sort,
            family=family,
            after=after,
            limit=limit,
        )
        return ClusterList(**dict(page), affects=_affects(context, *(item.id for item in page.items)))

    return reply.part(f"signatures.{sort}", limit, part)


@router.get(
    "/api/v1/families",
    operation_id="list_families",
    summary="List families: clusters with the same error text",
    response_model=FamilyList,
)
def get_families(
    reply: ListReplyDep,
    context: ContextDep,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
) -> Response:
    """List kinds of errors, most reported first; pass `text` as `family` to `list_signatures`."""

    def part(after: int) -> FamilyList:
        return FamilyList(**dict(context.cached(families, after=after, limit=limit)))

    return reply.part("families", limit, part)


@router.get(
    "/api/v1/signatures/{signature_id}",
    operation_id="get_signature",
    summary="Get a cluster: reports, workarounds, fix state and regression range",
    response_model=ClusterDetail,
    responses={301: {"description": "The id now belongs to another cluster."}, **problems(404)},
)
def get_signature(
    reply: ReplyDep, context: ContextDep, signature_id: SignatureId, via: Via = None
) -> Response:
    """Return a failure's reports with versions and hardware, workarounds, fix and regression range."""
    current = current_id(context.services.store, context.repo, signature_id)
    if current != signature_id:
        return _redirect_moved(context, "/api/v1/signatures/", current, signature_id)
    return reply(context.cached(view_cluster, current, via=via))


@router.get("/signatures", include_in_schema=False)
def signatures_page(
    context: StackContextDep,
    q: Annotated[str, Query(max_length=200), AfterValidator(str.strip)] = "",
    family: Family = "",
) -> HTMLResponse:
    """Families, the biggest, the newest and those that go on after they were closed; or what is found."""
    found = {"q": q, "family": family, "limit": PAGE_FOUND}
    chosen = (("found", "Found", "biggest first", found),) if q or family else PARTS
    shown = None if q or family else context.cached(families, limit=FAMILIES_LISTED)
    parts = [
        (key, heading, order, context.cached(clusters, **{"limit": PAGE_CLUSTERS, **asked}))
        for key, heading, order, asked in chosen
    ]
    return context.render(
        "signatures.html",
        path="/signatures",
        query={"q": q, "family": family},
        affects=_affects(context, *(item.id for *_, page in parts for item in page.items)) or {},
        q=q,
        family=family,
        families=shown,
        parts=parts,
    )


def _affects(context: RepoContext, *ids: str) -> dict[str, Affects] | None:
    """Return by id whether each cluster affects the stack; None without a stack."""
    return dict(context.cached(affects_clusters, context.stack, ids)) if context.stack else None


@router.get("/families", include_in_schema=False)
def families_page(context: ContextDep) -> HTMLResponse:
    page = context.cached(families, limit=PAGE_FAMILIES)
    return context.render("families.html", path="/families", page=page)


@router.get("/signatures/{signature_id}", include_in_schema=False)
def signature_page(context: StackContextDep, signature_id: SignatureId, via: Via = None) -> Response:
    current = current_id(context.services.store, context.repo, signature_id)
    if current != signature_id:
        return _redirect_moved(context, "/signatures/", current, signature_id)
    detail = context.cached(view_cluster, current, via=via)
    return context.render(
        "signature.html",
        affects=_affects(context, current),
        cluster=detail,
        helps=[item for item in detail.workarounds if item.outcome != "fails"],
        via=via if via != current else None,
        failed=[item for item in detail.workarounds if item.outcome == "fails"],
        stations=version_line(detail.regression, None, context.overview.newest_release),
        shown=REPORTS_LISTED,
    )


def _redirect_moved(context: RepoContext, path: str, current: str, asked: str) -> RedirectResponse:
    """Redirect to the cluster that now contains the id; a valid requested id is passed on as `via`."""
    via = asked if re.search(_ID, asked) else None
    return RedirectResponse(context.address(path + current, via=via), status_code=301)
