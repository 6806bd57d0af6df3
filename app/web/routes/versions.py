"""Regressions and known issues of a version, the user's stack, and upgrades: pages and JSON routes."""

from dataclasses import replace
from typing import Annotated, TypeVar

from fastapi import Path, Query
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import AfterValidator, Field

from app.errors import InputError
from app.extract.fields.settings import KNOWN_OPTIONS
from app.extract.versions import can_be_version, is_same, ordered
from app.knowledge.freshness import release_names
from app.knowledge.stack.shapes import Affects
from app.knowledge.stack.stack import doubtful_parts, make_stack
from app.knowledge.stack.upgrade import Affecting, Upgrade, affecting, compare_versions, upgrade_markdown
from app.knowledge.version.regressions import (
    Basis,
    KnownIssue,
    KnownPage,
    RegressionItem,
    RegressionPage,
    known_issues,
    regressions,
    release_heat,
)
from app.web.answers.context import RepoContext, StackContextDep
from app.web.answers.negotiate import ListReplyDep, ReplyDep
from app.web.answers.openapi import api_router, markdown_too, problems
from app.web.answers.parameters import unknown_name
from app.web.answers.schemas import none_if_blank

PAGE_REGRESSIONS = 30
PAGE_KNOWN = 60
VERSIONS_LISTED = 12

router = api_router("versions")


VERSION = r"^\s*[0-9A-Za-z][0-9A-Za-z.+_!-]*\s*$"
VersionQuery = Annotated[
    str | None,
    Query(max_length=100, pattern=VERSION, description="vLLM release such as 0.19.0, build, or commit"),
]
PageVersion = Annotated[str | None, Query(max_length=100), AfterValidator(none_if_blank)]
Limit = Annotated[int, Query(ge=1, le=200)]


Asked = TypeVar("Asked", str, str | None)


def known_version(context: RepoContext, version: Asked) -> Asked:
    """Return the requested version if it is valid.

    Raises:
        RequestValidationError: neither a version nor a commit; the error names the nearest release.
    """
    if version is not None and not can_be_version(version):
        releases = context.cached(release_names)
        raise unknown_name("version", "is no version such as 0.19.0, and no commit", version, releases)
    return version


AffectsField = Annotated[
    dict[int, Affects] | None,
    Field(description="whether each issue affects `stack`, by issue number; only with `stack`"),
]


class RegressionList(RegressionPage):
    affects: AffectsField = None
    next_cursor: str | None = None


class KnownIssueList(KnownPage):
    affects: AffectsField = None
    next_cursor: str | None = None


@router.get(
    "/api/v1/regressions",
    operation_id="list_regressions",
    summary="List regressions, of one version or all, with range and evidence",
    response_model=RegressionList,
)
def get_regressions(
    reply: ListReplyDep,
    context: StackContextDep,
    version: VersionQuery = None,
    limit: Limit = 50,
) -> Response:
    """List failures that an earlier version did not have, as their issues state, with the version range.

    Without `version`, newest first; with it, regressions that began in that version first, then by `place`.
    """
    asked = known_version(context, version)

    def part(after: int) -> RegressionList:
        page = context.cached(regressions, asked, after=after, limit=limit)
        return RegressionList(**dict(page), affects=context.affects(item.number for item in page.items))

    return reply.part("regressions", limit, part)


@router.get(
    "/api/v1/versions/{version}/known-issues",
    operation_id="list_known_issues",
    summary="List the known issues of a version, by number of reports",
    response_model=KnownIssueList,
)
def get_known_issues(
    reply: ListReplyDep,
    context: StackContextDep,
    version: Annotated[str, Path(max_length=100, pattern=VERSION)],
    closed: Annotated[bool, Query(description="also return failures closed without a known fix")] = False,
    limit: Limit = 50,
) -> Response:
    """List the known failures of a version with fix state and workaround.

    Failures reported in the version come first, then those since an earlier version, each part by number of
    reports. An empty list does not prove that nothing fails.
    """
    asked = known_version(context, version)

    def part(after: int) -> KnownIssueList:
        page = context.cached(known_issues, asked, closed=closed, after=after, limit=limit)
        return KnownIssueList(**dict(page), affects=context.affects(item.number for item in page.items))

    return reply.part("known-issues", limit, part)


@router.get("/regressions", include_in_schema=False)
def regressions_page(
    context: StackContextDep,
    version: PageVersion = None,
    closed: Annotated[str, Query(max_length=5)] = "",
) -> HTMLResponse:
    """Regressions and known issues of a version; without one the newest, and versions to choose from."""
    known = None
    if not version:
        page = context.cached(regressions, limit=PAGE_REGRESSIONS)
    else:
        page = context.cached(regressions, version, only="fixed", limit=PAGE_REGRESSIONS)
        known = context.cached(known_issues, version, closed=bool(closed), limit=PAGE_KNOWN)
    listed = (*page.items, *(known.items if known else ()))
    return context.render(
        "regressions.html",
        path="/regressions",
        query={"version": version},
        affects=context.affects(item.number for item in listed) or {},
        version=page.version,
        page=page,
        known=known,
        closed=bool(closed),
        parts=_sections(page, known),
        heat=None if version else context.cached(release_heat),
        counts={"reported": known.reported, "began": known.began} if known else {},
        releases=[count for count in page.versions if _is_release(count.version)][:VERSIONS_LISTED],
        builds=[count for count in page.versions if not _is_release(count.version)][:VERSIONS_LISTED],
    )


Part = tuple[str, str, str, list[RegressionItem | KnownIssue]]


def _sections(page: RegressionPage, known: KnownPage | None) -> list[Part]:
    """Return the page's sections: key, heading, note, failures. Each failure is in one section only."""
    if known is None:
        return [("newest", "Newest", "by issue, the newest first", list(page.items))]
    version = known.version
    began = [item for item in known.items if item.basis == "reported" and _began_in(item, version)]
    reported = [item for item in known.items if item.basis == "reported" and not _began_in(item, version)]
    return [
        ("began", f"Began in {version}", "first reported to fail here", [*began]),
        ("reported", "Failing", f"reported of {version}", [*reported]),
        ("range", "In the range", "between two reported versions", _with_basis(known, "in_range")),
        ("since", "Failing since earlier", f"open; no report on {version}", _with_basis(known, "since")),
        (
            "fixed",
            f"Fixed in {version}",
            "reported to work again",
            [*page.items],
        ),
    ]


def _began_in(item: KnownIssue, version: str) -> bool:
    return item.regression is not None and is_same(item.regression.first_failing, version)


def _with_basis(known: KnownPage, basis: Basis) -> list[RegressionItem | KnownIssue]:
    return [item for item in known.items if item.basis == basis]


def _is_release(text: str) -> bool:
    version = ordered(text)
    return version is not None and not version.is_prerelease


# ---- the user's stack

PART = Annotated[str | None, Query(max_length=300), AfterValidator(none_if_blank)]
AFFECTING_LISTED = 30


@router.get("/stack", include_in_schema=False)
def stack_page(
    context: StackContextDep,
    vllm: PART = None,
    gpu: PART = None,
    model: PART = None,
    args: PART = None,
) -> Response:
    """The form of a stack, and what affects it; what the form sends leads to the stack's own address."""
    if made := make_stack(vllm, gpu, model, args):
        return RedirectResponse(replace(context, stack=made).address("/stack"), status_code=303)
    stack = context.stack
    found = context.cached(affecting, stack) if stack else Affecting()
    return context.render(
        "stack.html",
        path="/stack",
        lines=found.lines[:AFFECTING_LISTED],
        total=len(found.lines),
        unsure=len(found.numbers.get("unsure", ())),
        doubts=tuple(doubtful_parts(stack, KNOWN_OPTIONS)) if stack else (),
        json_address=context.address("/api/v1/issues"),
    )


# ---- upgrades

From = Annotated[
    str, Query(alias="from", max_length=100, pattern=VERSION, description="version to upgrade from")
]
To = Annotated[str, Query(max_length=100, pattern=VERSION, description="version to upgrade to")]
LINES_LISTED, LINES_MAX = 20, 50
"""Shown lines of a list, and these with those that unfold; JSON has more."""


@router.get(
    "/api/v1/upgrade",
    operation_id="compare_versions",
    summary="Compare two versions: what an upgrade fixes and breaks",
    response_model=Upgrade,
    responses=problems(400) | markdown_too(),
)
def get_upgrade(reply: ReplyDep, context: StackContextDep, from_: From, to: To) -> Response:
    """List failures that are fixed by the upgrade, introduced by it, or open in both versions, with reasons.

    With `stack`, the lists are limited to that stack, and a verdict, what nobody reported, and the newest
    release without a known break are added. Without it they cover all failures, by effect and number of
    reports. An empty list does not prove absence. With `Accept: text/markdown` the answer is Markdown.
    """
    found = context.cached(
        compare_versions, known_version(context, from_), known_version(context, to), context.stack
    )
    return reply(found, markdown=lambda: upgrade_markdown(found))


@router.get("/upgrade", include_in_schema=False)
def upgrade_page(
    context: StackContextDep,
    from_: Annotated[PageVersion, Query(alias="from")] = None,
    to: PageVersion = None,
) -> HTMLResponse:
    """The form, and the three lists where both versions are given."""
    releases = [name for name in context.cached(release_names) if _is_release(name)]
    newest = context.overview.newest_release
    found, fault = None, ""
    if from_ and to:
        try:
            found = context.cached(compare_versions, from_, to, context.stack)
        except InputError as error:
            fault = error.message
    query = {"from": from_, "to": to}
    return context.render(
        "upgrade.html",
        path="/upgrade",
        query=query,
        status=422 if fault else 200,
        found=found,
        fault=fault,
        start=from_ or (context.stack.vllm if context.stack else None) or "",
        goal=to or newest or "",
        releases=releases,
        shown=LINES_LISTED,
        most=LINES_MAX,
        json_address=context.address("/api/v1/upgrade", **query),
    )
