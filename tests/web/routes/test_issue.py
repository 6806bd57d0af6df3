"""Votes as JSON and by the buttons below an issue."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from app.config import Settings
from app.knowledge.indexing.derive import derive_issues
from app.knowledge.issue.votes import remedy_id
from app.main import create_app
from app.store.github.issues import add_repository, save_issues
from app.store.session import Store
from app.web.deps import WRITE_WAIT_S
from tests.samples import an_issue
from tests.web.conftest import REPO, TestClient
from tests.web.routes.test_diagnose import checked

VOTES = "/api/v1/issues/1/votes"
FORM = "/issues/1/votes"
REMEDY_FORM = "/issues/2/votes"
REMEDY = remedy_id("--enforce-eager")


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Behind a proxy on this machine that is believed."""
    return settings.model_copy(update={"trusted_proxies": ("127.0.0.1/32",)})


@pytest.fixture
def client(settings: Settings, store: Store) -> Iterator[TestClient]:
    with store.unit_of_work() as session:
        save_issues(session, add_repository(session, REPO), [an_issue(1)])
        save_issues(session, add_repository(session, "other/thing"), [an_issue(1)])
    app = create_app(settings, store)
    with TestClient(
        app, raise_server_exceptions=False, follow_redirects=False, client=("127.0.0.1", 5)
    ) as opened:
        yield opened


@pytest.fixture
def remedied(client: TestClient, store: Store) -> TestClient:
    """With an issue that names a remedy."""
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        body = "It hangs at the start. Adding `--enforce-eager` fixes it."
        save_issues(session, repo_id, [an_issue(2, body=body)])
        derive_issues(session, repo_id, REPO, [2])
    return client


def vote(
    client: TestClient, signal: str = "works", value: Any = 1, who: str = "192.0.2.1", path: str = VOTES
) -> Any:
    return client.post(path, json={"signal": signal, "value": value}, headers={"x-forwarded-for": who})


def counts(client: TestClient, signal: str = "works", path: str = "/api/v1/issues/1") -> tuple[int, int]:
    found = client.get(path).json()["votes"][signal]
    return found["up"], found["down"]


def test_a_vote_is_counted_and_told(client: TestClient) -> None:
    answer = vote(client)

    assert answer.status_code == 200
    assert answer.json()["votes"]["works"] == {"up": 1, "down": 0}
    assert answer.json()["yours"] == {"works": 1}
    assert counts(client) == (1, 0)


def test_a_visitor_votes_once_whatever_it_says_of_itself(client: TestClient) -> None:
    vote(client)
    for headers in (
        {"user-agent": "another"},
        {"cookie": "visitor=2"},
        {"x-real-ip": "198.51.100.9"},
        {"x-forwarded-for": "9.9.9.9, 192.0.2.1"},
    ):
        client.post(
            VOTES, json={"signal": "works", "value": 1}, headers={"x-forwarded-for": "192.0.2.1", **headers}
        )

    assert counts(client) == (1, 0)


def test_visitors_are_told_apart_by_address_and_by_network_of_ipv6(client: TestClient) -> None:
    for who in ("192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1"):
        vote(client, who=who)

    assert counts(client) == (4, 0)


def test_a_proxy_that_is_not_trusted_is_one_visitor(
    settings: Settings, store: Store, client: TestClient
) -> None:
    app = create_app(settings, store)
    with TestClient(app, client=("203.0.113.5", 5)) as stranger:
        for who in ("192.0.2.1", "192.0.2.2"):
            vote(stranger, who=who)

    assert counts(client) == (1, 0)


def test_a_vote_is_changed_and_taken_back(client: TestClient) -> None:
    assert vote(client, value=1).json()["votes"]["works"] == {"up": 1, "down": 0}
    assert vote(client, value=-1).json()["votes"]["works"] == {"up": 0, "down": 1}
    assert vote(client, value=0).json() == vote(client, value=0).json()
    assert counts(client) == (0, 0)


def test_every_signal_can_be_voted_on(client: TestClient) -> None:
    for signal in ("works", "easy_fix", "time_saver", "blocking", "common", "flaky", "verified"):
        assert vote(client, signal).json()["votes"][signal]["up"] == 1


def test_any_stored_repository_has_votes_of_its_own(client: TestClient) -> None:
    long = "/api/v1/repos/other/thing/issues/1"

    assert vote(client, path=f"{long}/votes").json()["repo"] == "other/thing"
    assert (counts(client), counts(client, path=long)) == ((0, 0), (1, 0))


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"signal": "great", "value": 1}, "signal"),
        ({"signal": "works", "value": 2}, "value"),
        ({"signal": "works", "value": "1"}, "value"),
        ({"signal": "works", "value": True}, "value"),
        ({"signal": "works"}, "value"),
        ({"signal": "works", "value": 1, "signall": "works"}, "the nearest is signal"),
        ({"signal": "works", "value": 1, "who": "me"}, "a field"),
    ],
)
def test_a_vote_of_a_wrong_shape_is_refused_by_name(
    client: TestClient, sent: dict[str, Any], field: str
) -> None:
    answer = client.post(VOTES, json=sent)

    assert answer.status_code == 422
    assert field in answer.json()["detail"]


@pytest.mark.parametrize(
    ("content", "content_type", "status"),
    [
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b'{"signal":"works","value":1}', "text/plain", 415),
        (b"signal=works&value=1", "application/x-www-form-urlencoded", 415),
        (b" " * 5000, "application/json", 413),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(
    client: TestClient, content: bytes, content_type: str, status: int
) -> None:
    answer = client.post(VOTES, content=content, headers={"content-type": content_type})

    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert counts(client) == (0, 0)


def test_an_issue_that_is_not_stored_cannot_be_voted_on(client: TestClient) -> None:
    answer = vote(client, path="/api/v1/issues/77/votes")

    assert answer.status_code == 404
    assert "vllm-project/vllm#77 is not stored" in answer.json()["detail"]
    assert client.post("/issues/77/votes", data={"vote": f"{REMEDY}:1"}).status_code == 404
    assert vote(client, path="/api/v1/repos/nobody/nothing/issues/1/votes").status_code == 404


def test_the_buttons_need_no_script_and_show_the_visitor_s_own_vote(remedied: TestClient) -> None:
    before = remedied.get("/issues/2").text
    answer = remedied.post(REMEDY_FORM, data={"vote": f"{REMEDY}:1"})
    after = remedied.get("/issues/2").text
    checked(after)

    assert f'action="{REMEDY_FORM}" method="post"' in before
    assert f'value="{REMEDY}:1" aria-pressed="false">Worked for me <b class="num">0</b>' in before
    assert (answer.status_code, answer.headers["location"]) == (303, "/issues/2#rem")
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert f'value="{REMEDY}:0" aria-pressed="true">Worked for me <b class="num">1</b>' in after
    remedied.post(REMEDY_FORM, data={"vote": f"{REMEDY}:0"})
    assert remedied.get("/issues/2").text.count('aria-pressed="true"') == 0


@pytest.mark.parametrize("sent", ["", REMEDY, f"{REMEDY}:2", "great:1", ":", f"{REMEDY}:1:1", "🦙" * 500])
def test_a_form_that_holds_no_vote_is_refused(client: TestClient, sent: str) -> None:
    answer = client.post(FORM, data={"vote": sent})

    assert answer.status_code in (413, 422)
    checked(answer.text)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 303),
        ({"origin": "http://testserver"}, 303),
        ({"origin": "null", "sec-fetch-site": "same-origin"}, 303),
        ({"sec-fetch-site": "none"}, 303),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "http://[evil"}, 403),
        ({"origin": "http://testserver.evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site", "origin": "http://testserver"}, 403),
    ],
)
def test_a_form_of_another_site_is_refused(
    remedied: TestClient, headers: dict[str, str], status: int
) -> None:
    answer = remedied.post(REMEDY_FORM, data={"vote": f"{REMEDY}:1"}, headers=headers)

    assert answer.status_code == status
    assert ('Worked for me <b class="num">1</b>' in remedied.get("/issues/2").text) == (status == 303)


def test_other_sites_may_not_send_json_votes(client: TestClient) -> None:
    asked = {
        "origin": "https://evil.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type",
    }
    allowed = client.options(VOTES, headers=asked).headers.get("access-control-allow-methods", "")

    assert "POST" not in allowed


def test_the_page_lets_a_browser_say_where_its_form_comes_from(client: TestClient) -> None:
    assert client.get("/issues/1").headers["referrer-policy"] == "same-origin"


def test_votes_are_described(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]

    assert paths["/api/v1/issues/{number}/votes"]["post"]["operationId"] == "vote"
    assert {"400", "404", "413", "415", "422", "503"} <= set(
        paths["/api/v1/issues/{number}/votes"]["post"]["responses"]
    )


def keep(client: TestClient, who: str = "192.0.2.1") -> Any:
    asked = {"log": "RuntimeError: CUDA error", "keep": True}
    return client.post("/api/v1/diagnose", json=asked, headers={"X-Forwarded-For": who})


@pytest.mark.parametrize("engine", ["sqlite"])
@pytest.mark.parametrize("write", [vote, keep])
def test_while_another_program_writes_writers_are_refused_soon_and_health_and_reads_go_on(
    client: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch, write: Callable[..., Any]
) -> None:
    monkeypatch.setattr("app.store.engine.connect.BUSY_TIMEOUT_MS", 500)
    assert write(client).status_code == 200
    holder = sqlite3.connect(str(store.engine.url.database), isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    with ThreadPoolExecutor(6) as voters:
        votes = [voters.submit(write, client, who=f"192.0.2.{n}") for n in range(6)]
        reads = [client.get(path).status_code for path in ("/healthz", "/api/v1/issues/1")]
        is_quick = time.monotonic() - began < 0.5
        refused = [voted.result() for voted in votes]
    holder.close()
    assert (reads, is_quick) == ([200, 200], True)
    assert {answer.status_code for answer in refused} == {503}
    assert time.monotonic() - began < 2 * WRITE_WAIT_S
    assert write(client, who="192.0.2.9").status_code == 200


def test_a_vote_leaves_remembered_lists(client: TestClient) -> None:
    cache = client.app.state.services.cache  # type: ignore[attr-defined]
    client.get("/issues")
    before = dict(cache._kept)
    vote(client)
    client.get("/issues")
    assert dict(cache._kept) == before
