"""The API description is complete: a program can use every route from it alone, and its examples are true."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from app.web.answers.budget import ORDERS, dumps, fit
from app.web.answers.openapi import answer_examples
from tests.web.answers.test_budget import LONG, LONG_ISSUE, LONG_LIST, LONG_REPORT
from tests.web.conftest import Settings

STABLE = {
    "diagnose",
    "get_issue",
    "get_repo_issue",
    "list_related_issues",
    "list_repo_related_issues",
    "get_issue_report",
    "get_repo_issue_report",
    "list_regressions",
    "list_known_issues",
    "judge",
    "list_judgements",
    "undo_judgement",
    "healthz",
    "readyz",
    "take_delivery",
}


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    app = create_app(Settings(_env_file=None))  # type: ignore[call-arg]
    made: dict[str, Any] = app.openapi()
    return made


def operations(schema: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(path, method, found) for path, item in schema["paths"].items() for method, found in item.items()]


def validator(schema: dict[str, Any], part: dict[str, Any]) -> Any:
    return jsonschema_rs.Draft202012Validator({**part, "components": schema["components"]})


def test_it_is_openapi_3_1_and_names_what_all_routes_share(schema: dict[str, Any]) -> None:
    assert schema["openapi"].startswith("3.1")
    assert "never instructions" in schema["info"]["description"]
    assert {tag["name"] for tag in schema["tags"]} >= {"diagnosis", "issues", "versions", "service"}


def test_operation_ids_are_stable_and_unique(schema: dict[str, Any]) -> None:
    ids = [found["operationId"] for _, _, found in operations(schema)]

    assert len(ids) == len(set(ids))
    assert set(ids) >= STABLE


def test_every_operation_says_what_it_does_and_what_it_may_answer(schema: dict[str, Any]) -> None:
    tags = {tag["name"] for tag in schema["tags"]}
    for path, method, found in operations(schema):
        name = found["operationId"]
        assert found["summary"], name
        assert found["description"], f"{name}: its endpoint has no docstring"
        assert set(found["tags"]) <= tags, name
        if path.startswith("/api/"):
            assert {"422", "503", "429"} <= set(found["responses"]), name
        if path.startswith("/api/") and method == "get":
            assert "304" in found["responses"], name
        if "requestBody" in found:
            assert {"400", "413", "415"} <= set(found["responses"]), name


def test_every_request_and_answer_has_an_example_that_is_valid(schema: dict[str, Any]) -> None:
    for _, _, found in operations(schema):
        bodies = [("request", found["requestBody"])] if "requestBody" in found else []
        for where, part in [*bodies, *found["responses"].items()]:
            for media_type, media in part.get("content", {}).items():
                place = f"{found['operationId']} {where} {media_type}"
                values = [item["value"] for item in media.get("examples", {}).values()]
                assert values, (
                    f"{place} has no example: put one into app/web/answers/examples/answers/<Schema>.json, "
                    "a request's into requests.json"
                )
                check = validator(schema, media["schema"])
                for value in values:
                    faults = [
                        f"{list(fault.instance_path)}: {fault.message}" for fault in check.iter_errors(value)
                    ]
                    assert not faults, f"{place}: {faults}"


def test_parameters_have_examples_that_are_valid(schema: dict[str, Any]) -> None:
    for _, _, found in operations(schema):
        for parameter in found.get("parameters", ()):
            part = parameter["schema"]
            values = part.get("examples", []) + ([parameter["example"]] if "example" in parameter else [])
            assert all(validator(schema, part).is_valid(value) for value in values), parameter
            assert values or not parameter.get("required"), parameter


def test_examples_belong_to_shapes(schema: dict[str, Any]) -> None:
    assert set(answer_examples()) <= set(schema["components"]["schemas"])


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("Diagnosis", LONG),
        ("IssueDocument", LONG_ISSUE),
        ("Report", LONG_REPORT),
        ("KnownIssueList", LONG_LIST),
        *((name, answer_examples()[name]) for name in ORDERS if name in answer_examples()),
    ],
)
def test_a_shortened_answer_is_valid_at_every_budget(
    schema: dict[str, Any], name: str, whole: dict[str, Any]
) -> None:
    full = schema["components"]["schemas"][name]
    short = {**full, "required": [], "properties": {**full["properties"], "truncated": {}}}
    check = validator(schema, {"anyOf": [{"$ref": f"#/components/schemas/{name}"}, short]})
    says_so = validator(schema, {"$ref": "#/components/schemas/ShortAnswer"})
    for max_chars in [*range(200, 3000, 61), *range(3000, 20_001, 997)]:
        found = fit(whole, ORDERS[name], max_chars)
        assert len(dumps(found)) <= max_chars
        assert check.is_valid(found), (max_chars, found)
        assert found == whole or says_so.is_valid(found)


def test_it_is_served(client: TestClient) -> None:
    assert client.get("/openapi.json").json()["info"]["title"] == "vLLM Triage"
