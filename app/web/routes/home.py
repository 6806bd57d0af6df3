"""The first page with its paste box."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from app.knowledge.home import home as load_home
from app.web.answers.openapi import EXAMPLE_LOG
from app.web.deps import Services, ServicesDep
from app.web.views.render import base_address, render_repo_page

router = APIRouter(include_in_schema=False)


@router.get("/")
def home(
    request: Request,
    services: ServicesDep,
    example: Annotated[str, Query(max_length=10)] = "",
) -> HTMLResponse:
    """The paste box, and below it what is new. `?example=1` fills the box with a log of ours."""
    return first_page(request, services, log=EXAMPLE_LOG if example == "1" else "")


def first_page(
    request: Request,
    services: Services,
    *,
    log: str = "",
    version: str = "",
    fault: str = "",
    status: int = 200,
) -> HTMLResponse:
    """The first page; with a `fault` of what was sent, and that in its fields again."""
    return render_repo_page(
        "index.html",
        services,
        services.default_repo,
        status=status,
        headers={"Cache-Control": "no-store"} if fault else None,
        log=log,
        version=version,
        fault=fault,
        home=services.cached(load_home, services.default_repo),
        keep_days=services.settings.keep_days,
        has_log_reader=services.read_log is not None,
        curl=curl_command(request, None),
    )


def curl_command(request: Request, vllm_version: str | None) -> str:
    """The same question for a shell; the host is repeated only where it is a plain one."""
    query = "?" + urlencode({"vllm_version": vllm_version}) if vllm_version else ""
    address = f"{base_address(request)}api/v1/diagnose{query}"
    return f"curl --data-binary @crash.log -H 'Content-Type: text/plain' '{address}'"
