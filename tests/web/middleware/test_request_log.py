"""What a request leaves in the program's log: an id and a route, never what the caller sent."""

from __future__ import annotations

import structlog
from fastapi.testclient import TestClient


def test_an_answer_carries_the_id_under_which_it_is_logged(client: TestClient) -> None:
    with structlog.testing.capture_logs() as lines:
        answer = client.get(
            "/issues/39288?vllm_version=hf_secretsecret", headers={"X-Request-ID": "edge-7.a"}
        )
    assert answer.headers["x-request-id"] == "edge-7.a"
    line = next(line for line in lines if line["event"] == "request")
    assert (line["route"], line["method"], line["status"]) == ("/issues/{number}", "GET", answer.status_code)
    assert "hf_secret" not in str(lines)


def test_an_id_that_is_no_plain_word_is_replaced(client: TestClient) -> None:
    found = client.get("/healthz", headers={"X-Request-ID": "a b\tc"}).headers["x-request-id"]
    assert len(found) == 32
    assert found.isalnum()


def test_probes_that_succeed_are_not_logged(client: TestClient) -> None:
    with structlog.testing.capture_logs() as lines:
        client.get("/healthz")
    assert lines == []
