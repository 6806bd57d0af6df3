"""What a visitor names is asked at the configured GitHub alone, wherever that sends the server on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from app.config import Settings
from app.main import create_app
from app.store.session import Store
from tests.web.conftest import REPO, TestClient


@dataclass
class Site:
    """A server on the loopback that sends everybody on to `location`."""

    location: str = ""
    asked: list[str] = field(default_factory=list)
    url: str = ""


@contextmanager
def site() -> Iterator[Site]:
    found = Site()

    class Redirects(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.asked.append(self.path)
            self.send_response(302)
            self.send_header("Location", found.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Redirects)
    found.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize(
    "location",
    ["{inner}/admin", "//{inner_host}/admin", "http://github@{inner_host}/admin", "file:///etc/passwd"],
)
def test_a_fetch_follows_no_redirect_to_another_server(
    settings: Settings, store: Store, location: str
) -> None:
    with site() as github, site() as inner:
        github.location = location.format(inner=inner.url, inner_host=inner.url.removeprefix("http://"))
        chosen = settings.model_copy(update={"github_api_url": github.url})
        with TestClient(
            create_app(chosen, store), raise_server_exceptions=False, follow_redirects=False
        ) as client:
            answer = client.post("/report", data={"url": "7"})

    assert answer.status_code == 502
    assert inner.asked == []
    assert github.asked[0].startswith(f"/repos/{REPO}/issues/7")
    assert not any(word in answer.text for word in ("admin", "passwd", inner.url))


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:1/",
        "https://github.com@127.0.0.1/vllm-project/vllm/issues/7",
        "https://github.com/evil/other/issues/7",
    ],
)
def test_an_address_of_another_place_asks_nobody(settings: Settings, store: Store, address: str) -> None:
    with site() as github:
        chosen = settings.model_copy(update={"github_api_url": github.url})
        with TestClient(
            create_app(chosen, store), raise_server_exceptions=False, follow_redirects=False
        ) as client:
            answers = [
                client.post("/report", data={"url": address}),
                client.get("/report", params={"url": address}),
            ]

    assert [answer.status_code for answer in answers] == [422, 422]
    assert github.asked == []
