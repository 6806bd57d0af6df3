"""A mirror that follows the cursor sees every change once, and what GitHub lost too."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import time_machine
from fastapi.testclient import TestClient

from app.knowledge.indexing.batches import derive_stale
from app.main import create_app
from app.store.github.issues import find_repository
from app.store.github.presence import mark_gone
from app.store.session import open_store
from tests.served import starter_settings

LATER = datetime.now(UTC) + timedelta(hours=1)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with TestClient(create_app(starter_settings(tmp_path))) as opened:
        yield opened


def follow(client: TestClient, since: str | None, limit: int) -> tuple[list[dict[str, object]], str]:
    items: list[dict[str, object]] = []
    while True:
        query = {"limit": limit} | ({"since": since} if since else {})
        answer = client.get("/api/v1/changes", params=query).json()
        items += answer["items"]
        since = answer["next_cursor"]
        if not answer["has_more"]:
            return items, since


def test_pages_hold_everything_once_and_the_cursor_goes_on(client: TestClient, tmp_path: Path) -> None:
    with time_machine.travel(LATER, tick=False):
        whole, end = follow(client, None, 500)
        parts, same_end = follow(client, None, 7)
        nothing, still = follow(client, end, 7)

    assert parts == whole
    assert len({item["number"] for item in whole}) == len(whole) > 50
    assert (nothing, end) == ([], same_end) == ([], still)

    store = open_store(f"sqlite:///{tmp_path}/triage.db")
    with store.unit_of_work() as session:
        repo_id = find_repository(session, "vllm-project/vllm")
        assert repo_id is not None
        assert mark_gone(session, "issue", repo_id, int(str(whole[0]["number"])))
    derive_stale(store, "vllm-project/vllm")
    store.close()
    with time_machine.travel(LATER, tick=False):
        news, _ = follow(client, end, 7)

    assert [(item["number"], item["is_gone"]) for item in news] == [(whole[0]["number"], True)]


def test_what_is_not_settled_is_told_later(client: TestClient) -> None:
    with time_machine.travel(datetime.now(UTC) - timedelta(days=1), tick=False):
        assert client.get("/api/v1/changes").json()["items"] == []


def test_a_foreign_cursor_is_refused(client: TestClient) -> None:
    assert client.get("/api/v1/changes", params={"since": "yesterday"}).status_code == 422
