"""Below a path of its host, behind a proxy that strips the path or leaves it, everything leads to itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urljoin, urlsplit

import httpx
import pytest

from tests.served import CRASH, CRASH_NUMBER, served, starter_settings

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
