"""Service routes: health, `/docs`, `/guide`, and well-known files such as `robots.txt`.

`/docs` is Swagger UI. Its files come from the package `fastapi-offline` and are served here with our own
start script, so the page loads nothing from other hosts and needs no inline script.

The Markdown pages of `app/guide/` are rendered once. They can also be read in a checkout, so they link to
each other as `chatbots.md`; here this becomes `/guide/chatbots`. Links to files that are not served become
plain text.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from fastapi import APIRouter, Depends, Request
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse
from markdown_it import MarkdownIt
from markdown_it.token import Token

from app import __version__
from app import client as client_module
from app.errors import NotFoundError
from app.knowledge.freshness import freshness, overview
from app.paths import changelog, guide_dir, static_dir
from app.store.engine.sync_lock import sync_holder
from app.store.schema import check_current
from app.web.answers.openapi import problems
from app.web.answers.parameters import check_query
from app.web.answers.problems import all_routes
from app.web.answers.schemas import Alive, ApiIndex, Ready
from app.web.deps import ServicesDep
from app.web.headers import SECURITY_HEADERS
from app.web.views.render import base_address, render_page, render_text

router = APIRouter(tags=["service"])

POLICY = "Content-Security-Policy"
HEADERS = {POLICY: SECURITY_HEADERS[POLICY].replace("img-src 'self'", "img-src 'self' data:")}
"""Swagger UI's style sheet has its icons as `data:` URLs."""
_TYPES = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript"}
_AGE = {"Cache-Control": "public, max-age=86400"}

Asset = Literal["swagger-ui.css", "swagger-ui-bundle.js"]


@router.get("/docs", include_in_schema=False)
def docs() -> HTMLResponse:
    return render_page("docs.html", headers=HEADERS)


@router.get("/docs/{name}", include_in_schema=False)
def asset(name: Asset) -> FileResponse:
    path = str(files("fastapi_offline") / "static" / name)
    return FileResponse(path, media_type=_TYPES[name], headers=_AGE)


@router.get("/healthz", operation_id="healthz", summary="Liveness check")
async def healthz() -> Alive:
    """Succeed while the process answers; the database is not checked."""
    return Alive(version=__version__)


@router.get(
    "/readyz",
    operation_id="readyz",
    summary="Readiness check with the age of the data",
    responses=problems(503),
)
def readyz(services: ServicesDep) -> Ready:
    """Succeed if the database can be read and its schema is current; report the age of the data.

    Raises:
        SchemaError: the schema is older or newer than the program.
        StoreError: the database cannot be read.
    """
    check_current(services.store)
    found = tuple(freshness(services.store, repo) for repo in services.settings.repo)
    return Ready(
        as_of=found[0].as_of,
        age_s=found[0].age_s,
        is_stale=found[0].is_stale,
        issues=overview(services.store, services.default_repo, found[0]).issues,
        is_syncing=sync_holder(services.store.engine) is not None,
        repositories=found,
    )


@router.get(
    "/api/v1",
    operation_id="index",
    summary="List all routes of the API",
    responses=problems(422, 503),
    dependencies=[Depends(check_query)],
)
def index(request: Request) -> ApiIndex:
    """List every route by operation id."""
    routes = {
        route.operation_id: f"{min(route.methods)} {route.path}"
        for route in all_routes(request.app.routes)
        if getattr(route, "operation_id", None) and route.path.startswith("/api/v1/")
    }
    return ApiIndex(version=__version__, routes=routes)


@router.get("/openapi.json", include_in_schema=False)
def description(request: Request) -> JSONResponse:
    """The API's description; made in a thread of its own, as the first time takes half a second."""
    return JSONResponse(request.app.openapi())


@router.get("/client.py", include_in_schema=False)
def client(request: Request) -> PlainTextResponse:
    """The client in one file, which asks this server."""
    text = Path(client_module.__file__).read_text(encoding="utf-8")
    text = text.replace('HOME = ""', f"HOME = {base_address(request)!r}", 1)
    return PlainTextResponse(text, media_type="text/x-python")


@router.get("/robots.txt", include_in_schema=False)
def robots() -> PlainTextResponse:
    """What a crawler may read: pages of stored data, not answers to logs or filters."""
    return PlainTextResponse((static_dir() / "robots.txt").read_text(encoding="utf-8"))


@router.get("/favicon.ico", include_in_schema=False)
def favicon() -> RedirectResponse:
    """The icon, for a page that names none, such as a digest that was made to be mailed."""
    return RedirectResponse("/static/icon.svg", status_code=301)


@router.get("/llms.txt", include_in_schema=False)
def llms(request: Request, services: ServicesDep) -> PlainTextResponse:
    """What a model should know before it asks."""
    repos = ", ".join(services.settings.repo)
    return PlainTextResponse(render_text("llms.txt", base=base_address(request), repos=repos))


_PAGE_LINK = re.compile(r"(?:app/guide/|(?:\.\./){2}(?=CHANGELOG))?([a-z-]+|CHANGELOG)\.md(#.*)?")


@dataclass(frozen=True, slots=True)
class GuidePage:
    name: str
    title: str
    html: str


@lru_cache(maxsize=1)
def guide_pages() -> dict[str, GuidePage]:
    """Return all pages by name, in the order of the contents in `index.md`."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in guide_dir().glob("*.md")}
    texts["changelog"] = changelog().read_text(encoding="utf-8")
    order = ["index", *re.findall(r"\]\(([a-z-]+)\.md\)", texts["index"]), "changelog"]
    return {name: _render(name, texts[name]) for name in order}


def _render(name: str, text: str) -> GuidePage:
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(re.sub(r"<!--.*?-->\n?", "", text, flags=re.DOTALL))
    title = next((tokens[at + 1].content for at, token in enumerate(tokens) if token.tag == "h1"), name)
    for at, token in enumerate(tokens):
        if token.type == "heading_open":  # heading anchors as on GitHub
            token.attrSet("id", re.sub(r"[^a-z0-9]+", "-", tokens[at + 1].content.lower()).strip("-"))
        if token.children:
            token.children = _with_served_links(token.children)
        if token.type == "table_open":
            token.attrSet("tabindex", "0")  # lets the keyboard scroll a wide table
    html = markdown.renderer.render(tokens, markdown.options, {}).replace("<th></th>", "<td></td>")
    return GuidePage(name, title, html)


def _with_served_links(tokens: list[Token]) -> list[Token]:
    kept: list[Token] = []
    is_dropped = False
    for token in tokens:
        if token.type == "link_open":
            target = str(token.attrGet("href"))
            page = _PAGE_LINK.fullmatch(target)
            is_dropped = page is None and not target.startswith(("/", "#", "http://", "https://"))
            if page is not None:
                token.attrSet("href", f"/guide/{page[1].lower()}{page[2] or ''}")
        if is_dropped and token.type in {"link_open", "link_close"}:
            continue
        kept.append(token)
    return kept


@router.get("/guide", include_in_schema=False)
def guide() -> HTMLResponse:
    return _show_page("index")


@router.get("/guide/{name}", include_in_schema=False, response_model=None)
def guide_page(name: str) -> HTMLResponse | RedirectResponse:
    if name == "index" or name.endswith(".md"):
        return RedirectResponse("/guide" if name.startswith("index") else f"/guide/{name[:-3]}", 301)
    return _show_page(name)


def _show_page(name: str) -> HTMLResponse:
    pages = guide_pages()
    if name not in pages:
        raise NotFoundError(f"The guide has no page {name!r}; its contents are at /guide.")
    return render_page("guide.html", page=pages[name], pages=pages.values())
