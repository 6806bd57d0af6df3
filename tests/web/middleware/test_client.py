"""The client is who the nearest trusted proxy says it is, and nobody else's word counts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx
import pytest

from app.web.middleware.client import ForwardedClient, client_of
from tests.rows import over_rows
from tests.served import CRASH, CRASH_NUMBER, served, starter_settings

TRUSTED = ("10.0.0.0/8", "127.0.0.1", "fd00::/8")


def scope(peer: str | None, *headers: tuple[str, str]) -> dict[str, Any]:
    return {
        "type": "http",
        "scheme": "http",
        "client": (peer, 5) if peer is not None else None,
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers],
    }


def seen(peer: str | None, *headers: tuple[str, str], trusted: Any = TRUSTED) -> tuple[str, str]:
    found: list[tuple[str, str]] = []

    async def app(inner: Any, _receive: Any, _send: Any) -> None:
        found.append((client_of(inner), inner["scheme"]))

    asyncio.run(ForwardedClient(app, trusted)(scope(peer, *headers), None, None))  # type: ignore[arg-type]
    return found[0]


FORWARDED = "X-Forwarded-For"


@over_rows(
    ("peer", "chain", "client"),
    [
        ("203.0.113.9", None, "203.0.113.9"),
        ("203.0.113.9", "198.51.100.1", "203.0.113.9"),
        ("10.0.0.2", "198.51.100.1", "198.51.100.1"),
        ("10.0.0.2", "1.1.1.1, 198.51.100.1, 10.9.9.9", "198.51.100.1"),
        ("10.0.0.2", "203.0.113.5:4711", "203.0.113.5"),
        ("10.0.0.2", "[2001:db8:1:2:3:4:5:6]:443", "2001:db8:1:2::/64"),
        ("10.0.0.2", "not an address", "10.0.0.2"),
        ("10.0.0.2", "198.51.100.1, unknown, 10.9.9.9", "10.0.0.2"),
        ("10.0.0.2", "10.1.1.1, 10.2.2.2", "10.1.1.1"),
        ("10.0.0.2", "", "10.0.0.2"),
        ("2001:db8:1:2::77", None, "2001:db8:1:2::/64"),
        ("::ffff:203.0.113.9", None, "203.0.113.9"),
        ("fd00::1", "203.0.113.9", "203.0.113.9"),
        ("127.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("fe80::1%eth0", None, "fe80::/64"),
    ],
)
def test_the_rightmost_address_that_no_trusted_proxy_has_is_the_client(
    peer: str, chain: str | None, client: str
) -> None:
    headers = [] if chain is None else [(FORWARDED, chain)]

    assert seen(peer, *headers)[0] == client


def test_headers_that_come_in_parts_are_one_list() -> None:
    assert seen("10.0.0.2", (FORWARDED, "198.51.100.1"), (FORWARDED, "10.3.3.3"))[0] == "198.51.100.1"


def test_only_a_trusted_proxy_says_that_the_client_came_by_https() -> None:
    proto = ("X-Forwarded-Proto", "https")

    assert seen("10.0.0.2", (FORWARDED, "198.51.100.1"), proto)[1] == "https"
    assert seen("203.0.113.9", proto)[1] == "http"
    assert seen("10.0.0.2", ("X-Forwarded-Proto", "javascript"))[1] == "http"


@over_rows(
    ("peer", "headers", "trusted", "client"),
    [
        ("127.0.0.1", [], (), "127.0.0.1"),
        ("::1", [], (), "::1"),
        ("::ffff:127.0.0.1", [], (), "127.0.0.1"),
        ("", [], (), "local"),
        (None, [], (), "local"),
        ("127.0.0.1", [(FORWARDED, "127.0.0.9")], (), "127.0.0.1"),
        ("127.0.0.1", [("X-Real-IP", "::1")], (), "127.0.0.1"),
        ("127.0.0.1", [(FORWARDED, "203.0.113.9")], TRUSTED, "203.0.113.9"),
        ("127.0.0.1", [], TRUSTED, "127.0.0.1"),
    ],
)
def test_this_machine_is_a_client_as_any_other(
    peer: str | None, headers: list[tuple[str, str]], trusted: Any, client: str
) -> None:
    assert seen(peer, *headers, trusted=trusted)[0] == client


PREFIX = "/tools/triage"
PUBLIC = "http://tools.example.org"
_ADDRESS = re.compile(r'(?:href|src|action)="([^"]*)"')


class _Proxy(httpx.BaseTransport):
    """Takes `/tools/triage` of the public host for the server's, with the path as it came or without it."""

    def __init__(self, url: str, *, strips: bool) -> None:
        self._url, self._strips, self._inner = httpx.URL(url), strips, httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path
        if not path.startswith(PREFIX.encode()):
            return httpx.Response(418)
        path = (path.removeprefix(PREFIX.encode()) or b"/") if self._strips else path
        behind = request.url.copy_with(host=self._url.host, port=self._url.port, raw_path=path)
        passed = httpx.Request(request.method, behind, headers=request.headers, stream=request.stream)
        return self._inner.handle_request(passed)

    def close(self) -> None:
        self._inner.close()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = starter_settings(
        tmp_path_factory.mktemp("prefix"),
        root_path=f"{PREFIX}/",
        rate_limit="off",
        admin_token="a-long-token",
    )
    with served(settings) as address:
        yield address


@pytest.fixture(params=["strips", "leaves"])
def client(url: str, request: pytest.FixtureRequest) -> Iterator[httpx.Client]:
    proxy = _Proxy(url, strips=request.param == "strips")
    with httpx.Client(transport=proxy, base_url=PUBLIC, follow_redirects=True) as client:
        yield client


def test_every_address_of_every_kind_of_page_leads_to_an_answer(client: httpx.Client) -> None:
    asked: set[str] = set()
    waiting = [f"{PREFIX}/", f"{PREFIX}/issues/{CRASH_NUMBER}", f"{PREFIX}/docs", f"{PREFIX}/guide/settings"]
    kinds: set[str] = set()
    while waiting:
        address = waiting.pop()
        answer = client.get(address, headers={"Accept": "text/html"})
        assert answer.status_code in {200, 405}, (address, answer.status_code)  # 405: the action of a form
        if not answer.headers["content-type"].startswith("text/html"):
            continue
        for found in _ADDRESS.findall(answer.text):
            link = urlsplit(urljoin(str(answer.url), found.replace("&amp;", "&")))
            kind = re.sub(r"\d+|s1-\w+|[^/]*$", "", link.path)
            if link.netloc != urlsplit(PUBLIC).netloc or link.path in asked or kind in kinds:
                continue
            assert link.path.startswith(PREFIX), (address, found)
            asked.add(link.path)
            kinds |= {kind} if kind.count("/") > PREFIX.count("/") + 1 else set()
            waiting.append(link._replace(fragment="").geturl())
    assert len(asked) > 20


def test_redirects_cookies_feeds_and_the_description_name_the_path(client: httpx.Client) -> None:
    client.follow_redirects = False
    moved = [
        client.get(f"{PREFIX}/diagnose"),
        client.get(f"{PREFIX}/favicon.ico"),
        client.get(f"{PREFIX}/guide/"),
    ]
    entered = client.post(f"{PREFIX}/inbox/login", data={"token": "a-long-token"})
    listed = client.get(f"{PREFIX}/api/v1/issues", params={"limit": 1})
    description = client.get(f"{PREFIX}/openapi.json").json()

    assert [item.headers["location"] for item in moved] == [
        f"{PREFIX}/",
        f"{PREFIX}/static/icon.svg",
        f"{PREFIX}/guide",
    ]
    assert entered.headers["location"] == f"{PREFIX}/inbox"
    assert f"Path={PREFIX}/inbox" in entered.headers["set-cookie"]
    assert client.get(f"{PREFIX}{listed.links['next']['url'].removeprefix(PREFIX)}").status_code == 200
    assert listed.links["next"]["url"].startswith(f"{PREFIX}/api/v1/issues?")
    assert description["servers"] == [{"url": PREFIX}]
    assert client.get(description["servers"][0]["url"] + "/api/v1/issues").status_code == 200
    links = re.findall(r'href="([^"]+)"', client.get(f"{PREFIX}/feed.atom").text)
    assert links
    assert all(PREFIX in link for link in links if "github.com" not in link)


def test_a_log_is_answered_at_the_path_itself(client: httpx.Client) -> None:
    answer = client.post(PREFIX, content=CRASH.encode(), headers={"Accept": "text/plain"})

    assert answer.status_code == 200
    assert f"#{CRASH_NUMBER}" in answer.text
    assert "/tools/triage/" in client.get(f"{PREFIX}/llms.txt").text


def test_a_host_without_a_path_is_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.raises(ValueError, match="must be a path such as /triage"):
        starter_settings(tmp_path_factory.mktemp("wrong"), root_path="https://tools.example.org/triage")
