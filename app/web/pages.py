"""The pages: a form in, HTML out. Every one is complete without scripts."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from app.errors import NotFoundError
from app.knowledge.answers import IssueAnswer
from app.knowledge.issue_draft import new_issue_address
from app.knowledge.kept_logs import count_lines
from app.knowledge.side_by_side import side_by_side
from app.web.api import Number, RepoPart, Version, ask, validate_request
from app.web.body import RawBody, parse_body, read_form
from app.web.citations import Citations
from app.web.deps import Desk, DeskDep
from app.web.example import EXAMPLE_LOG
from app.web.kept import keep_answer
from app.web.render import render_page
from app.web.schemas import DiagnoseRequest
from app.web.unknowns import unknowns
from app.web.version_line import version_line

router = APIRouter(include_in_schema=False)

_READ = ["GET", "HEAD"]
_HOST = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]{1,260}/[A-Za-z0-9._~/-]{0,200}")


@router.api_route("/", methods=_READ)
def home(
    request: Request,
    desk: DeskDep,
    example: Annotated[str, Query(max_length=10)] = "",
) -> HTMLResponse:
    """The paste box, and below it what is new. `?example=1` fills the box with a log of ours."""
    return render_page(
        "index.html",
        log=EXAMPLE_LOG if example == "1" else "",
        overview=desk.knowledge.overview(desk.store, desk.settings.default_repo),
        repo=desk.settings.default_repo,
        keep_days=desk.settings.keep_days,
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
    desk: DeskDep,
) -> HTMLResponse:
    """The diagnosis of a pasted or uploaded log."""
    fields = {name: value for name, value in parse_body(body).items() if name in DiagnoseRequest.model_fields}
    asked = validate_request(fields, strict=False)
    diagnosis = ask(asked, desk)
    best = diagnosis.matches[0] if diagnosis.matches else None
    lines = desk.knowledge.excerpt(asked.log, diagnosis)
    yours = asked.vllm_version or diagnosis.environment.versions.get("vllm")
    overview = desk.knowledge.overview(desk.store, desk.settings.default_repo)
    return render_page(
        "diagnosis.html",
        headers={"Cache-Control": "no-store"},
        diagnosis=diagnosis,
        best=best,
        yours=yours,
        excerpt=lines,
        sides=side_by_side(lines, best),
        report_address=new_issue_address(desk.settings.default_repo, diagnosis),
        line_count=count_lines(asked.log),
        stations=version_line(best.regression, yours, overview.newest_release) if best else (),
        markdown=desk.knowledge.markdown(diagnosis),
        curl=curl_command(request, asked.vllm_version),
        kept=None,
        links=keep_answer(desk, asked, diagnosis) if asked.keep else None,
        overview=overview,
        repo=desk.settings.default_repo,
    )


@router.api_route("/issues/{number}", methods=_READ)
def issue_page(
    number: Number,
    desk: DeskDep,
    vllm_version: Version = None,
) -> HTMLResponse:
    """One issue of the default repository."""
    return _issue(desk, desk.settings.default_repo, number, vllm_version)


@router.api_route("/r/{owner}/{name}/issues/{number}", methods=_READ)
def repo_issue_page(
    owner: RepoPart,
    name: RepoPart,
    number: Number,
    desk: DeskDep,
    vllm_version: Version = None,
) -> HTMLResponse:
    """One issue of any stored repository."""
    return _issue(desk, f"{owner}/{name}", number, vllm_version)


def _issue(desk: Desk, repo: str, number: int, vllm_version: str | None) -> HTMLResponse:
    yours = (vllm_version or "").strip() or None
    try:
        issue = desk.knowledge.view_issue(desk.store, repo, number, vllm_version=yours)
    except NotFoundError:
        raise NotFoundError(
            f"#{number} of {repo} is not stored. Run `triage sync`, or load it with `triage import`."
        ) from None
    overview = desk.knowledge.overview(desk.store, repo)
    facts = issue.facts
    return render_page(
        "issue.html",
        issue=issue,
        facts=facts,
        cites=Citations(issue),
        yours=yours,
        stations=version_line(facts.regression, yours, overview.newest_release) if facts else (),
        missing=unknowns(facts, issue.fix) if facts and facts.is_failure else (),
        json_address=_json_address(issue, desk.settings.default_repo),
        overview=overview,
        repo=repo,
    )


def _json_address(issue: IssueAnswer, default_repo: str) -> str:
    short = issue.repo == default_repo
    return f"/api/v1/issues/{issue.number}" if short else f"/api/v1/repos/{issue.repo}/issues/{issue.number}"


def curl_command(request: Request, vllm_version: str | None) -> str:
    """The same question for a shell; the host is repeated only where it is a plain one."""
    base = str(request.base_url)
    base = base if _HOST.fullmatch(base) else "http://localhost:8000/"
    query = "?" + urlencode({"vllm_version": vllm_version}) if vllm_version else ""
    return f"curl --data-binary @crash.log -H 'Content-Type: text/plain' '{base}api/v1/diagnose{query}'"
