"""Exception handlers: every error becomes problem+json (RFC 9457) on JSON routes, a page on others.

Error responses never contain tracebacks, text sent by the caller, or messages of the database.
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
    """Register this module's exception handlers."""
    app.exception_handler(TriageError)(_on_triage_error)
    app.exception_handler(RequestValidationError)(_on_validation_error)
    app.exception_handler(HTTPException)(_on_http_exception)
    app.exception_handler(Exception)(_on_unexpected)


def problem_of(error: TriageError) -> Problem:
    """Convert an error of this program to the problem sent to the caller."""
    kind = _TYPE_PREFIX + re.sub(r"(?<!^)(?=[A-Z])", "-", type(error).__name__.removesuffix("Error")).lower()
    detail = error.message
    if isinstance(error, StoreError) and not isinstance(error, SchemaError):
        detail = _DETAILS[503]  # the engine's message may contain host and user names
    return Problem(type=kind, title=_title(error.status), status=error.status, detail=detail)


def _title(status: int) -> str:
    return PROBLEMS[str(status)]["title"] if str(status) in PROBLEMS else HTTPStatus(status).phrase


def _on_triage_error(request: Request, error: TriageError) -> Response:
    # Not logged: the URL, which may contain a kept log's id or secret; the request's log line has the route.
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
    if not is_json_route(request.url.path) and any(fault["loc"][0] == "path" for fault in error.errors()):
        return answer_problem(request, 404, _DETAILS[404])
    problem = field_problem(error.errors())
    return answer_problem(request, 422, problem.detail, kind=problem.type, faults=problem.errors)


def field_problem(errors: Sequence[Any]) -> Problem:
    """Return the problem that names the invalid fields of a request."""
    faults = field_faults(errors)
    detail = "; ".join(f"{fault.field}: {fault.fault}" for fault in faults[:5])
    kind = _TYPE_PREFIX + "field"
    return Problem(type=kind, title=_title(422), status=422, detail=f"{detail}.", errors=faults)


_VALUE = re.compile(r"'([^']+)'")
_PYDANTIC = re.compile(r"^(?:Input|String|List|Value) should")
"""How pydantic begins: the field's name stands before it already."""
_OBJECT = "must be an object with the fields that /docs describes"
_WORDS = {
    "model_attributes_type": _OBJECT,
    "model_type": _OBJECT,
    "string_pattern_mismatch": "has another form; /docs shows an example",
}
"""Messages by pydantic error type, where pydantic's own message is about Python or a pattern."""


def field_faults(errors: Sequence[Any]) -> list[FieldFault]:
    """Return the invalid fields with reasons, without any sent value; only known names are echoed."""
    return [
        FieldFault(
            field=".".join(str(part) for part in fault["loc"] if part not in {"body", "query", "path"}),
            fault=_WORDS.get(fault["type"])
            or f"{_PYDANTIC.sub('must', str(fault['msg']).removeprefix('Value error, '))}{_nearest(fault)}",
        )
        for fault in errors[:20]
    ]


def _nearest(fault: Mapping[str, Any]) -> str:
    """Return a suggestion of the allowed value nearest to the sent one, or an empty string."""
    if fault["type"] != "literal_error" or not isinstance(given := fault.get("input"), str):
        return ""
    near = get_close_matches(given[:200], _VALUE.findall(fault["ctx"]["expected"]), n=1)
    return f"; the nearest is {near[0]}" if near else ""


def _on_http_exception(request: Request, error: HTTPException) -> Response:
    status = error.status_code
    detail = _DETAILS.get(status) or f"{HTTPStatus(status).phrase}."
    headers = dict(error.headers or {})
    if status == HTTPStatus.METHOD_NOT_ALLOWED:  # the router lists the methods of only one route
        headers["Allow"] = ", ".join(sorted(_methods(request.app.routes, request.url.path)))
    return answer_problem(request, status, detail, headers=headers or None)


def _methods(routes: Iterable[Any], path: str) -> set[str]:
    found = {method for route in routes_at(routes, path) for method in getattr(route, "methods", None) or ()}
    return found | ({"HEAD"} if "GET" in found else set())


def routes_at(routes: Iterable[Any], path: str) -> Iterator[Any]:
    """Yield all routes that match a path, whatever their methods."""
    return (route for route in all_routes(routes) if route.path_regex.match(path))


def all_routes(routes: Iterable[Any]) -> Iterator[Any]:
    """Yield the routes of an application, including those of its routers."""
    for route in routes:
        router = getattr(route, "original_router", None)
        if router is None:
            yield route
        else:
            yield from all_routes(router.routes)


def _on_unexpected(request: Request, _error: Exception) -> Response:
    """Outermost handler: runs outside the middleware, and the server logs the exception afterwards."""
    return answer_problem(request, 500, _DETAILS[500], headers=dict(SECURITY_HEADERS))


PROBLEM_TYPE = "application/problem+json"

PROBLEMS: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
"""By status: the title, and the texts for the API description."""


def is_json_route(path: str) -> bool:
    """True if the path is a JSON route, not a page."""
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
    """Return the error response; `detail` says what happened, the limit, and what to do."""
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
    """Return the error page; `wanted` is an issue that its button fetches."""
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
