"""The digest of a week: as a page, as a mail, as Markdown and as JSON; and the list of all weeks."""

from __future__ import annotations

from functools import partial
from itertools import groupby
from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.knowledge.cluster.growth import newest_whole_week
from app.knowledge.digest.digest import archive, make_digest
from app.knowledge.digest.shapes import AreaCount, Digest
from app.knowledge.digest.tables import (
    cluster_words,
    condition_words,
    digest_markdown,
    digest_parts,
    field_words,
    fixed_words,
    growth_words,
    kind_words,
    mean_words,
    notes,
    unremedied_words,
    value_words,
)
from app.knowledge.iso_week import WEEK_PATTERN, IsoWeek
from app.web.answers.budget_rules import DIGEST
from app.web.answers.negotiate import VARY, MaxChars, answer, markdown_answer, wants_markdown
from app.web.answers.openapi import markdown_too, problems
from app.web.deps import Services, ServicesDep
from app.web.routes.versions import RepoQuery
from app.web.views.links import repo_switch, with_repo
from app.web.views.pictures import columns, levels
from app.web.views.render import render_page, render_text

router = APIRouter(tags=["digest"])

_READ = ["GET", "HEAD"]
PageWeek = Annotated[str, Path(max_length=20)]
WeekPath = Annotated[str, Path(pattern=WEEK_PATTERN, description="an ISO week in UTC, such as 2026-W46")]


@router.get(
    "/api/v1/digest/{week}",
    operation_id="get_digest",
    summary="What broke, what got fixed and what to do in a week",
    response_model=Digest,
    responses=problems(404, 422, 503) | markdown_too(),
)
def get_digest(
    request: Request,
    services: ServicesDep,
    week: WeekPath,
    repo: RepoQuery = None,
    max_chars: MaxChars = None,
) -> Response:
    """Tell a week: new failures by cluster, what grows, regressions, fixes, remedies, and what to do.

    `advice` is what to act on, at most five lines. Every number is counted from stored issues by the day they
    were opened; `data` says whether the week is stored to its end and how many dates are estimates. The same
    week and data give the same answer. With `Accept: text/markdown` it is Markdown.
    """
    digest = services.cached(make_digest, repo or services.default_repo, IsoWeek.parse(week))
    return answer(request, digest, DIGEST, max_chars, markdown=lambda: digest_markdown(digest))


@router.api_route("/digest", methods=_READ, include_in_schema=False)
def newest(services: ServicesDep, repo: RepoQuery = None) -> Response:
    """To the newest week that is stored to its end; to the list of weeks where none is."""
    where = repo or services.default_repo
    page = services.cached(newest_whole_week, where)
    return RedirectResponse(
        with_repo(services.settings, f"/digest/{page or 'archive'}", where), status_code=302
    )


@router.api_route("/digest/archive", methods=_READ, include_in_schema=False)
def archive_page(services: ServicesDep, repo: RepoQuery = None) -> HTMLResponse:
    """All weeks with issues, by year."""
    where = repo or services.default_repo
    page = services.cached(archive, where)
    years = [(year, list(weeks)) for year, weeks in groupby(page.weeks, key=lambda one: one.week[:4])]
    return render_page(
        "digest_archive.html",
        page=page,
        years=years,
        at=partial(with_repo, services.settings, repo=where),
        repos=repo_switch(services.settings, "/digest/archive", where),
        repo=where,
        overview=services.overview(where),
    )


@router.api_route("/digest/{week}.md", methods=_READ, include_in_schema=False)
def markdown_page(services: ServicesDep, week: PageWeek, repo: RepoQuery = None) -> Response:
    """The digest as Markdown."""
    return markdown_answer(digest_markdown(_digest(services, week, repo)), None)


@router.api_route("/digest/{week}/email", methods=_READ, include_in_schema=False)
def email_page(services: ServicesDep, week: PageWeek, repo: RepoQuery = None) -> HTMLResponse:
    """The digest as it can be sent by mail: tables only, nothing to load."""
    return HTMLResponse(digest_email(_digest(services, week, repo)))


@router.api_route("/digest/{week}", methods=_READ, include_in_schema=False)
def digest_page(request: Request, services: ServicesDep, week: PageWeek, repo: RepoQuery = None) -> Response:
    """The digest of a week. With `Accept: text/markdown` it is Markdown."""
    digest = _digest(services, week, repo)
    if wants_markdown(request.headers.get("accept", "")):
        return markdown_answer(digest_markdown(digest), None)
    return render_page(
        "digest.html",
        headers=VARY,
        digest=digest,
        default_repo=services.default_repo,
        repos=repo_switch(services.settings, f"/digest/{digest.week}", digest.repo),
        at=partial(with_repo, services.settings, repo=digest.repo),
        notes=notes(digest),
        growth=growth_words(digest),
        clusters=cluster_words(digest),
        fixed=fixed_words(digest),
        unremedied=unremedied_words(digest),
        conditions=condition_words,
        weeks=columns("Failures a week", [(one.week[5:], one.failures) for one in digest.weeks]),
        kinds=levels("Failures by kind", [(kind_words(one.value), one.reports) for one in digest.kinds]),
        hardware=levels("Hardware named", [(one.value, one.reports) for one in digest.hardware]),
        areas=area_rows(digest.areas),
    )


def _digest(services: Services, week: str, repo: str | None) -> Digest:
    return services.cached(make_digest, repo or services.default_repo, IsoWeek.parse(week))


def area_rows(areas: tuple[AreaCount, ...]) -> list[tuple[str, list[dict[str, str | int]]]]:
    """The areas by fact, in the words of the page; kinds and hardware stand in the charts."""
    shown = [area for area in areas if area.field.startswith("backends.")]
    return [
        (
            field_words(field),
            [{"name": value_words(one), "reports": one.reports, "mean": mean_words(one)} for one in group],
        )
        for field, group in groupby(shown, key=lambda area: area.field)
    ]


def digest_email(digest: Digest) -> str:
    """The digest as HTML for a mail: it needs no style sheet, no script, no picture and no server of ours."""
    return render_text("digest_email.html", digest=digest, notes=notes(digest), parts=digest_parts(digest))
