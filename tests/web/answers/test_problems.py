"""Every failure has one shape on JSON routes, a page on the others, and tells nothing it should not."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from app.errors import SchemaError
from app.web.headers import SECURITY_HEADERS
from app.web.middleware.origins import OWN_REFERRER
from tests.rows import over_rows
from tests.web.conftest import Room

LOG = {"log": "RuntimeError: it broke"}


@over_rows(
    ("method", "path", "status"),
    [
        ("GET", "/api/v1/nothing", 404),
        ("GET", "/api/v1/diagnose", 405),
        ("DELETE", "/api/v1/issues/1", 405),
        ("POST", "/healthz", 405),
        ("PUT", "/readyz", 405),
        ("GET", "/api/v1/issues/x", 422),
        ("GET", "/api", 404),
    ],
)
def test_json_routes_fail_with_problem_json(client: TestClient, method: str, path: str, status: int) -> None:
    answer = client.request(method, path)

    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert {"type", "title", "status", "detail"} <= set(answer.json())


def test_a_body_of_another_shape_is_refused_in_words_of_the_interface(client: TestClient) -> None:
    batch = client.post("/api/v1/diagnose/batch", json={"logs": ["RuntimeError: it broke"]})
    changes = client.get("/api/v1/changes", params={"since": "yesterday"})

    assert batch.json()["detail"] == "logs.0: must be an object with the fields that /docs describes."
    assert changes.json()["detail"] == "since: has another form; /docs shows an example."


@over_rows(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/issues/x", 404),
        ("GET", "/issues/0", 404),
        ("DELETE", "/", 405),
        ("GET", "/issues/99999999999999999999", 404),
        ("GET", "/static/nothing.css", 404),
        ("GET", "/static/../main.py", 404),
        ("GET", "/r/a%20b/c/issues/1", 404),
        ("GET", "/?example=aaaaaaaaaaaaaaa", 422),
    ],
)
def test_html_routes_fail_with_a_page(client: TestClient, method: str, path: str, status: int) -> None:
    answer = client.request(method, path)

    assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert '<main id="main"' in answer.text
    assert 'href="/">Paste a log' in answer.text


@pytest.mark.parametrize("path", ["/api/v1/diagnose", "/diagnose"])
def test_an_unexpected_fault_is_500_without_a_word_of_it(client: TestClient, room: Room, path: str) -> None:
    room.failure = RuntimeError("secret /home/someone hunter2")
    answer = client.post(path, json=LOG) if path.startswith("/api") else client.post(path, data=LOG)

    assert answer.status_code == 500
    assert "hunter2" not in answer.text
    assert "Traceback" not in answer.text
    for name, value in SECURITY_HEADERS.items():
        assert answer.headers[name] == value


def test_an_old_schema_says_what_to_do(client: TestClient, room: Room) -> None:
    room.failure = SchemaError("the database's schema is older than the program: run `triage migrate`")

    assert "triage migrate" in client.post("/api/v1/diagnose", json=LOG).json()["detail"]


def test_what_was_sent_is_not_repeated(client: TestClient) -> None:
    answer = client.post("/api/v1/diagnose", json={**LOG, "limit": "<b>hunter2</b>", "<i>k</i>": 1})

    assert answer.status_code == 422
    assert "hunter2" not in answer.text
    assert answer.json()["errors"][0]["field"] == "limit"


@over_rows("path", ["/", "/issues/39288", "/api/v1/issues/39288", "/healthz", "/nothing", "/static/app.js"])
def test_every_answer_carries_the_security_headers(client: TestClient, path: str) -> None:
    answer = client.get(path)

    own = OWN_REFERRER if path == "/issues/39288" else {}  # its form must say where it comes from
    for name, value in {**SECURITY_HEADERS, **own}.items():
        assert answer.headers[name] == value
    assert "unsafe" not in answer.headers["content-security-policy"]
