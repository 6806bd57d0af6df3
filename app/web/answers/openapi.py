"""The description of the JSON routes: what FastAPI makes of them, and what all of them have in common.

A route states its shapes, its tag, an operation id and its own problems. Limits, conditional reads, budgets
and examples are added here.

The examples are our own texts, in `examples/`: `parameters.json` (a value of each parameter), `requests.json`
(bodies by operation id), `answers/<Schema>.json` (an object of that schema) and `log.txt`.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi

from app import __version__
from app.extract.facts import Facts
from app.knowledge.diagnosis.markdown import diagnosis_markdown
from app.knowledge.diagnosis.shapes import Diagnosis
from app.knowledge.digest.digest import Digest, digest_markdown
from app.knowledge.issue.markdown import issue_markdown, report_markdown
from app.knowledge.issue.report import Report
from app.knowledge.issue.view import IssueAnswer
from app.web.answers.budget import ORDERS, TRUNCATED, fit
from app.web.answers.problems import PROBLEM_TYPE, PROBLEMS
from app.web.answers.schemas import DiagnoseRequest, Problem

Object = dict[str, Any]

JSON = "application/json"
MARKDOWN = "text/markdown"
TAGS = {
    "diagnosis": "A crash log in, what it is known as and what helps out.",
    "issues": "Stored issues: lists, facts with evidence, relations, votes and reports.",
    "signatures": "Clusters: one failure, all its reports.",
    "versions": "What fails in a version, and since when.",
    "digest": "What happened in a week.",
    "judgements": "People's word on which issues are the same failure; for the admin.",
    "service": "Whether the service is alive and how fresh its data is; and what GitHub sends it.",
}
_FOLDER = Path(__file__).parent / "examples"

EXAMPLE_LOG = (_FOLDER / "log.txt").read_text(encoding="utf-8")
"""The log behind "Try an example", after the failure of vllm-project/vllm#39288."""
_SHORT_CHARS = 600
"""The budget of the shortened examples."""
_SHORTENED: Object = {
    "title": "ShortAnswer",
    "type": "object",
    "description": "The answer, shortened to fit `max_chars`: fields may be missing, lists and texts cut.",
    "required": [TRUNCATED],
    "properties": {
        TRUNCATED: {
            "type": "object",
            "additionalProperties": {"type": "integer", "minimum": 1},
            "description": "what was left out, by field: entries of a list or characters of a text; "
            "`matches.excerpt` is that field of the entries of `matches`; `*` counts fields left out whole",
        }
    },
}


def api_router(tag: str, **options: Any) -> APIRouter:
    """A router of a subject; each of its JSON routes may find a parameter at fault, or no database."""
    return APIRouter(tags=[tag], responses=problems(422, 503), **options)


def problems(*statuses: int) -> dict[int | str, Object]:
    """The `responses` of a route that may fail with these statuses."""
    return {status: _problem(status) for status in statuses}


def markdown_too() -> dict[int | str, Object]:
    """The `responses` of a route that also answers as Markdown."""
    return {200: {"content": {MARKDOWN: {"schema": {"type": "string"}}}}}


def json_body(schema: Object) -> Object:
    """The `openapi_extra` of a route that reads a JSON body by itself."""
    return {"requestBody": {"required": True, "content": {JSON: {"schema": schema}}}}


def diagnose_body() -> Object:
    """The request body of the diagnosis, in both its forms."""
    content = {
        JSON: {"schema": _ref("DiagnoseRequest")},
        "text/plain": {"schema": DiagnoseRequest.model_json_schema()["properties"]["log"]},
    }
    return {"requestBody": {"required": True, "content": content}}


def install(app: FastAPI) -> None:
    """Give the application its description; made once, at the first request for it."""

    def openapi() -> Object:
        if app.openapi_schema is None:
            app.openapi_schema = _describe(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _describe(app: FastAPI) -> Object:
    schema = get_openapi(
        title=app.title,
        version=__version__,
        description=(_FOLDER / "about.md").read_text(encoding="utf-8"),
        routes=app.routes,
        tags=[{"name": name, "description": text} for name, text in TAGS.items()],
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
    )
    components = schema["components"]
    for model in (Problem, DiagnoseRequest):
        own = model.model_json_schema(ref_template="#/components/schemas/{model}")
        components["schemas"].update(own.pop("$defs", {}))
        components["schemas"][model.__name__] = own
    components["schemas"]["ShortAnswer"] = _SHORTENED
    components.setdefault("securitySchemes", {})["api-key"] = {
        "type": "apiKey",
        "in": "header",
        "name": "X-API-Key",
        "description": "optional: lets its holder ask more often; the operator hands keys out",
    }
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            if path.startswith("/api/"):
                _add_common(operation, is_read=method == "get")
            _add_examples(operation)
    return schema


def _add_common(operation: Object, *, is_read: bool) -> None:
    """What holds of all JSON routes: the rate limit and who may pass it, and conditional reads."""
    operation.setdefault("security", [{}, {"api-key": []}])
    operation["responses"]["429"] = _problem(429) | {
        "headers": {
            "Retry-After": {"description": "seconds", "schema": {"type": "integer", "minimum": 1}},
            "RateLimit": {"description": "what is left and for how long", "schema": {"type": "string"}},
        }
    }
    if is_read:
        operation["responses"]["200"].setdefault("headers", {})["ETag"] = {
            "description": "send it back as `If-None-Match`: an unchanged answer is then 304, without a body",
            "schema": {"type": "string"},
        }
        unchanged = "The caller has this answer already: its ETag is unchanged."
        operation["responses"]["304"] = {"description": unchanged}


def _add_examples(operation: Object) -> None:
    parameters = operation.get("parameters", ())
    for parameter in parameters:
        value = parameter_examples().get(parameter["name"].lower())
        choices = parameter["schema"].get("enum")
        value = choices[0] if choices and value not in choices else value
        if value is not None and parameter.get("required"):
            parameter.setdefault("example", value)
        elif value is not None:  # in its schema: a page to try a route from does not fill in every filter
            parameter["schema"].setdefault("examples", [value])
    bodies = request_examples().get(operation["operationId"], {})
    for media_type, media in operation.get("requestBody", {}).get("content", {}).items():
        media["examples"] = {"request": {"value": bodies[media_type]}}
    may_be_short = any(parameter["name"] == "max_chars" for parameter in parameters)
    for response in operation["responses"].values():
        content = response.get("content", {})
        if JSON in content:
            _add_answer(content, may_be_short=may_be_short)


def _add_answer(content: Object, *, may_be_short: bool) -> None:
    """The examples of an answer; with `max_chars` it may lack all but a few fields, and then says so."""
    media = content[JSON]
    names = [part["$ref"].rpartition("/")[2] for part in media["schema"].get("anyOf", [media["schema"]])]
    name = next(name for name in reversed(names) if name in answer_examples())
    value = answer_examples()[name]
    media["examples"] = {"whole": {"value": value}}
    if may_be_short:
        media["schema"] = {"anyOf": [_ref(each) for each in (*names, "ShortAnswer")]}
        media["examples"]["shortened"] = {
            "summary": f"with max_chars={_SHORT_CHARS}",
            "value": fit(value, ORDERS[name], _SHORT_CHARS),
        }
    if MARKDOWN in content:
        content[MARKDOWN]["examples"] = {"whole": {"value": markdown_example(name)}}


@cache
def parameter_examples() -> dict[str, Any]:
    """A value of each parameter, by its name in lower case; `cursor` has none that stays true."""
    found: dict[str, Any] = json.loads((_FOLDER / "parameters.json").read_text(encoding="utf-8"))
    return found


@cache
def request_examples() -> dict[str, dict[str, Any]]:
    """Bodies by operation id and media type."""
    bodies = json.loads((_FOLDER / "requests.json").read_text(encoding="utf-8"))
    found = {name: {"application/json": body} for name, body in bodies.items()}
    with_log = {"log": EXAMPLE_LOG, **bodies["diagnose"]}
    return {**found, "diagnose": {"application/json": with_log, "text/plain": EXAMPLE_LOG}}


@cache
def answer_examples() -> dict[str, Any]:
    """The example of each schema that has one, by the schema's name."""
    paths = sorted((_FOLDER / "answers").glob("*.json"))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}


def markdown_example(schema: str) -> str:
    """The Markdown twin of a schema's example."""
    example = answer_examples()[schema]
    if schema == "Diagnosis":
        return diagnosis_markdown(Diagnosis.model_validate(example))
    if schema == "Digest":
        return digest_markdown(Digest.model_validate(example))
    if schema == "Report":
        return report_markdown(Report.model_validate(example))
    facts = {name: example[name] for name in Facts.model_fields} | {"fix": None}
    issue = {name: example[name] for name in IssueAnswer.model_fields if name in example}
    return issue_markdown(IssueAnswer.model_validate({**issue, "facts": facts}))


def _problem(status: int) -> Object:
    meaning = PROBLEMS[str(status)]["meaning"]
    detail = PROBLEMS[str(status)]["example"]
    example = {"type": "about:blank", "title": meaning, "status": status, "detail": detail}
    media = {"schema": _ref("Problem"), "examples": {"problem": {"value": example}}}
    return {"description": meaning, "content": {PROBLEM_TYPE: media}}


def _ref(name: str) -> Object:
    return {"$ref": f"#/components/schemas/{name}"}
