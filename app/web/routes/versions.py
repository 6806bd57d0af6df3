"""What fails in a version, and since when: the page and its JSON routes."""

from __future__ import annotations

from typing import Annotated, TypeVar

from fastapi import Path, Query
from fastapi.responses import HTMLResponse, Response
from pydantic import AfterValidator

from app.extract.versions import can_be_version, ordered
from app.knowledge.freshness import release_names
from app.knowledge.version.regressions import (
    KnownPage,
    RegressionPage,
    known_issues,
    regression_versions,
    regressions,
)
from app.web.answers.negotiate import ListReplyDep
from app.web.answers.openapi import api_router
from app.web.answers.parameters import ChosenRepo, unknown_name
from app.web.answers.schemas import none_if_blank
from app.web.deps import Services, ServicesDep
from app.web.views.render import render_repo_page

PAGE_REGRESSIONS = 30
PAGE_KNOWN = 20
VERSIONS_SHOWN = 12

router = api_router("versions")


VERSION = r"^\s*[0-9A-Za-z][0-9A-Za-z.+_!-]*\s*$"
VersionQuery = Annotated[
    str | None,
    Query(max_length=100, pattern=VERSION, description="a release such as 0.19.0, a build, or a commit"),
]
PageVersion = Annotated[str | None, Query(max_length=100), AfterValidator(none_if_blank)]
Limit = Annotated[int, Query(ge=1, le=200)]


Asked = TypeVar("Asked", str, str | None)


def known_version(services: Services, repo: str, version: Asked) -> Asked:
    """The version that is asked for.

    Raises:
        RequestValidationError: it is neither a version nor a commit; the nearest release is named.
    """
    if version is not None and not can_be_version(version):
        releases = services.cached(release_names, repo)
        raise unknown_name("version", "is no version such as 0.19.0, and no commit", version, releases)
    return version


class RegressionList(RegressionPage):
    next_cursor: str | None = None


class KnownIssueList(KnownPage):
    next_cursor: str | None = None


@router.get(
    "/api/v1/regressions",
    operation_id="list_regressions",
    summary="Regressions that touch a version, or all of them, each with its range and its words",
    response_model=RegressionList,
)
def get_regressions(
    reply: ListReplyDep,
    services: ServicesDep,
    repo: ChosenRepo,
    version: VersionQuery = None,
    limit: Limit = 50,
) -> Response:
    """List failures that were not there before, as their own issues tell it, with the range of versions.

    Without a version the newest first; with one those that began in it, then by their place. A
    `culprit_guesses` entry is a guess: nobody said so.
    """
    version = known_version(services, repo, version)
    return reply.part(
        RegressionList,
        "regressions",
        limit,
        lambda after: services.cached(regressions, repo, version, after=after, limit=limit),
    )


@router.get(
    "/api/v1/versions/{version}/known-issues",
    operation_id="list_known_issues",
    summary="What fails in a version and was open or fixed later, weighted by reports",
    response_model=KnownIssueList,
)
def get_known_issues(
    reply: ListReplyDep,
    services: ServicesDep,
    repo: ChosenRepo,
    version: Annotated[str, Path(max_length=100, pattern=VERSION)],
    closed: Annotated[bool, Query(description="also those closed without a known fix")] = False,
    limit: Limit = 50,
) -> Response:
    """List what to know before running a version: its known failures, how each stands, and what helps.

    Those reported to fail in the version come first, then those that fail since an earlier one, each part
    by the number of reports. An empty list is no proof that nothing fails.
    """
    version = known_version(services, repo, version)
    return reply.part(
        KnownIssueList,
        "known-issues",
        limit,
        lambda after: services.cached(
            known_issues,
            repo,
            known_version(services, repo, version),
            closed=closed,
            after=after,
            limit=limit,
        ),
    )


@router.get("/regressions", include_in_schema=False)
def regressions_page(
    services: ServicesDep,
    repo: ChosenRepo,
    version: PageVersion = None,
    closed: Annotated[str, Query(max_length=5)] = "",
) -> HTMLResponse:
    """Regressions and known issues of a version; without one the newest, and versions to choose from."""
    page = services.cached(regressions, repo, version, limit=PAGE_REGRESSIONS)
    known = None
    if version:
        known = services.cached(known_issues, repo, version, closed=bool(closed), limit=PAGE_KNOWN)
    counts = () if version else services.cached(regression_versions, repo)
    return render_repo_page(
        "regressions.html",
        services,
        repo,
        path="/regressions",
        query={"version": version},
        version=page.version,
        page=page,
        known=known,
        closed=bool(closed),
        began=sum(item.place == "began" for item in page.items),
        releases=[count for count in counts if _is_release(count.version)][:VERSIONS_SHOWN],
        builds=[count for count in counts if not _is_release(count.version)][:VERSIONS_SHOWN],
    )


def _is_release(text: str) -> bool:
    version = ordered(text)
    return version is not None and not version.is_prerelease
