"""Every JSON route answers within the budget it is given, as JSON and as Markdown."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from tests.rows import over_rows
from tests.web.conftest import MATCHES, SAME, Room

LOG = {"log": "RuntimeError: CUDA error: an illegal memory access was encountered"}
MARKDOWN = {"accept": "text/markdown"}
ROUTES = [
    "/api/v1/issues/39288",
    "/api/v1/repos/vllm-project/vllm/issues/39288",
    "/api/v1/issues/39288/related",
    "/api/v1/repos/vllm-project/vllm/issues/39288/related",
    "/api/v1/regressions",
    "/api/v1/versions/0.19.0/known-issues",
]


@over_rows("max_chars", [200, 350, 1000, 5000, 20_000])
@over_rows("path", ROUTES)
def test_a_read_fits_its_budget(client: TestClient, path: str, max_chars: int) -> None:
    answer = client.get(path, params={"max_chars": max_chars})

    assert answer.status_code == 200
    assert len(answer.text) <= max_chars
    assert answer.json()


@over_rows("max_chars", [200, 350, 1000, 5000, 20_000])
@over_rows("headers", [{}, MARKDOWN])
def test_a_diagnosis_fits_its_budget(
    client: TestClient, room: Room, headers: dict[str, str], max_chars: int
) -> None:
    room.diagnosis = SAME.model_copy(update={"matches": MATCHES * 20})

    answer = client.post("/api/v1/diagnose", params={"max_chars": max_chars}, json=LOG, headers=headers)

    assert answer.status_code == 200
    assert len(answer.text) <= max_chars
    assert ("truncated" in answer.text) is not bool(headers)


@over_rows("max_chars", ["199", "0", "-1", "1000001", "many", ""])
def test_a_budget_out_of_range_is_refused(client: TestClient, max_chars: str) -> None:
    answer = client.get("/api/v1/issues/39288", params={"max_chars": max_chars})

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "max_chars"


def test_without_a_budget_nothing_is_cut(client: TestClient) -> None:
    answer = client.get("/api/v1/issues/39288").json()

    assert "truncated" not in answer
    assert answer == client.get("/api/v1/issues/39288", params={"max_chars": 1_000_000}).json()


@over_rows(
    ("path", "headers"),
    [
        ("/api/v1/issues/39288", MARKDOWN),
        ("/api/v1/repos/vllm-project/vllm/issues/39288", MARKDOWN),
        ("/issues/39288", MARKDOWN),
        ("/r/vllm-project/vllm/issues/39288", MARKDOWN),
        ("/issues/39288.md", {}),
        ("/r/vllm-project/vllm/issues/39288.md", {}),
    ],
)
def test_an_issue_has_a_markdown_twin(client: TestClient, path: str, headers: dict[str, str]) -> None:
    answer = client.get(path, headers=headers)

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert "Accept" in answer.headers["vary"]
    assert answer.text.startswith("# vllm-project/vllm#39288\n")


def test_a_page_goes_to_who_prefers_html(client: TestClient) -> None:
    browser = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}

    answer = client.get("/issues/39288", headers=browser)

    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "Accept" in answer.headers["vary"]
    assert 'rel="alternate" type="text/markdown" href="/issues/39288.md"' in answer.text


@pytest.mark.parametrize("path", ["/issues/0.md", "/issues/x.md", "/r/a/b/issues/-1.md"])
def test_no_twin_of_what_is_no_issue(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_a_short_answer_asks_the_room_the_same(client: TestClient, room: Room) -> None:
    client.get("/api/v1/repos/vllm-project/vllm/issues/39288/related", params={"limit": 7, "max_chars": 300})
    client.get("/api/v1/repos/vllm-project/vllm/issues/39288/related", params={"with": 5})

    assert [{**asked} for asked in room.asked] == [
        {"repo": "vllm-project/vllm", "number": 39288, "limit": 7},
        {"repo": "vllm-project/vllm", "number": 39288, "with": 5},
    ]
