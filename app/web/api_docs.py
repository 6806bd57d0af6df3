"""`/docs`: the API description as a page to try it from. Swagger UI, its files served by us.

The package `fastapi-offline` ships the files of Swagger UI; only they are used. Nothing is loaded from
elsewhere, and the page has a start script of its own, so that its policy needs no inline script or style.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from fastapi import APIRouter
from fastapi.responses import FileResponse, HTMLResponse

from app.errors import ConfigError
from app.web.headers import SECURITY_HEADERS
from app.web.render import render_page

router = APIRouter(include_in_schema=False)

POLICY = "Content-Security-Policy"
HEADERS = {POLICY: SECURITY_HEADERS[POLICY].replace("img-src 'self'", "img-src 'self' data:")}
"""Its style sheet holds its icons as data addresses."""
_TYPES = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript"}
_AGE = {"Cache-Control": "public, max-age=86400"}

Asset = Literal["swagger-ui.css", "swagger-ui-bundle.js"]


@lru_cache(maxsize=1)
def assets_dir() -> Path:
    """The folder of Swagger UI's files.

    Raises:
        ConfigError: the package that ships them is not installed.
    """
    found = find_spec("fastapi_offline")
    if found is None or not found.submodule_search_locations:
        raise ConfigError("fastapi-offline is not installed: it ships the files of /docs")
    return Path(found.submodule_search_locations[0]) / "static"


@router.api_route("/docs", methods=["GET", "HEAD"])
def docs() -> HTMLResponse:
    """The page."""
    return render_page("docs.html", headers=HEADERS)


@router.api_route("/docs/{name}", methods=["GET", "HEAD"])
def asset(name: Asset) -> FileResponse:
    """A file of Swagger UI."""
    return FileResponse(assets_dir() / name, media_type=_TYPES[name], headers=_AGE)
