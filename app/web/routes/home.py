"""The first page with its paste box."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from app.knowledge.home import home as load_home
from app.web.answers.openapi import EXAMPLE_LOG
from app.web.deps import ServicesDep
from app.web.routes.diagnose import curl_command
from app.web.views.render import render_repo_page

router = APIRouter(include_in_schema=False)


@router.get("/")
def home(
    request: Request,
    services: ServicesDep,
    example: Annotated[str, Query(max_length=10)] = "",
) -> HTMLResponse:
    """The paste box, and below it what is new. `?example=1` fills the box with a log of ours."""
    return render_repo_page(
        "index.html",
        services,
        services.default_repo,
        log=EXAMPLE_LOG if example == "1" else "",
        home=services.cached(load_home, services.default_repo),
        keep_days=services.settings.keep_days,
        curl=curl_command(request, None),
    )
