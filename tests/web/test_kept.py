"""A log is kept only if its owner wishes so: masked, for a time, with a link that deletes it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from sqlalchemy import text

from app.config import Settings
from app.knowledge import kept_logs
from app.main import create_app
from app.store.session import Store
from tests.web.conftest import SAME, TestClient

HUB = "hf" + "_" + "abcdefghij1234567890" * 2
LOG = f"(pid=1, ip=10.20.30.40) ERROR boom\nValueError: token {HUB}\n"


def rows(store: Store) -> int:
    with store.engine.connect() as connection:
        return int(connection.execute(text("SELECT count(*) FROM kept_log")).scalar_one())


def keep(client: TestClient, log: str = LOG) -> dict[str, str]:
    kept: dict[str, str] = client.post("/api/v1/diagnose", json={"log": log, "keep": True}).json()["kept"]
    return kept


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.post("/api/v1/diagnose", json={"log": LOG}),
        lambda client: client.post("/api/v1/diagnose", json={"log": LOG, "keep": False}),
        lambda client: client.post("/api/v1/diagnose", content=LOG, headers={"content-type": "text/plain"}),
        lambda client: client.post("/diagnose", data={"log": LOG}),
    ],
)
def test_a_log_is_not_kept_unless_asked_for(client: TestClient, store: Store, ask: Callable[..., object]) -> None:
    ask(client)

    assert rows(store) == 0


def test_the_answer_without_keeping_has_no_such_key(client: TestClient) -> None:
    assert "kept" not in client.post("/api/v1/diagnose", json={"log": LOG}).json()


def test_a_kept_log_has_an_address_and_a_delete_link_of_128_bits_each(client: TestClient) -> None:
    answer = client.post("/api/v1/diagnose", json={"log": LOG, "keep": True}).json()

    assert re.fullmatch(r"/d/[0-9a-f]{32}", answer["kept"]["url"])
    assert re.fullmatch(rf"{answer['kept']['url']}/delete/[0-9a-f]{{32}}", answer["kept"]["delete_url"])
    assert answer["verdict"] == SAME.verdict


def test_its_page_shows_the_answer_and_the_masked_log_and_is_not_to_be_indexed(client: TestClient) -> None:
    page = client.get(keep(client)["url"])

    assert page.status_code == 200
    assert (page.headers["x-robots-tag"], page.headers["cache-control"]) == ("noindex", "no-store")
    assert 'name="robots" content="noindex"' in page.text
    assert "#39288" in page.text
    assert f"ValueError: token {'█' * len(HUB)}" in page.text
    assert "10.20.30.40" not in page.text


def test_a_form_keeps_with_a_tick_and_only_its_answer_tells_the_delete_link(client: TestClient, store: Store) -> None:
    page = client.post("/diagnose", data={"log": LOG, "keep": "1"}).text
    found = re.search(r'href="(/d/[0-9a-f]{32})/delete/([0-9a-f]{32})"', page)

    assert found is not None
    assert "no permalink" not in page
    assert found[2] not in client.get(found[1]).text
    assert rows(store) == 1


def test_plain_text_and_markdown_keep_too(client: TestClient) -> None:
    headers = {"content-type": "text/plain", "accept": "text/markdown"}
    told = client.post("/api/v1/diagnose?keep=1", content=LOG, headers=headers).text

    assert re.search(r"Kept until \d{4}-\d\d-\d\d: /d/[0-9a-f]{32}\. To delete it: /d/[0-9a-f]{32}/delete/", told)


def test_the_delete_link_asks_first_and_its_button_deletes(client: TestClient, store: Store) -> None:
    kept = keep(client)
    asked = client.get(kept["delete_url"])

    assert (asked.status_code, rows(store)) == (200, 1)
    assert f'action="{kept["delete_url"]}" method="post"' in asked.text
    assert client.post(kept["delete_url"]).status_code == 200
    assert (client.get(kept["url"]).status_code, rows(store)) == (404, 0)
    assert client.post(kept["delete_url"]).status_code == 404


def test_another_secret_deletes_nothing(client: TestClient, store: Store) -> None:
    kept = keep(client)

    assert client.post(f"{kept['url']}/delete/{'0' * 32}").status_code == 404
    assert rows(store) == 1


def test_the_secret_itself_is_not_stored(client: TestClient, store: Store) -> None:
    secret = keep(client)["delete_url"].rpartition("/")[2]
    with store.engine.connect() as connection:
        row = connection.execute(text("SELECT * FROM kept_log")).one()

    assert secret not in str(row)


@pytest.mark.parametrize("key", ["0" * 32, "x", "A" * 32, "0" * 33, "%00", "é"])
def test_there_is_nothing_under_another_address(client: TestClient, key: str) -> None:
    assert client.get(f"/d/{key}").status_code == 404


def test_a_kept_log_goes_when_its_time_is_over(client: TestClient, store: Store, settings: Settings) -> None:
    kept = keep(client)
    with time_machine.travel(datetime.now(UTC) + timedelta(days=settings.keep_days, seconds=1)):
        assert client.get(kept["url"]).status_code == 404
        assert rows(store) == 1
        keep(client)
        assert rows(store) == 1


def test_a_start_of_the_server_forgets_what_is_over(client: TestClient, store: Store, settings: Settings) -> None:
    keep(client)
    with time_machine.travel(datetime.now(UTC) + timedelta(days=31)), TestClient(create_app(settings, store)):
        assert rows(store) == 0


def test_of_a_long_log_start_and_end_are_kept(client: TestClient) -> None:
    log = "".join(f"line {number} of a long log\n" for number in range(60_000))
    page = client.get(keep(client, log)["url"]).text

    assert "line 0 of" in page
    assert "line 59999 of" in page
    assert "lines are not kept" in page
    assert len(page) < 1.1 * kept_logs.KEPT_CHARS


def test_no_more_logs_are_kept_than_there_is_room_for(
    client: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_logs, "KEPT_LOGS_MAX", 1)
    keep(client)
    refused = client.post("/api/v1/diagnose", json={"log": LOG, "keep": True})

    assert (refused.status_code, rows(store)) == (503, 1)
    assert "without keeping it" in refused.json()["detail"]
