"""The comment on a new issue, over HTTP."""

from __future__ import annotations

import json

import pytest
from fastapi.testclient import TestClient

from tests.samples import marlin_log
from tests.web.conftest import REPO, SAME, UNKNOWN

ROUTE = "/api/v1/comment"
BODY = f"It dies.\n\n```text\n{marlin_log()}\n```"


def event(body: str = BODY, action: str = "opened") -> str:
    issue = {"number": 77, "title": "[Bug]: it dies", "body": body}
    return json.dumps({"action": action, "issue": issue, "repository": {"full_name": REPO}})


def post(client: TestClient, text: str) -> object:
    answer = client.post(ROUTE, content=text, headers={"content-type": "application/json"})
    assert answer.status_code == 200, answer.text
    return answer.json()["body"]


def test_a_known_failure_gets_a_comment(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.web.routes.diagnose.diagnose", lambda *_, **__: SAME)

    assert f"#{SAME.matches[0].number}" in str(post(client, event()))


def test_there_is_nothing_to_say_of_the_unknown_and_of_other_events(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.web.routes.diagnose.diagnose", lambda *_, **__: UNKNOWN)

    assert post(client, event()) is None
    assert post(client, event(action="closed")) is None
    assert post(client, event("Thanks for this.")) is None


@pytest.mark.parametrize("content", ["", "{}", "[]", "{", "\\ud800", "[" * 100_000])
def test_what_is_no_event_is_refused(client: TestClient, content: str) -> None:
    answer = client.post(ROUTE, content=content, headers={"content-type": "application/json"})

    assert answer.status_code in {400, 422}, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
