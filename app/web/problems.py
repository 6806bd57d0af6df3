"""An error as JSON (RFC 9457) or as a page, by the route it happened on."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import Request
from fastapi.responses import JSONResponse, Response

from app.web.render import render_page
from app.web.schemas import FieldFault, Problem

PROBLEM_TYPE = "application/problem+json"

_TITLES = {
    400: "Malformed request",
    401: "Not proved",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    413: "Too large",
    415: "Not text",
    410: "Gone",
    422: "Cannot be used",
    429: "Too many requests",
    500: "Fault in the program",
    502: "GitHub did not answer",
    503: "Not available now",
}


def is_json_route(path: str) -> bool:
    """Whether programs, not people, read what this address answers."""
    alone = {"/api", "/healthz", "/readyz", "/openapi.json"}
    return path.startswith(("/api/", "/webhooks/")) or path in alone


def answer_problem(
    request: Request,
    status: int,
    detail: str,
    *,
    kind: str = "about:blank",
    faults: list[FieldFault] | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    """The answer to a failed request; `detail` says what happened, the limit and the way out."""
    title = _TITLES.get(status) or HTTPStatus(status).phrase
    if is_json_route(request.url.path):
        problem = Problem(type=kind, title=title, status=status, detail=detail, errors=faults)
        return JSONResponse(
            problem.model_dump(exclude_none=True), status, headers=headers, media_type=PROBLEM_TYPE
        )
    return render_page("error.html", status=status, headers=headers, title=title, detail=detail)
