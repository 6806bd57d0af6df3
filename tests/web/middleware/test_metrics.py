"""What `/metrics` counts, and what it keeps out."""

from __future__ import annotations

import pytest
import structlog
from fastapi.testclient import TestClient
from pydantic import SecretStr

from app.config import ApiKey, Settings
from app.knowledge.freshness import Freshness, freshness
from app.main import create_app
from app.store.session import Store


def test_requests_are_counted_under_their_route(client: TestClient) -> None:
    client.get("/healthz")
    assert (
        'triage_requests_total{key="",method="GET",route="/healthz",status="200"} 1.0'
        in client.get("/metrics").text
    )


def test_an_address_that_is_no_route_leaves_no_text(client: TestClient) -> None:
    client.get("/no-such-page-hf_secret")
    text = client.get("/metrics").text
    assert 'route="unknown",status="404"' in text
    assert "hf_secret" not in text


def test_verdicts_are_counted(client: TestClient) -> None:
    client.post("/api/v1/diagnose", json={"log": "RuntimeError: CUDA error: an illegal memory access"})
    assert 'triage_verdicts_total{verdict="' in client.get("/metrics").text


def test_size_and_queue_are_told(client: TestClient) -> None:
    text = client.get("/metrics").text
    assert 'triage_stored{kind="issue",repo="vllm-project/vllm"}' in text
    assert "triage_deliveries_waiting_bytes 0.0" in text
    assert "triage_database_up 1.0" in text
    assert "triage_requests_in_flight 1.0" in text


def test_a_scrape_reads_the_freshness_once(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(store: Store, repo: str) -> Freshness:
        asked.append(repo)
        return freshness(store, repo)

    for module in ("app.web.middleware.metrics", "app.knowledge.freshness"):
        monkeypatch.setattr(f"{module}.freshness", counted)
    client.get("/metrics")
    assert asked == ["vllm-project/vllm"]


def test_a_refusal_names_the_route_and_the_key(sqlite_store: Store) -> None:
    keys = (ApiKey(name="bot", key=SecretStr("0123456789abcdef"), rate="1/minute"),)
    with TestClient(create_app(Settings(rate_limit="off", api_keys=keys), sqlite_store)) as client:
        for _ in range(2):
            client.get("/api/v1/issues/7", headers={"X-API-Key": "0123456789abcdef"})
        text = client.get("/metrics").text
    assert '{key="bot",method="GET",route="/api/v1/issues/{number}",status="429"} 1.0' in text


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
