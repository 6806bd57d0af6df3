"""The first page with its paste box, and the answer to a pasted log. Both are complete without scripts."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from app.knowledge.diagnosis.excerpts import excerpt, side_by_side
from app.knowledge.diagnosis.issue_draft import new_issue_address
from app.knowledge.diagnosis.kept_logs import count_lines
from app.knowledge.diagnosis.markdown import diagnosis_markdown
from app.knowledge.home import home as load_home
from app.web.answers.openapi_examples import EXAMPLE_LOG
from app.web.answers.schemas import DiagnoseRequest
from app.web.body import RawBody, parse_body, read_form
from app.web.deps import ServicesDep
from app.web.routes.diagnose import ask, keep_answer, validate_request
from app.web.views.links import base_address
from app.web.views.render import render_page
from app.web.views.version_line import match_stations

router = APIRouter(include_in_schema=False)

_READ = ["GET", "HEAD"]


@router.api_route("/", methods=_READ)
def home(
    request: Request,
    services: ServicesDep,
    example: Annotated[str, Query(max_length=10)] = "",
) -> HTMLResponse:
    """The paste box, and below it what is new. `?example=1` fills the box with a log of ours."""
    return render_page(
        "index.html",
        log=EXAMPLE_LOG if example == "1" else "",
        home=services.cached(load_home, services.default_repo),
        overview=services.overview(services.default_repo),
        repo=services.default_repo,
        keep_days=services.settings.keep_days,
        curl=curl_command(request, None),
    )


@router.api_route("/diagnose", methods=_READ)
def diagnose_form() -> RedirectResponse:
    """The answer to a pasted log has no address: back to the box."""
    return RedirectResponse("/", status_code=303)


@router.post("/diagnose")
def diagnose_page(
    request: Request,
    body: Annotated[RawBody, Depends(read_form)],
    services: ServicesDep,
) -> HTMLResponse:
    """The diagnosis of a pasted or uploaded log."""
    fields = {name: value for name, value in parse_body(body).items() if name in DiagnoseRequest.model_fields}
    asked = validate_request(fields, strict=False)
    diagnosis = ask(asked, services)
    best = diagnosis.matches[0] if diagnosis.matches else None
    lines = excerpt(asked.log, diagnosis)
    yours = asked.vllm_version or diagnosis.environment.versions.get("vllm")
    overview = services.overview(services.default_repo)
    return render_page(
        "diagnosis.html",
        headers={"Cache-Control": "no-store"},
        diagnosis=diagnosis,
        best=best,
        yours=yours,
        excerpt=lines,
        sides=side_by_side(lines, best),
        report_address=new_issue_address(services.default_repo, diagnosis),
        line_count=count_lines(asked.log),
        stations=match_stations(best, services.default_repo, yours, overview.newest_release),
        markdown=diagnosis_markdown(diagnosis),
        curl=curl_command(request, asked.vllm_version),
        kept=None,
        links=keep_answer(services, asked, diagnosis) if asked.keep else None,
        overview=overview,
        repo=services.default_repo,
    )


def curl_command(request: Request, vllm_version: str | None) -> str:
    """The same question for a shell; the host is repeated only where it is a plain one."""
    query = "?" + urlencode({"vllm_version": vllm_version}) if vllm_version else ""
    address = f"{base_address(request)}api/v1/diagnose{query}"
    return f"curl --data-binary @crash.log -H 'Content-Type: text/plain' '{address}'"
