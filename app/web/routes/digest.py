"""The weekly digest as page, email, Markdown and JSON; the list of all weeks; the Atom feed (RFC 4287).

An entry's id in the feed is a `tag:` URI (RFC 4151) of the repository and the entry's key, so it does not
change with the host name or when the data is reloaded.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Annotated
from urllib.parse import quote

from fastapi import Path, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app import __version__
from app.errors import NotFoundError
from app.knowledge.digest.digest import Digest, archive, digest_mail, digest_markdown, make_digest
from app.knowledge.digest.feed import FeedEntry, feed_entries, stack_entries
from app.knowledge.digest.week import newest_whole_week
from app.knowledge.iso_week import WEEK_PATTERN, IsoWeek
from app.knowledge.stack.stack import write_stack
from app.web.answers.context import ContextDep, RepoContext, StackContextDep
from app.web.answers.negotiate import MARKDOWN_TYPE, VARY, ReplyDep, markdown_answer, wants
from app.web.answers.openapi import api_router, markdown_too, problems
from app.web.answers.parameters import StackDep
from app.web.deps import ServicesDep
from app.web.views.render import base_address, render_text

ATOM_TYPE = "application/atom+xml"
NO_DATA = datetime(1970, 1, 1, tzinfo=UTC)
"""`updated` of a feed without entries; Atom requires a time."""
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that are not allowed in XML 1.0."""

router = api_router("digest")

PageWeek = Annotated[str, Path(max_length=20)]
WeekPath = Annotated[str, Path(pattern=WEEK_PATTERN, description="ISO week in UTC, such as 2026-W46")]


@router.get(
    "/api/v1/digest",
    operation_id="get_newest_digest",
    summary="Get the digest of the newest complete week",
    response_model=Digest,
    responses=problems(404) | markdown_too(),
)
@router.get("/api/v1/digest/latest", include_in_schema=False)
def get_newest_digest(reply: ReplyDep, context: ContextDep) -> Response:
    """Return the digest of the newest week with complete data, as `/api/v1/digest/{week}` does."""
    week = context.cached(newest_whole_week)
    if week is None:
        raise NotFoundError("No week is stored to its end yet: a sync brings dated issues.")
    digest = context.cached(make_digest, week)
    return reply(digest, markdown=lambda: digest_markdown(digest))


@router.get(
    "/api/v1/digest/{week}",
    operation_id="get_digest",
    summary="Get the digest of a week",
    response_model=Digest,
    responses=problems(404) | markdown_too(),
)
def get_digest(reply: ReplyDep, context: ContextDep, week: WeekPath) -> Response:
    """Return new and growing failures, regressions, fixes and workarounds of a week, with advice.

    `advice` has at most five recommended actions. Counts are of stored issues by the day they were opened;
    `data` says whether the week is complete and how many dates are estimates. The same week and data give the
    same answer. With `Accept: text/markdown` the answer is Markdown.
    """
    digest = _digest(context, week)
    return reply(digest, markdown=lambda: digest_markdown(digest))


@router.get("/digest/latest", include_in_schema=False)
@router.get("/digest", include_in_schema=False)
def newest(context: StackContextDep) -> Response:
    """To the newest week that is stored to its end; to the list of weeks where none is."""
    week = context.cached(newest_whole_week)
    return RedirectResponse(context.address(f"/digest/{week or 'archive'}"), status_code=302)


@router.get("/digest/archive", include_in_schema=False)
def archive_page(context: ContextDep) -> HTMLResponse:
    page = context.cached(archive)
    years = [(year, list(weeks)) for year, weeks in groupby(page.weeks, key=lambda one: one.week[:4])]
    return context.render("digest_archive.html", path="/digest/archive", page=page, years=years)


@router.get("/digest/{week}.md", include_in_schema=False)
def markdown_page(context: ContextDep, week: PageWeek) -> Response:
    return markdown_answer(digest_markdown(_digest(context, week)), None)


@router.get("/digest/{week}/email", include_in_schema=False)
def email_page(context: ContextDep, week: PageWeek) -> HTMLResponse:
    """The digest as it can be sent by mail."""
    return HTMLResponse(digest_mail(_digest(context, week)))


@router.get("/digest/{week}", include_in_schema=False)
def digest_page(request: Request, context: StackContextDep, week: PageWeek) -> Response:
    """The digest of a week. With `Accept: text/markdown` it is Markdown."""
    digest = _digest(context, week)
    if wants(request.headers.get("accept", ""), MARKDOWN_TYPE):
        return markdown_answer(digest_markdown(digest), None)
    return context.render(
        "digest.html",
        path=f"/digest/{digest.week}",
        headers=VARY,
        digest=digest,
        affects=context.affects(item.number for item in digest.reports),
    )


def _digest(context: RepoContext, week: str) -> Digest:
    return context.cached(make_digest, IsoWeek.parse(week))


@router.get("/feed.atom", include_in_schema=False)
def feed(request: Request, services: ServicesDep, stack: StackDep) -> Response:
    """The newest weeks, failures and fixes of the default repository; with a stack, what affects it."""
    repo = services.default_repo
    entries = services.cached(stack_entries, repo, stack) if stack else services.cached(feed_entries, repo)
    return Response(atom(entries, repo, base_address(request), write_stack(stack)), media_type=ATOM_TYPE)


def atom(entries: Sequence[FeedEntry], repo: str, base: str, stack: str = "") -> bytes:
    """Render the feed; titles and summaries are plain text, without markup.

    Args:
        base: the public URL of this server, with a trailing slash.
    """
    updated = max((entry.updated for entry in entries), default=NO_DATA)
    text = render_text(
        "feed.xml",
        entries=entries,
        repo=repo,
        base=base,
        stack=stack,
        updated=updated,
        tag=tag,
        version=__version__,
    )
    return _NOT_XML.sub("", text).encode()


def tag(repo: str, key: str) -> str:
    """Return an entry's id, which does not depend on the host name."""
    return f"tag:vllm-triage,2026:{quote(repo, safe='/')}/{quote(key, safe='/')}"
