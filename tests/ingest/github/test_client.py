"""The client: where the token goes, what is tried again, how long it waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from app import __version__
from app.errors import GitHubError, UnreachableError
from ingest.github.client import GitHubClient

API = "https://api.github.test"
TOKEN = "ghs_notARealToken0123456789"
NOW = 1_750_000_000

Answer = httpx.Response | Exception


class Script:
    """Answers each request with the next thing in the list; the last one stays."""

    def __init__(self, *answers: Answer | Callable[[httpx.Request], httpx.Response]) -> None:
        self.answers = list(answers)
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, httpx.Response):
            return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)
        return answer(request)


@pytest.fixture
def ask(clock: Any) -> Callable[..., GitHubClient]:
    def make(script: Script, *, api: str = API, token: str | None = TOKEN, **more: Any) -> GitHubClient:
        return GitHubClient(api, token, transport=httpx.MockTransport(script), clock=clock, **more)

    return make


def rows(*numbers: int, **headers: str) -> httpx.Response:
    return httpx.Response(200, json=[{"number": n} for n in numbers], headers=headers)


def test_a_request_names_the_api_version_the_program_and_the_token(ask: Any) -> None:
    script = Script(rows(1))
    page = ask(script).get_page("/repos/a/b/issues", {"state": "all"})
    request = script.asked[0]
    assert page.items == ({"number": 1},)
    assert str(request.url) == f"{API}/repos/a/b/issues?state=all"
    assert request.headers["x-github-api-version"] == "2022-11-28"
    assert request.headers["user-agent"] == f"vllm-triage/{__version__}"
    assert request.headers["authorization"] == f"Bearer {TOKEN}"


def test_without_a_token_nothing_is_sent_in_its_place(ask: Any) -> None:
    script = Script(rows(1))
    ask(script, token=None).get_page("/x")
    assert "authorization" not in script.asked[0].headers


def test_the_next_link_is_kept_as_it_stands(ask: Any) -> None:
    url = f"{API}/repositories/7/issues?after=Y3Vyc29y%3D%3D&page=2"
    script = Script(rows(1, link=f'<{url}>; rel="next", <{API}/x>; rel="prev"'), rows(2))
    client = ask(script)
    page = client.get_page("/repos/a/b/issues")
    assert page.next_url == url
    assert client.get_page(page.next_url).next_url is None
    assert str(script.asked[1].url) == url


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.test/repositories/7/issues?page=2",
        "http://api.github.test/repositories/7/issues?page=2",
        "https://api.github.test:444/issues?page=2",
        "https://api.github.test.evil.test/issues?page=2",
        "https://someone@api.github.test/issues?page=2",
        "https://api.github.test@evil.test/issues?page=2",
        "https://api.github.test:443@evil.test/issues?page=2",
        "https://evil.test\\@api.github.test/issues?page=2",
        "https://api.github.test./issues?page=2",
        "https://xn--ap-gpa.github.test/issues?page=2",
        "http://127.0.0.1/issues?page=2",
        "http://169.254.169.254/latest/meta-data/",
        "https://[::1]/issues?page=2",
        "file:///etc/passwd",
        "ftp://api.github.test/issues",
        "//evil.test/issues?page=2",
        "https://xn--/issues?page=2",
        "//xn--99999999999/issues",
    ],
)
def test_a_link_or_redirect_to_another_origin_is_refused_and_never_asked(ask: Any, url: str) -> None:
    linked, moved = (
        Script(rows(1, link=f'<{url}>; rel="next"')),
        Script(httpx.Response(301, headers={"location": url})),
    )
    for script in (linked, moved):
        with pytest.raises(GitHubError, match="leads away") as caught:
            ask(script).get_page("/repos/a/b/issues")
        assert len(script.asked) == 1
        assert TOKEN not in str(caught.value)


def test_the_same_origin_with_its_port_written_out_is_the_same(ask: Any) -> None:
    script = Script(rows(1, link='<https://api.github.test:443/x?page=2>; rel="next"'))
    assert ask(script).get_page("/x").next_url == "https://api.github.test/x?page=2"


def test_a_renamed_repository_is_followed(ask: Any) -> None:
    script = Script(
        httpx.Response(301, headers={"location": f"{API}/repositories/7/issues?state=all"}), rows(1)
    )
    client = ask(script)
    assert client.get_page("/repos/a/b/issues", {"state": "all"}).items == ({"number": 1},)
    assert [request.url.path for request in script.asked] == ["/repos/a/b/issues", "/repositories/7/issues"]
    assert script.asked[1].headers["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_second_redirect_is_checked_like_the_first(ask: Any, status: int) -> None:
    script = Script(
        httpx.Response(status, headers={"location": f"{API}/repositories/7/issues/1"}),
        httpx.Response(status, headers={"location": "http://127.0.0.1:8000/admin"}),
    )
    with pytest.raises(GitHubError, match="leads away"):
        ask(script).find_object("/repos/a/b/issues/1")
    assert {request.url.host for request in script.asked} == {"api.github.test"}
    assert len(script.asked) == 2


def test_redirects_in_a_circle_end(ask: Any) -> None:
    script = Script(httpx.Response(302, headers={"location": f"{API}/x"}))
    with pytest.raises(GitHubError, match="redirects"):
        ask(script).get_page("/x")
    assert len(script.asked) < 10


@pytest.mark.parametrize("location", ["", "http://[::1", "https://api.github.test:port/"])
def test_a_redirect_to_nowhere_is_one_clear_error(ask: Any, location: str) -> None:
    with pytest.raises(GitHubError):
        ask(Script(httpx.Response(302, headers={"location": location}))).get_page("/x")


@pytest.mark.parametrize(
    "fault",
    [
        httpx.Response(502, html="<h1>Bad gateway</h1>"),
        httpx.Response(500, json={}),
        httpx.Response(200, html="<h1>Hello</h1>"),
        httpx.Response(200, content=b'[{"number": 1}, {"numb'),
        httpx.Response(200, content=b""),
        httpx.ReadError("reset"),
        httpx.RemoteProtocolError("cut"),
        httpx.ReadTimeout("slow"),
    ],
)
def test_what_passes_by_itself_is_tried_again(ask: Any, fault: Answer) -> None:
    script = Script(fault, fault, rows(5))
    client = ask(script)
    assert client.get_page("/x").items == ({"number": 5},)
    assert client.requests == 3


def test_trouble_that_stays_ends_in_one_line(ask: Any) -> None:
    script = Script(httpx.Response(502, html="<b>secret words of a proxy</b>"))
    with pytest.raises(GitHubError, match="does not answer /x") as caught:
        ask(script).get_page("/x")
    assert 2 < len(script.asked) < 20
    assert "secret" not in str(caught.value)
    assert not isinstance(caught.value, UnreachableError)


def test_no_network_is_told_soon(ask: Any) -> None:
    script = Script(httpx.ConnectError("no route"))
    with pytest.raises(UnreachableError, match=r"reached at https://api\.github\.test: no connection$"):
        ask(script).get_page("/x")
    assert len(script.asked) == 3


def test_a_secondary_limit_is_waited_for_as_long_as_asked(ask: Any, clock: Any) -> None:
    waits: list[Any] = []
    script = Script(httpx.Response(429, json={}, headers={"retry-after": "7"}), rows(1))
    client = ask(script)
    client.on_wait = waits.append
    assert client.get_page("/x").items
    assert sum(clock.slept) == pytest.approx(7, abs=0.01)
    assert [wait.kind for wait in waits] == ["secondary"]


def test_a_secondary_limit_that_names_no_time_is_waited_for_longer_each_time(ask: Any, clock: Any) -> None:
    refusal = httpx.Response(403, json={"message": "You have exceeded a secondary rate limit."})
    ask(Script(refusal, refusal, rows(1))).get_page("/x")
    assert clock.slept == pytest.approx([60, 120], abs=0.01)


def test_the_primary_limit_is_waited_for_until_its_reset_by_githubs_clock(ask: Any, clock: Any) -> None:
    refusal = httpx.Response(
        403,
        json={},
        headers={
            "x-ratelimit-remaining": "0",
            "x-ratelimit-reset": str(NOW + 500),
            "date": "Sun, 15 Jun 2025 15:06:40 GMT",  # NOW; this machine's clock may be wrong
        },
    )
    clock.time += 3000
    ask(Script(refusal, rows(1))).get_page("/x")
    assert sum(clock.slept) == pytest.approx(501, abs=0.01)


def test_a_limit_beyond_the_bound_is_an_error_that_names_when(ask: Any, clock: Any) -> None:
    refusal = httpx.Response(
        403, json={}, headers={"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(NOW + 500)}
    )
    with pytest.raises(GitHubError, match=r"primary rate limit is used up until 2025-06-15 15:15:01 UTC"):
        ask(Script(refusal), max_wait_s=100).get_page("/x")
    assert clock.slept == []
    with pytest.raises(GitHubError, match="TRIAGE_GITHUB_TOKEN"):
        ask(Script(refusal), max_wait_s=100, token=None).get_page("/x")


def test_refusals_without_end_are_not_waited_for_without_end(ask: Any, clock: Any) -> None:
    script = Script(httpx.Response(429, json={}, headers={"retry-after": "0"}))
    with pytest.raises(GitHubError, match="secondary rate limit"):
        ask(script).get_page("/x")
    assert len(script.asked) < 50
    script = Script(httpx.Response(429, json={}, headers={"retry-after": "900"}))
    with pytest.raises(GitHubError):
        ask(script).get_page("/x")
    assert sum(clock.slept) < 3_800


@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "check TRIAGE_GITHUB_TOKEN"), (404, "has no /x"), (403, "status 403"), (422, "status 422")],
)
def test_a_refusal_is_not_asked_again_and_says_what_it_is(ask: Any, status: int, words: str) -> None:
    script = Script(httpx.Response(status, json={"message": TOKEN}))
    with pytest.raises(GitHubError, match=words) as caught:
        ask(script).get_page("/x")
    assert len(script.asked) == 1
    assert TOKEN not in str(caught.value)


def test_what_has_not_changed_is_counted_and_costs_no_body(ask: Any) -> None:
    script = Script(rows(1, etag='W/"a"', **{"x-ratelimit-remaining": "41"}), httpx.Response(304))
    client = ask(script)
    etag = client.get_page("/x").etag
    page = client.get_page("/x", etag=etag)
    assert page.not_modified
    assert page.items == ()
    assert script.asked[1].headers["if-none-match"] == 'W/"a"'
    assert (client.requests, client.not_modified, client.limits.remaining) == (2, 1, 41)


def test_an_answer_past_the_limit_is_dropped_while_it_is_read(
    ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingest.github.client.BODY_LIMIT_BYTES", 1 << 20)
    script = Script(httpx.Response(200, content=b"[" + b" " * 3_000_000 + b"]"))
    with pytest.raises(GitHubError, match="over 1 MiB"):
        ask(script).get_page("/x")
    assert len(script.asked) == 1


@pytest.mark.parametrize("content", [b'{"message": "hi"}', b'"text"', b"7", b"null"])
def test_a_list_that_is_none_is_an_error(ask: Any, content: bytes) -> None:
    with pytest.raises(GitHubError, match="no list"):
        ask(Script(httpx.Response(200, content=content))).get_page("/x")


@pytest.mark.parametrize("status", [404, 410])
def test_an_object_that_is_gone_is_none(ask: Any, status: int) -> None:
    assert ask(Script(httpx.Response(status, json={}))).get_object("/x") is None


def test_an_enterprise_address_keeps_its_path(ask: Any) -> None:
    script = Script(
        httpx.Response(301, headers={"location": "https://ghe.test/api/v3/repositories/7/issues"}), rows(1)
    )
    ask(script, api="https://ghe.test/api/v3/").get_page("/repos/a/b/issues")
    assert [str(request.url) for request in script.asked] == [
        "https://ghe.test/api/v3/repos/a/b/issues",
        "https://ghe.test/api/v3/repositories/7/issues",
    ]
