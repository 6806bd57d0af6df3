"""What the API description says of every route alike: tags, limits, conditional reads, budgets, examples.

In: the description as FastAPI makes it from the routes. Out: the same object, completed in place, so that a
new route needs no more than its shapes, an operation id and the problems of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from app.web.answer_shapes import SHAPES
from app.web.budget import TRUNCATED, fit
from app.web.openapi_examples import DETAILS, PARAMETERS, REQUESTS, markdown_of, objects

Object = dict[str, Any]

JSON = "application/json"
MARKDOWN = "text/markdown"
PROBLEM = "application/problem+json"
TAGS = {
    "diagnosis": "A crash log in, what it is known as and what helps out.",
    "issues": "Stored issues: lists, facts with evidence, relations, votes and reports.",
    "signatures": "Clusters: one failure, all its reports.",
    "versions": "What fails in a version, and since when.",
    "digest": "What happened in a week.",
    "judgements": "People's word on which issues are the same failure; for the admin.",
    "service": "Whether the service is alive and how fresh its data is; and what GitHub sends it.",
}
_TAG_OF = (
    ("/api/v1/diagnose", "diagnosis"), ("/api/v1/issues", "issues"), ("/api/v1/repos", "issues"),
    ("/api/v1/signatures", "signatures"), ("/api/v1/regressions", "versions"),
    ("/api/v1/versions", "versions"), ("/api/v1/digest", "digest"), ("/api/v1/judgements", "judgements"),
)  # fmt: skip
_SHORT = "Short"
_CUT_AT_CHARS = 600
"""The budget of the shortened examples."""


def finish(schema: Object) -> None:
    """Complete a description."""
    schema["tags"] = [{"name": name, "description": text} for name, text in TAGS.items()]
    schemas: Object = schema["components"]["schemas"]
    for path, operation in _operations(schema):
        operation["tags"] = [next((tag for start, tag in _TAG_OF if path.startswith(start)), "service")]
        if path.startswith("/api/"):
            _add_limit(operation)
            _add_key(operation)
        if path.startswith("/api/") and operation["x-method"] == "get":
            _add_conditional(operation)
        del operation["x-method"]
        names = [parameter["name"] for parameter in operation.get("parameters", ())]
        if "max_chars" in names:
            _add_short_forms(operation, schemas)
        _add_examples(operation)
    schema["components"].setdefault("securitySchemes", {})["api-key"] = {
        "type": "apiKey", "in": "header", "name": "X-API-Key",
        "description": "optional: lets its holder ask more often; the operator hands keys out",
    }  # fmt: skip


def _operations(schema: Object) -> Iterator[tuple[str, Object]]:
    for path, item in schema["paths"].items():
        for method, operation in item.items():
            operation["x-method"] = method
            yield path, operation


def _add_limit(operation: Object) -> None:
    operation["responses"].setdefault(
        "429",
        {
            "description": "This client asked too often; `Retry-After` says when it may ask again.",
            "headers": {
                "Retry-After": {"description": "seconds", "schema": {"type": "integer", "minimum": 1}},
                "RateLimit": {"description": "what is left and for how long", "schema": {"type": "string"}},
            },
            "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        },
    )


def _add_key(operation: Object) -> None:
    if "security" not in operation:
        operation["security"] = [{}, {"api-key": []}]


def _add_conditional(operation: Object) -> None:
    found = operation["responses"].get("200", {})
    found.setdefault("headers", {})["ETag"] = {
        "description": "send it back as `If-None-Match`: an unchanged answer is then 304, without a body",
        "schema": {"type": "string"},
    }
    operation["responses"]["304"] = {
        "description": "The caller has this answer already: its ETag is unchanged."
    }


def _add_short_forms(operation: Object, schemas: Object) -> None:
    """With `max_chars` an answer may lack all but a few fields, and then says so."""
    media = operation["responses"]["200"]["content"][JSON]
    whole = _refs(media["schema"])
    short = []
    for name in whole:
        shape = SHAPES.get(name)
        full = schemas[name]
        schemas[f"{_SHORT}{name}"] = {
            **full,
            "title": f"{_SHORT}{name}",
            "description": f"`{name}`, shortened to fit `max_chars`: fields may be missing, lists cut.",
            "properties": {**full["properties"], TRUNCATED: _TRUNCATED_SCHEMA},
            "required": [*(shape.keeps if shape else ()), TRUNCATED],
        }
        short.append(f"{_SHORT}{name}")
    media["schema"] = {"anyOf": [_ref(name) for name in (*whole, *short)]}


_TRUNCATED_SCHEMA: Object = {
    "type": "object",
    "additionalProperties": {"type": "integer", "minimum": 1},
    "description": "what was left out, by field: entries of a list or characters of a text; "
    "`matches.excerpt` is that field of the entries of `matches`; `*` counts fields left out whole",
}


def _add_examples(operation: Object) -> None:
    for parameter in operation.get("parameters", ()):
        value = PARAMETERS.get(parameter["name"].lower())
        choices = parameter["schema"].get("enum")
        value = choices[0] if choices and value not in choices else value
        if value is None:
            continue
        if parameter.get("required"):
            parameter.setdefault("example", value)
        else:  # in its schema: a page to try a route from then does not fill in every filter at once
            parameter["schema"].setdefault("examples", [value])
    bodies = REQUESTS.get(operation["operationId"], {})
    for media_type, media in operation.get("requestBody", {}).get("content", {}).items():
        if media_type in bodies:
            media["examples"] = {"request": {"value": bodies[media_type]}}
    for status, response in operation["responses"].items():
        _add_answer(int(status), response)


def _add_answer(status: int, response: Object) -> None:
    content = response.get("content", {})
    names = _refs(content.get(JSON, {}).get("schema", {}))
    name = next((name for name in reversed(names) if name in objects()), "")
    if name:
        value = objects()[name]
        examples = {"whole": {"value": value}}
        if f"{_SHORT}{name}" in names:
            short = fit(value, SHAPES[name], _CUT_AT_CHARS) if name in SHAPES else value
            examples["shortened"] = {"summary": f"with max_chars={_CUT_AT_CHARS}", "value": short}
        content[JSON]["examples"] = examples
    if MARKDOWN in content:
        content[MARKDOWN]["examples"] = {"whole": {"value": markdown_of(name)}}
    if PROBLEM in content and status in DETAILS:
        title = response.get("description", "")
        problem = {"type": "about:blank", "title": title, "status": status, "detail": DETAILS[status]}
        content[PROBLEM]["examples"] = {"problem": {"value": problem}}


def _refs(schema: Object) -> list[str]:
    """The named shapes a schema is, or is one of."""
    parts = schema.get("anyOf", [schema])
    return [part["$ref"].rpartition("/")[2] for part in parts if "$ref" in part]


def _ref(name: str) -> Object:
    return {"$ref": f"#/components/schemas/{name}"}
