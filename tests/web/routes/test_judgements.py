"""Judging is for the holder of the admin token; a judgement can be listed page by page, and undone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr, ValidationError

from app.config import Settings
from app.main import create_app
from app.store.github.issues import add_repository, save_issues
from app.store.session import Store
from app.web.routes.judgements import BODY_LIMIT_BYTES
from tests.rows import over_rows
from tests.samples import REPO, a_pull, an_issue

TOKEN = "an-admin-token"
PATH = "/api/v1/judgements"
PAIR = {"a": 2, "b": 1, "verdict": "same"}


@pytest.fixture
def admin(settings: Settings, store: Store) -> Iterator[TestClient]:
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        save_issues(session, repo_id, [*(an_issue(number) for number in range(1, 6)), a_pull(9)])
    chosen = settings.model_copy(update={"admin_token": SecretStr(TOKEN)})
    with TestClient(create_app(chosen, store), raise_server_exceptions=False) as opened:
        opened.headers["authorization"] = f"Bearer {TOKEN}"
        yield opened


def problem(answer: Any) -> dict[str, Any]:
    assert answer.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = answer.json()
    assert {"type", "title", "status", "detail"} <= found.keys()
    return found


def test_a_judgement_is_made_listed_and_undone(admin: TestClient) -> None:
    made = admin.post(PATH, json=PAIR | {"note": " one bug "})
    assert made.status_code == 201
    assert made.json() | {"id": 0, "judged_at": ""} == {
        "id": 0,
        "repo": REPO,
        "a": 1,
        "b": 2,
        "verdict": "same",
        "note": "one bug",
        "judged_at": "",
        "undone_at": None,
        "undone_why": None,
    }
    assert admin.get(PATH).json() == {"items": [made.json()], "next_cursor": None}

    ended = admin.delete(f"{PATH}/{made.json()['id']}")

    assert (ended.status_code, ended.json()["undone_why"]) == (200, "undone")
    assert admin.get(PATH).json()["items"] == []
    assert admin.get(PATH, params={"ended": "true"}).json()["items"] == [ended.json()]


def test_the_same_judgement_again_is_the_one_in_force(admin: TestClient) -> None:
    first = admin.post(PATH, json=PAIR)
    again = admin.post(PATH, json={"a": 1, "b": 2, "verdict": "same"})

    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()


def test_the_list_is_read_page_by_page(admin: TestClient) -> None:
    for number in (2, 3, 4):
        admin.post(PATH, json={"a": 1, "b": number, "verdict": "different"})
    first = admin.get(PATH, params={"limit": 2}).json()
    last = admin.get(PATH, params={"limit": 2, "cursor": first["next_cursor"]}).json()

    assert [item["b"] for item in first["items"] + last["items"]] == [4, 3, 2]
    assert last["next_cursor"] is None


def test_nobody_passes_without_the_token(admin: TestClient) -> None:
    admin.headers.pop("authorization")
    tried = ["", "Bearer wrong", "Bearer ", f"Basic {TOKEN}", TOKEN, "Bearer \xe9"]
    for method, header in product(("post", "get", "delete"), tried):
        path = f"{PATH}/1" if method == "delete" else PATH
        headers = {"authorization": header.encode("latin-1")} if header else {}
        answer = admin.request(method, path, headers=headers)

        assert problem(answer)["status"] == 401, (method, header)
        assert answer.headers["www-authenticate"] == "Bearer"
        assert TOKEN not in answer.text


def test_where_no_token_is_set_nobody_passes(client: TestClient) -> None:
    answer = client.post(PATH, json=PAIR, headers={"authorization": "Bearer "})

    assert problem(answer)["status"] == 403
    assert "TRIAGE_ADMIN_TOKEN" in answer.json()["detail"]


@over_rows(
    ("body", "status"),
    [
        ({"a": 1, "b": 1, "verdict": "same"}, 422),
        ({"a": 1, "b": 77, "verdict": "same"}, 404),
        ({"a": 1, "b": 9, "verdict": "same"}, 422),
        ({"a": 1, "b": 2, "verdict": "alike"}, 422),
        ({"a": "1", "b": 2, "verdict": "same"}, 422),
        ({"a": 0, "b": 2, "verdict": "same"}, 422),
        ({"a": 1, "b": 2}, 422),
        ({"a": 1, "b": 2, "verdict": "same", "because": "x"}, 422),
        ({"a": 1, "b": 2, "verdict": "same", "note": "x" * 2001}, 422),
        ({"a": 1, "b": 2, "verdict": "same", "repo": "else/where"}, 404),
        ({"a": 1, "b": 2, "verdict": "same", "note": "x" * BODY_LIMIT_BYTES}, 413),
        ([1, 2], 400),
    ],
)
def test_what_cannot_be_judged_is_refused(admin: TestClient, body: Any, status: int) -> None:
    assert problem(admin.post(PATH, json=body))["status"] == status
    assert admin.get(PATH, params={"ended": "true"}).json()["items"] == []


def test_a_judgement_is_sent_as_json(admin: TestClient) -> None:
    assert problem(admin.post(PATH, content="{}", headers={"content-type": "text/plain"}))["status"] == 415
    assert (
        problem(admin.post(PATH, content="{", headers={"content-type": "application/json"}))["status"] == 400
    )


@over_rows(("path", "status"), [("77", 404), ("0", 422), ("x", 422), (str(2**40), 422)])
def test_an_unknown_judgement_cannot_be_undone(admin: TestClient, path: str, status: int) -> None:
    assert problem(admin.delete(f"{PATH}/{path}"))["status"] == status


@over_rows("cursor", ["x", "%%%", "cmVncmVzc2lvbnM6MQ", "anVkZ2VtZW50czp4"])
def test_a_cursor_of_another_list_is_refused(admin: TestClient, cursor: str) -> None:
    assert problem(admin.get(PATH, params={"cursor": cursor}))["status"] == 422


def test_a_short_or_spaced_token_is_no_setting() -> None:
    for value in ("short", "two words here"):
        with pytest.raises(ValidationError):
            Settings(admin_token=SecretStr(value), _env_file=None)  # type: ignore[call-arg]
    assert Settings(admin_token=SecretStr("  "), _env_file=None).admin_token is None  # type: ignore[call-arg]
