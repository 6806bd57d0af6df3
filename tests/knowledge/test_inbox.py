"""The inbox: who may see it, what it shows side by side, and that a decision sticks."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr

from app.config import Settings
from app.knowledge.inbox import REJECTED, decide, inbox
from app.main import create_app
from app.store.derived.links import replace_similar
from app.store.records import LinkRecord
from app.store.session import Store
from app.web.deps import ADMIN_COOKIE, ADMIN_SECONDS, admin_session, is_admin_session
from tests.knowledge.made_clusters import facts_of, put, report
from tests.samples import REPO

TOKEN = "an-admin-token-of-the-tests"


@pytest.fixture
def pair(store: Store) -> Store:
    """Three failures: 12 may repeat 11, and less surely 10."""
    repo_id = put(store, *((report(number), facts_of(number)) for number in (10, 11, 12)))
    links = [
        LinkRecord(REPO, other, "similar", score=score, channel="log", reason="one frame")
        for other, score in ((11, 0.97), (10, 0.8))
    ]
    with store.unit_of_work() as session:
        replace_similar(session, repo_id, REPO, {12: links}, most=5)
    return store


def test_an_accepted_pair_leaves_and_a_rejected_report_does_too(pair: Store) -> None:
    first = inbox(pair, REPO)
    assert [(item.number, item.candidate) for item in first.items] == [(12, 11)]
    assert first.chosen is not None
    assert first.chosen.report.number == 12
    assert first.items[0].missing

    decide(pair, REPO, 12, 11, "different")
    assert [(item.number, item.candidate) for item in inbox(pair, REPO).items] == [(12, 10)]

    decide(pair, REPO, 12, 10, "reject")
    assert inbox(pair, REPO).items == ()
    assert REJECTED

    decide(pair, REPO, 12, 11, "accept")
    assert inbox(pair, REPO).items == ()


def test_a_cookie_ends_and_is_of_one_token() -> None:
    now = time.time()
    value = admin_session(TOKEN, now)
    assert is_admin_session(value, TOKEN, now)
    assert not is_admin_session(value, TOKEN, now + ADMIN_SECONDS + 2)
    assert not is_admin_session(value, "another", now)
    end, _, mark = value.partition(".")
    for forged in (f"{int(end) + 9}.{mark}", f"{end}.", "", None, f"{end}.é", "9" * 400, f"²{value}"):
        assert not is_admin_session(forged, TOKEN, now)


def opened(store: Store, token: str | None) -> TestClient:
    url = store.engine.url.render_as_string(hide_password=False)
    settings = Settings(database_url=url, repo=(REPO,), _env_file=None)  # type: ignore[call-arg]
    chosen = settings.model_copy(update={"admin_token": SecretStr(token) if token else None})
    return TestClient(create_app(chosen, store), follow_redirects=False)


@pytest.fixture
def admin(pair: Store) -> Iterator[TestClient]:
    with opened(pair, TOKEN) as found:
        yield found


def test_only_the_admin_sees_and_decides(admin: TestClient) -> None:
    sent = {"number": "12", "candidate": "11", "decision": "accept"}
    assert admin.get("/inbox").status_code == 401
    assert admin.post("/inbox", data=sent).status_code == 401
    assert admin.post("/inbox/login", data={"token": "guess"}).status_code == 401
    answer = admin.post("/inbox/login", data={"token": TOKEN})
    cookie = answer.headers["set-cookie"].lower()
    assert ADMIN_COOKIE in cookie
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert TOKEN not in cookie

    page = admin.get("/inbox")
    assert page.status_code == 200
    assert "#12" in page.text
    assert 'name="decision" value="accept"' in page.text
    assert page.headers["cache-control"] == "no-store"

    foreign = admin.post("/inbox", data=sent, headers={"Sec-Fetch-Site": "cross-site"})
    assert foreign.status_code == 403
    assert admin.post("/inbox", data={**sent, "decision": "maybe"}).status_code == 422
    assert admin.post("/inbox", data=sent).headers["location"] == "/inbox"
    assert "Nothing to decide" in admin.get("/inbox").text
    assert admin.post("/inbox/logout").status_code == 303


def test_without_an_admin_token_nobody_may(pair: Store) -> None:
    with opened(pair, None) as client:
        assert client.get("/inbox").status_code == 403
