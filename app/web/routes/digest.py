"""The digest of a week as a page, a mail, Markdown and JSON; the list of all weeks; the Atom feed (RFC 4287).

An entry's id in the feed is a `tag:` URI (RFC 4151) of the repository and the entry's key, so that it stays
the same under another host name and after the data was loaded anew.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app import __version__
from app.knowledge.digest.digest import archive, digest_markdown, make_digest
from app.knowledge.digest.feed import FeedEntry, feed_entries
from app.knowledge.digest.shapes import Digest
from app.knowledge.digest.week import newest_whole_week
from app.knowledge.iso_week import WEEK_PATTERN, IsoWeek
from app.web.answers.negotiate import VARY, MaxChars, answer, markdown_answer, wants_markdown
from app.web.answers.openapi import markdown_too, problems
from app.web.answers.parameters import RepoQuery
from app.web.deps import Services, ServicesDep
from app.web.views.render import base_address, render_page, render_text, repo_switch, with_repo

ATOM_TYPE = "application/atom+xml"
NO_DATA = datetime(1970, 1, 1, tzinfo=UTC)
"""The time of a feed without entries, which must have one."""
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to write."""

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
    """The digest of a week: new failures by cluster, what grows, regressions, fixes, remedies, what to do.

    `advice` is what to act on, at most five lines. Every number is counted from stored issues by the day they
    were opened; `data` says whether the week is stored to its end and how many dates are estimates. The same
    week and data give the same answer. With `Accept: text/markdown` it is Markdown.
    """
    digest = _digest(services, week, repo)
    return answer(request, digest, max_chars, markdown=lambda: digest_markdown(digest))


@router.api_route("/digest", methods=_READ, include_in_schema=False)
def newest(services: ServicesDep, repo: RepoQuery = None) -> Response:
    """To the newest week that is stored to its end; to the list of weeks where none is."""
    where = repo or services.default_repo
    week = services.cached(newest_whole_week, where)
    return RedirectResponse(
        with_repo(services.settings, f"/digest/{week or 'archive'}", where), status_code=302
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
    """The digest as it can be sent by mail: no style sheet, no script, no picture, nothing to load."""
    return render_page("digest_email.html", digest=_digest(services, week, repo))


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
    )


def _digest(services: Services, week: str, repo: str | None) -> Digest:
    return services.cached(make_digest, repo or services.default_repo, IsoWeek.parse(week))


@router.api_route("/feed.atom", methods=_READ, include_in_schema=False)
def feed(request: Request, services: ServicesDep) -> Response:
    """The newest weeks, failures and fixes of the default repository."""
    repo = services.default_repo
    entries = services.cached(feed_entries, repo)
    return Response(atom(entries, repo, base_address(request)), media_type=ATOM_TYPE)


def atom(entries: Sequence[FeedEntry], repo: str, base: str) -> bytes:
    """The feed's document; titles and summaries are plain text, of which nothing is markup.

    Args:
        entries: the newest first.
        base: the public address of this server, with a slash at the end.
    """
    updated = max((entry.updated for entry in entries), default=NO_DATA)
    text = render_text(
        "feed.xml", entries=entries, repo=repo, base=base, updated=updated, tag=tag, version=__version__
    )
    return _NOT_XML.sub("", text).encode()


def tag(repo: str, key: str) -> str:
    """The id of an entry, whatever address serves it."""
    return f"tag:vllm-triage,2026:{quote(repo, safe='/')}/{quote(key, safe='/')}"
