"""The OpenAPI description: FastAPI's output, completed with what all JSON routes have in common.

A route declares its schemas, tag, operation id and own problems. Rate limits, conditional requests, budgets
and examples are added here.

The texts are in `examples/`: `about.md`, `common.json` (parts shared by several routes), and the examples:
`parameters.json` (a value for each parameter but `cursor`, whose values expire), `requests.json` (bodies by
operation id), `answers/<Schema>.json` (an object of that schema) and `log.txt`.
"""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Depends, FastAPI

from app.web.answers.parameters import check_query
from app.web.answers.problems import PROBLEM_TYPE, PROBLEMS
from app.web.answers.schemas import DiagnoseBatch, DiagnoseRequest, Problem

Object = dict[str, Any]

JSON = "application/json"
MARKDOWN = "text/markdown"
TEXT = "text/plain"
_FOLDER = Path(__file__).parent / "examples"

EXAMPLE_LOG = (_FOLDER / "log.txt").read_text(encoding="utf-8")
"""The log of "Try an example", modelled on vllm-project/vllm#39288."""
_TEXT_START = "# CUDA graph capture fails, Likely #39288\n"
"""How an answer in Markdown or plain text begins."""


def api_router(tag: str, dependencies: Sequence[Any] = (), **options: Any) -> APIRouter:
    """Return a router for a subject, with parameter checks and the problems 422 and 503 for all routes."""
    checks = [*dependencies, Depends(check_query)]
    return APIRouter(tags=[tag], responses=problems(422, 503), dependencies=checks, **options)


def problems(*statuses: int) -> dict[int | str, Object]:
    """Return the `responses` of a route that may fail with these statuses."""
    return {status: _problem(status) for status in statuses}


def markdown_too(*more: str) -> dict[int | str, Object]:
    """Return the `responses` of a route that also answers as Markdown and in the media types `more`."""
    media = {"schema": {"type": "string"}, "examples": {"start": {"value": _TEXT_START}}}
    return {200: {"content": dict.fromkeys((MARKDOWN, *more), media)}}


def json_body(schema: Object) -> Object:
    """Return the `openapi_extra` of a route that parses its JSON body itself."""
    return {"requestBody": {"required": True, "content": {JSON: {"schema": schema}}}}


def diagnose_body() -> Object:
    """Return the request body of the diagnosis, as JSON and as plain text."""
    content = {
        JSON: {"schema": _ref("DiagnoseRequest")},
        "text/plain": {"schema": DiagnoseRequest.model_json_schema()["properties"]["log"]},
    }
    return {"requestBody": {"required": True, "content": content}}


class DescribedApp(FastAPI):
    """FastAPI application with a completed OpenAPI description, generated once at its first request."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            description=(_FOLDER / "about.md").read_text(encoding="utf-8"),
            openapi_tags=_read("common")["tags"],
            license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
            **options,
        )

    def openapi(self) -> Object:
        """Return the completed OpenAPI description."""
        if self.openapi_schema is None:
            self.openapi_schema = _finished(super().openapi())
        return self.openapi_schema


def _read(name: str) -> Any:
    return json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def _finished(schema: Object) -> Object:
    """Add to the description what all JSON routes have in common, and examples."""
    common, components = _read("common"), schema["components"]
    for model in (Problem, DiagnoseRequest, DiagnoseBatch):
        own = model.model_json_schema(ref_template="#/components/schemas/{model}")
        components["schemas"].update(own.pop("$defs", {}))
        components["schemas"][model.__name__] = own
    components["schemas"]["ShortAnswer"] = common["ShortAnswer"]
    components.setdefault("securitySchemes", {})["api-key"] = common["api_key"]
    parameters, bodies = _read("parameters"), request_examples()
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            answers = operation["responses"]
            operation["description"] = operation["description"].partition("\n\nRaises:")[0]
            if path.startswith("/api/"):
                operation.setdefault("security", [{}, {"api-key": []}])
                answers["429"] = _problem(429) | {"headers": common["rate_headers"]}
            if path.startswith("/api/") and method == "get":
                answers["200"].setdefault("headers", {})["ETag"] = common["etag"]
                answers["304"] = common["unchanged"]
            for parameter in operation.get("parameters", ()):
                _add_value(parameter, parameters.get(parameter["name"].lower()))
                if parameter["schema"].get("deprecated"):  # client generators look for it here
                    parameter["deprecated"] = True
            for media_type, media in operation.get("requestBody", {}).get("content", {}).items():
                media["examples"] = {"request": {"value": bodies[operation["operationId"]][media_type]}}
            may_be_short = any(item["name"] == "max_chars" for item in operation.get("parameters", ()))
            for answer in answers.values():
                if JSON in answer.get("content", {}):
                    _add_answer(answer["content"][JSON], may_be_short=may_be_short)
    return schema


def _add_value(parameter: Object, value: Any) -> None:
    choices = parameter["schema"].get("enum")
    value = choices[0] if choices and value not in choices else value
    if value is not None and parameter.get("required"):
        parameter.setdefault("example", value)
    elif value is not None:  # in the schema, so that Swagger UI does not prefill every filter
        parameter["schema"].setdefault("examples", [value])


def _add_answer(media: Object, *, may_be_short: bool) -> None:
    """Add an example to a JSON response; for a route with `max_chars`, also the schema of a shortened one."""
    names = [part["$ref"].rpartition("/")[2] for part in media["schema"].get("anyOf", [media["schema"]])]
    name = next(name for name in reversed(names) if name in answer_examples())
    media["examples"] = {"whole": {"value": answer_examples()[name]}}
    if may_be_short:
        media["schema"] = {"anyOf": [_ref(each) for each in (*names, "ShortAnswer")]}


def request_examples() -> dict[str, dict[str, Any]]:
    """Return the example bodies by operation id and media type."""
    bodies = _read("requests")
    found = {name: {JSON: body} for name, body in bodies.items()}
    with_log = {"log": EXAMPLE_LOG, **bodies["diagnose"]}
    return {**found, "diagnose": {JSON: with_log, "text/plain": EXAMPLE_LOG}}


@cache
def answer_examples() -> dict[str, Any]:
    paths = sorted((_FOLDER / "answers").glob("*.json"))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}


def _problem(status: int) -> Object:
    meaning = PROBLEMS[str(status)]["meaning"]
    detail = PROBLEMS[str(status)]["example"]
    example = {"type": "about:blank", "title": meaning, "status": status, "detail": detail}
    media = {"schema": _ref("Problem"), "examples": {"problem": {"value": example}}}
    return {"description": meaning, "content": {PROBLEM_TYPE: media}}


def _ref(name: str) -> Object:
    return {"$ref": f"#/components/schemas/{name}"}
