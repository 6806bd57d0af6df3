"""Fair scheduling: each client has one request in progress at a time.

A request takes its client's turn once its body has been received, and returns it with the last chunk of its
response, whether the client reads that or not. Only the total number of waiting requests is limited, as one
address may stand for many people behind a proxy. Threads are assigned in order of arrival, so that they
alternate between clients with one turn each.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.web.answers.problems import answer_problem
from app.web.middleware.body_limits import has_body
from app.web.middleware.client import client_of

WAITING_MAX = 500
"""Waiting requests of all clients in one process. Beyond it, the client with the most gets 429."""
FREE = frozenset({"/healthz"})
_DETAIL = "Too many of your requests wait for an answer already. Wait for them first."
_BODILESS = frozenset({"GET", "HEAD"})
"""Methods whose request bodies are ignored."""


class TakeTurns:
    """ASGI middleware; `/healthz` needs no turn."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._turns: dict[str, asyncio.Lock] = {}
        self._asking: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the app once the client has its turn."""
        if scope["type"] != "http" or scope["path"] in FREE:
            await self._app(scope, receive, send)
            return
        client = client_of(scope)
        if self._is_full(client):
            refusal = answer_problem(Request(scope), 429, _DETAIL, headers={"Retry-After": "5"})
            await refusal(scope, receive, send)
            return
        needs_turn = True

        async def take() -> None:
            nonlocal needs_turn
            if needs_turn:
                needs_turn = False
                await held.enter_async_context(self._turn(client))

        async def receive_whole() -> Message:
            message = await receive()
            if not message.get("more_body"):
                await take()
            return message

        async def send_and_give(message: Message) -> None:
            nonlocal needs_turn
            if message["type"] == "http.response.body" and not message.get("more_body"):
                needs_turn = False
                await held.aclose()
            await send(message)

        async with AsyncExitStack() as held:
            if scope["method"] in _BODILESS or not has_body(scope):
                await take()
            await self._app(scope, receive_whole, send_and_give)

    def _is_full(self, client: str) -> bool:
        """True if too many requests wait and no client has more of them than this one."""
        waiting = self._asking.total() - len(self._asking)
        return waiting >= WAITING_MAX and self._asking[client] == max(self._asking.values())

    @asynccontextmanager
    async def _turn(self, client: str) -> AsyncIterator[None]:
        """Wait for the client's turn, and hold it during the `with` block."""
        self._asking[client] += 1
        try:
            async with self._turns.setdefault(client, asyncio.Lock()):
                yield
        finally:
            self._asking[client] -= 1
            if not self._asking[client]:
                del self._asking[client], self._turns[client]
