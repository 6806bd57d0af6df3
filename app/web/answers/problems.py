"""Every failure becomes one answer: problem+json (RFC 9457) on JSON routes, a page on the others.

No traceback, no text of the caller and no text of the database is in it.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from http import HTTPStatus
from pathlib import Path
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException

from app.errors import SchemaError, StoreError, TriageError
from app.web.answers.schemas import FieldFault, Problem
from app.web.deps import CHALLENGE, AdminTokenError
from app.web.headers import SECURITY_HEADERS
from app.web.views.render import render_page

_LOG = structlog.get_logger(__name__)
_TYPE_PREFIX = "urn:vllm-triage:problem:"
_RETRY_AFTER_S = "30"

_DETAILS = {
    404: "There is nothing at this address.",
    405: "This address does not take that method.",
    500: "The program failed on this request; the fault is in its log.",
    503: f"The database cannot be used just now. Try again in {_RETRY_AFTER_S} seconds.",
}


def install(app: FastAPI) -> None:
    """Let the handlers of this module answer for every exception."""
    app.exception_handler(TriageError)(_on_triage_error)
    app.exception_handler(RequestValidationError)(_on_validation_error)
    app.exception_handler(HTTPException)(_on_http_exception)
    app.exception_handler(Exception)(_on_unexpected)


def problem_of(error: TriageError) -> Problem:
    """An error of ours as it is sent to the caller."""
    kind = _TYPE_PREFIX + re.sub(r"(?<!^)(?=[A-Z])", "-", type(error).__name__.removesuffix("Error")).lower()
    detail = error.message
    if isinstance(error, StoreError) and not isinstance(error, SchemaError):
        detail = _DETAILS[503]  # the engine's own words may name hosts and users
    return Problem(type=kind, title=_title(error.status), status=error.status, detail=detail)


def _title(status: int) -> str:
    return PROBLEMS[str(status)]["title"] if str(status) in PROBLEMS else HTTPStatus(status).phrase


def _on_triage_error(request: Request, error: TriageError) -> Response:
    # An address may hold the id of a kept log, even its secret: the request's own line names the route.
    problem, headers = problem_of(error), None
    if isinstance(error, AdminTokenError):
        headers = CHALLENGE
    if error.status == 503:
        headers = {"Retry-After": _RETRY_AFTER_S}
        _LOG.error("store_unusable", reason=error.message)
    if error.status >= 500 and not isinstance(error, StoreError):
        _LOG.error("request_failed", reason=error.message)
    return answer_problem(request, error.status, problem.detail, kind=problem.type, headers=headers)


def _on_validation_error(request: Request, error: RequestValidationError) -> Response:
    faults = field_faults(error.errors())
    if not is_json_route(request.url.path) and any(fault["loc"][0] == "path" for fault in error.errors()):
        return answer_problem(request, 404, _DETAILS[404])
    detail = "; ".join(f"{fault.field}: {fault.fault}" for fault in faults[:5])
    kind = _TYPE_PREFIX + "field"
    return answer_problem(request, 422, f"{detail}.", kind=kind, faults=faults)


_VALUE = re.compile(r"'([^']+)'")
_OBJECT = "must be an object with the fields that /docs describes"
_WORDS = {
    "model_attributes_type": _OBJECT,
    "model_type": _OBJECT,
    "string_pattern_mismatch": "has another form; /docs shows an example",
}
"""Faults by their kind, where the library's own words are about Python or a pattern."""


def field_faults(errors: Sequence[Any]) -> list[FieldFault]:
    """Which fields are at fault and why, without what was sent. Only names of ours are repeated."""
    return [
        FieldFault(
            field=".".join(str(part) for part in fault["loc"] if part not in {"body", "query", "path"}),
            fault=_WORDS.get(fault["type"])
            or f"{str(fault['msg']).removeprefix('Value error, ')}{_nearest(fault)}",
        )
        for fault in errors[:20]
    ]


def _nearest(fault: Mapping[str, Any]) -> str:
    """Which of the values that a field takes is nearest to what was sent, if any is."""
    if fault["type"] != "literal_error" or not isinstance(given := fault.get("input"), str):
        return ""
    near = get_close_matches(given[:200], _VALUE.findall(fault["ctx"]["expected"]), n=1)
    return f"; the nearest is {near[0]}" if near else ""


def _on_http_exception(request: Request, error: HTTPException) -> Response:
    status = error.status_code
    detail = _DETAILS.get(status) or f"{HTTPStatus(status).phrase}."
    headers = dict(error.headers or {})
    if status == HTTPStatus.METHOD_NOT_ALLOWED:  # the router names the methods of one of its routes only
        headers["Allow"] = ", ".join(sorted(_methods(request.app.routes, request.url.path)))
    return answer_problem(request, status, detail, headers=headers or None)


def _methods(routes: Iterable[Any], path: str) -> set[str]:
    """The methods that an address takes, over all its routes."""
    found = {method for route in routes_at(routes, path) for method in getattr(route, "methods", None) or ()}
    return found | ({"HEAD"} if "GET" in found else set())


def routes_at(routes: Iterable[Any], path: str) -> Iterator[Any]:
    """All routes that an address belongs to, whatever their methods."""
    return (route for route in all_routes(routes) if route.path_regex.match(path))


def all_routes(routes: Iterable[Any]) -> Iterator[Any]:
    """The routes of an application, those of its routers too."""
    for route in routes:
        router = getattr(route, "original_router", None)
        if router is None:
            yield route
        else:
            yield from all_routes(router.routes)


def _on_unexpected(request: Request, _error: Exception) -> Response:
    """The server's outermost handler: runs outside the middleware, and the exception is logged after it."""
    return answer_problem(request, 500, _DETAILS[500], headers=dict(SECURITY_HEADERS))


PROBLEM_TYPE = "application/problem+json"

PROBLEMS: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
"""By status: a title, and what the API description says of it."""


def is_json_route(path: str) -> bool:
    """Whether programs, not people, read what this address answers."""
    alone = {"/api", "/mcp", "/healthz", "/readyz", "/openapi.json"}
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
    title = _title(status)
    if is_json_route(request.url.path):
        problem = Problem(type=kind, title=title, status=status, detail=detail, errors=faults)
        return JSONResponse(
            problem.model_dump(exclude_none=True), status, headers=headers, media_type=PROBLEM_TYPE
        )
    if request.method == "POST" and request.url.path == "/":  # from a terminal
        return PlainTextResponse(f"{title}: {detail}\n", status, headers=headers)
    return error_page(status, detail, title=title, headers=headers, hint=_kept_hint(request))


def error_page(
    status: int,
    detail: str,
    *,
    title: str = "",
    headers: dict[str, str] | None = None,
    hint: str = "",
    wanted: str = "",
) -> Response:
    """The page of a failed request; `wanted` is an issue that its button fetches."""
    return render_page(
        "error.html",
        status=status,
        headers=headers,
        title=title or _title(status),
        detail=detail,
        hint=hint,
        wanted=wanted,
    )


def _kept_hint(request: Request) -> str:
    is_form = request.method == "POST" and request.url.path == "/diagnose"
    return "Your log is not lost: go back, it is still in the box." if is_form else ""
