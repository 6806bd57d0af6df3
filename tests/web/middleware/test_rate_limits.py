"""A client may ask so often; who has a key, more often; what is left is told."""

from __future__ import annotations

import asyncio
import importlib.util
import re
import time
from typing import Any

import pytest
import time_machine
from fastapi.testclient import TestClient
from limits.aio.storage import MemoryStorage
from limits.errors import StorageError
from pydantic import SecretStr

from app.config import ApiKey, Settings
from app.errors import ConfigError
from app.main import create_app
from app.store.session import Store
from app.web.middleware import rate_limits
from app.web.middleware.rate_limits import LimitRequests, Rate, RateWindows

KEY = "key-of-a-chatbot-0001"
KEYS = (
    ApiKey(name="bot", key=SecretStr(KEY), rate="5/minute"),
    ApiKey(name="ci", key=SecretStr(KEY + "2"), rate="off"),
)
PEER = "203.0.113.9"


class Asker:
    """Asks an application behind the limits, and tells status and headers."""

    def __init__(self, rate: str = "3/minute") -> None:
        self.passed = 0
        self._limits = LimitRequests(self._app, rate, KEYS)

    async def _app(self, _scope: Any, _receive: Any, send: Any) -> None:
        self.passed += 1
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    def __call__(
        self, path: str = "/api/v1/issues", method: str = "GET", peer: str = PEER, **headers: str
    ) -> tuple[int, dict[str, str]]:
        found: list[Any] = []

        async def send(message: Any) -> None:
            found.append(message)

        raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        scope = {
            "type": "http",
            "method": method,
            "path": path.partition("?")[0],
            "client": (peer, 1),
            "headers": raw,
            "query_string": path.partition("?")[2].encode(),
            "server": ("x", 80),
            "scheme": "http",
            "root_path": "",
        }
        asyncio.run(self._limits(scope, None, send))  # type: ignore[arg-type]
        return found[0]["status"], {name.decode(): value.decode() for name, value in found[0]["headers"]}


class Clock:
    """The time since the machine's start, which stands still until a test shifts it."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def shift(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(rate_limits, "time", made)
    return made


def test_one_request_too_many_is_refused_until_the_window_ends(clock: Clock) -> None:
    ask = Asker()
    assert [ask()[0] for _ in range(4)] == [200, 200, 200, 429]

    status, headers = ask()
    assert (status, headers["retry-after"], headers["content-type"]) == (
        429,
        "60",
        "application/problem+json",
    )

    clock.shift(60)
    assert ask()[0] == 200
    assert ask.passed == 4


def test_what_is_left_is_stated_as_the_draft_says(clock: Clock) -> None:
    ask = Asker()
    ask()
    clock.shift(12.5)

    headers = ask()[1]

    assert headers["ratelimit-policy"] == '"anonymous";q=3;w=60'
    assert headers["ratelimit"] == '"anonymous";r=1;t=48'


def test_clients_are_counted_apart_and_an_ipv6_network_is_one() -> None:
    ask = Asker("1/minute")

    assert [ask(peer=peer)[0] for peer in ("203.0.113.1", "203.0.113.2", "2001:db8::1", "2001:db8::2")] == [
        200,
        200,
        200,
        429,
    ]


@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("/healthz", "GET"),
        ("/readyz", "GET"),
        ("/metrics", "GET"),
        ("/static/app.js", "GET"),
        ("/issues/1", "GET"),
        ("/webhooks/github", "POST"),
        ("/api/v1/diagnose", "OPTIONS"),
    ],
)
def test_health_pages_deliveries_and_preflights_are_not_counted(path: str, method: str) -> None:
    ask = Asker("1/minute")

    found = [ask(path, method) for _ in range(3)]

    assert [status for status, _ in found] == [200] * 3
    assert "ratelimit" not in found[0][1]


@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("/api/v1/diagnose", "POST"),
        ("/diagnose", "POST"),
        ("/mcp", "POST"),
        ("/api/v1/x", "HEAD"),
        ("/issues?q=x", "GET"),
    ],
)
def test_json_routes_mcp_and_forms_are_counted_together(path: str, method: str) -> None:
    ask = Asker("1/minute")

    assert [ask(path, method)[0], ask()[0]] == [200, 429]


def test_who_asks_from_this_machine_is_counted_as_everybody() -> None:
    ask = Asker("1/minute")

    assert [ask(peer="127.0.0.1")[0] for _ in range(2)] == [200, 429]
    assert ask(peer="127.0.0.1", x_forwarded_for="127.0.0.9")[0] == 429


def test_a_date_that_jumps_locks_nobody_out() -> None:
    ask = Asker("1/second")
    with time_machine.travel("2099-01-01") as date:
        ask()
        date.move_to("2026-01-01")
        time.sleep(1.05)

        assert ask()[0] == 200


@pytest.mark.parametrize("header", [{"x_api_key": KEY}, {"authorization": f"bearer  {KEY}"}])
def test_a_key_has_a_rate_of_its_own_wherever_it_is_used(header: dict[str, str]) -> None:
    ask = Asker("1/minute")

    found = [ask(peer=f"203.0.113.{at}", **header) for at in range(6)]

    assert [status for status, _ in found] == [200] * 5 + [429]
    assert found[0][1]["ratelimit-policy"] == '"api-key";q=5;w=60'


def test_a_key_without_limit_is_not_counted() -> None:
    ask = Asker("1/minute")

    assert [ask(x_api_key=KEY + "2")[0] for _ in range(9)] == [200] * 9


@pytest.mark.parametrize("key", ["x", KEY[:-1], KEY + "3", "é" * 20])
def test_a_wrong_key_is_refused_and_counted(key: str) -> None:
    ask = Asker("2/minute")

    assert [ask(x_api_key=key)[0], ask(authorization=f"Bearer {key}")[0], ask()[0]] == [401, 401, 429]
    assert ask.passed == 0


def test_an_empty_key_and_the_admins_token_are_no_wrong_key() -> None:
    ask = Asker("3/minute")

    assert ask(x_api_key="")[0] == 200
    assert ask("/api/v1/judgements", authorization="Bearer of-the-admin")[0] == 200


def test_a_shared_storage_counts_for_all_and_each_counts_alone_while_it_is_away() -> None:
    storage = MemoryStorage(wrap_exceptions=True)
    one, other = RateWindows(storage), RateWindows(storage)
    rate = Rate(2, 60)

    async def hits() -> list[int]:
        return [(await windows.hit(rate, "anonymous", PEER))[0] for windows in (one, other, one)]

    assert asyncio.run(hits()) == [1, 0, -1]
    address = SecretStr("redis://127.0.0.1:9/0")
    if importlib.util.find_spec("redis") is None:
        with pytest.raises(ConfigError, match="redis"):
            LimitRequests(None, "2/minute", shared=address)  # type: ignore[arg-type]
    away = RateWindows(Broken(wrap_exceptions=True))
    one = other = away
    assert asyncio.run(hits()) == [1, 0, -1]


class Broken(MemoryStorage):
    """A storage that cannot be reached."""

    @property
    def base_exceptions(self) -> type[Exception]:
        return OSError

    async def incr(self, *_: Any, **__: Any) -> int:
        raise StorageError(ConnectionRefusedError())


def test_off_means_no_limit_for_anybody() -> None:
    ask = Asker("off")

    assert [ask()[0] for _ in range(500)] == [200] * 500


def test_counts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "CLIENTS_MAX", 100)
    ask = Asker("1/minute")

    assert [ask(peer=f"203.0.113.{at}")[0] for at in range(250)] == [200] * 250
    assert len(ask._limits._windows._open) <= 100
    assert ask(peer="203.0.113.249")[0] == 429


def test_counting_costs_little() -> None:
    ask = Asker("1000000/minute")
    ask()
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": "/api/v1/issues",
        "client": (PEER, 1),
        "headers": [(b"accept", b"*/*")],
    }

    async def many() -> float:
        async def send(_message: Any) -> None:
            return None

        began = time.perf_counter()
        for _ in range(500):
            await ask._limits(scope, None, send)  # type: ignore[arg-type]
        return (time.perf_counter() - began) / 500

    assert asyncio.run(many()) < 0.001


def test_the_application_refuses_with_a_problem_and_with_a_page(settings: Settings, store: Store) -> None:
    tight = settings.model_copy(update={"rate_limit": "1/minute", "cross_origin": True})
    with TestClient(create_app(tight, store), client=(PEER, 1)) as client:
        assert client.get("/api/v1/regressions").headers["ratelimit"].startswith('"anonymous";r=0;t=')
        refused = client.get("/api/v1/regressions", headers={"origin": "https://bot.example"})
        page = client.post("/diagnose", data={"log": "x"})

    problem = refused.json()
    assert (refused.status_code, problem["status"], problem["title"]) == (429, 429, "Too many requests")
    assert problem["type"] == "urn:vllm-triage:problem:rate-limit"
    assert re.search(r"1 times? in 60 seconds", problem["detail"])
    assert refused.headers["content-security-policy"]
    assert refused.headers["access-control-allow-origin"] == "*"
    assert (page.status_code, page.headers["content-type"]) == (429, "text/html; charset=utf-8")
