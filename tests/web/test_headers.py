"""Headers are changed as an answer starts; whose connection is closed, and whose is kept."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from app.web.headers import SpreadConnections, at_start

Scenario = Callable[[httpx.AsyncClient, threading.Event, threading.Event], Awaitable[None]]
WAIT_S = 20.0


def run(scenario: Scenario) -> None:
    """Play a scenario: with a client, what is set once `/held` is worked on, and what lets it end."""
    begun, may_end = threading.Event(), threading.Event()

    def held(_request: Request) -> Response:
        begun.set()
        may_end.wait(WAIT_S)
        return PlainTextResponse("held")

    def free(_request: Request) -> Response:
        return PlainTextResponse("free")

    async def unthreaded(_request: Request) -> Response:
        return PlainTextResponse("unthreaded")

    routes = [Route("/held", held), Route("/free", free), Route("/unthreaded", unthreaded)]
    app = Starlette(routes=routes, middleware=[Middleware(SpreadConnections)])

    async def play() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://worker") as client:
            await scenario(client, begun, may_end)

    try:
        asyncio.run(play())
    finally:
        may_end.set()


def test_a_worker_with_nothing_else_to_do_keeps_the_connection() -> None:
    async def alone(client: httpx.AsyncClient, _begun: threading.Event, _may_end: threading.Event) -> None:
        for path in ("/free", "/free", "/unthreaded"):
            assert "connection" not in (await client.get(path)).headers

    run(alone)


def test_a_worker_that_works_on_another_request_closes_the_connection() -> None:
    async def beside(client: httpx.AsyncClient, begun: threading.Event, may_end: threading.Event) -> None:
        other = asyncio.create_task(client.get("/held"))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        for path in ("/free", "/unthreaded"):
            answer = await client.get(path)
            assert (answer.status_code, answer.headers["connection"]) == (200, "close")
        may_end.set()
        assert "connection" not in (await other).headers, "the last one at work has a free worker again"

    run(beside)


def test_the_headers_are_changed_before_they_are_sent_and_the_body_is_left_alone() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def answer() -> None:
        sending = at_start(send, lambda headers: headers.update({"X-One": "1"}))
        await sending({"type": "http.response.start", "status": 200, "headers": [(b"x-two", b"2")]})
        await sending({"type": "http.response.body", "body": b"text", "more_body": True})
        await sending({"type": "http.response.body", "body": b""})

    asyncio.run(answer())

    assert sent == [
        {"type": "http.response.start", "status": 200, "headers": [(b"x-two", b"2"), (b"x-one", b"1")]},
        {"type": "http.response.body", "body": b"text", "more_body": True},
        {"type": "http.response.body", "body": b""},
    ]
