"""What watches and explains the service: health, `/docs`, `/robots.txt`, `/llms.txt`, `/favicon.ico`.

`/docs` is Swagger UI; its files come from the package `fastapi-offline` and are served here, with a start
script of our own, so that nothing is loaded from elsewhere and the page needs no inline script.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Literal

from fastapi import APIRouter, Depends, Request
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse

from app import __version__
from app import client as client_module
from app.knowledge.freshness import freshness, overview
from app.paths import static_dir
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
"""Its style sheet holds its icons as data addresses."""
_TYPES = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript"}
_AGE = {"Cache-Control": "public, max-age=86400"}

Asset = Literal["swagger-ui.css", "swagger-ui-bundle.js"]


@router.get("/docs", include_in_schema=False)
def docs() -> HTMLResponse:
    """The page."""
    return render_page("docs.html", headers=HEADERS)


@router.get("/docs/{name}", include_in_schema=False)
def asset(name: Asset) -> FileResponse:
    """A file of Swagger UI."""
    path = str(files("fastapi_offline") / "static" / name)
    return FileResponse(path, media_type=_TYPES[name], headers=_AGE)


@router.get("/healthz", operation_id="healthz", summary="The process answers")
async def healthz() -> Alive:
    """Alive; looks at nothing else, and waits for no thread."""
    return Alive(version=__version__)


@router.get(
    "/readyz",
    operation_id="readyz",
    summary="The database answers, its schema is current, and how fresh it is",
    responses=problems(503),
)
def readyz(services: ServicesDep) -> Ready:
    """Ready to answer.

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
    summary="All routes of the API",
    responses=problems(422, 503),
    dependencies=[Depends(check_query)],
)
def index(request: Request) -> ApiIndex:
    """Where everything is, for whoever has nothing but the address."""
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
