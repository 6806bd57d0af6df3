"""The description of the JSON routes: what FastAPI makes, with problem+json as the one error shape."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from app import __version__
from app.web.problems import PROBLEM_TYPE
from app.web.schemas import DiagnoseRequest, Problem

_MEANING = {
    400: "The body or the address does not follow its own format.",
    401: "The signature or the admin token is missing, or is not the right one.",
    403: "The operator has not set what this needs.",
    404: "Nothing is stored under that name.",
    413: "The body is over the limit: 10 MiB of UTF-8 for a log, 25 MiB for a delivery.",
    415: "Another content type than the documented ones, or not text.",
    422: "A field is missing, empty or out of range.",
    503: "The database cannot be used just now.",
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that may fail with these statuses."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {"description": _MEANING[status], "content": {PROBLEM_TYPE: {"schema": schema}}}
        for status in statuses
    }


def diagnose_body() -> dict[str, Any]:
    """The request body of the diagnosis, in both its forms."""
    properties = DiagnoseRequest.model_json_schema()["properties"]
    return {
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/DiagnoseRequest"}},
                "text/plain": {"schema": properties["log"]},
            },
        }
    }


def install(app: FastAPI) -> None:
    """Give the application its description; made once, at the first request for it."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(
                title=app.title, version=__version__, description=app.description, routes=app.routes
            )
            schemas = schema.setdefault("components", {}).setdefault("schemas", {})
            for model in (Problem, DiagnoseRequest):
                own = model.model_json_schema(ref_template="#/components/schemas/{model}")
                schemas.update(own.pop("$defs", {}))
                schemas[model.__name__] = own
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
