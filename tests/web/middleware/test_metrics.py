"""What `/metrics` counts, and what it keeps out."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from app.knowledge.freshness import Freshness, freshness
from app.store.session import Store


def test_requests_are_counted_under_their_route(client: TestClient) -> None:
    client.get("/healthz")
    assert 'triage_requests_total{route="/healthz",status="200"} 1.0' in client.get("/metrics").text


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
