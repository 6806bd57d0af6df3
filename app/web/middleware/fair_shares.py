"""Fair shares of a worker: time and memory for request bodies, and one request of a client at a time.

Bodies: each route limits the size of its body while reading it (`app.web.body`). The limits here apply before
any route, so that neither slow clients nor many large uploads at once can exhaust the worker. When the total
is too large, the oldest body still being received from the client that holds the most is dropped.

Turns: a request takes its client's turn once its body has been received, and returns it with the last chunk
of its response, whether the client reads that or not. Only the total number of waiting requests is limited,
as one address may stand for many people behind a proxy. Threads are assigned in order of arrival, so that
they alternate between clients with one turn each.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import TriageError
from app.web.answers.problems import answer_problem
from app.web.middleware.client import client_of


class TooSlowError(TriageError):
    """A body did not arrive in time."""

    status = 408


class CrowdedError(TriageError):
    """The memory for request bodies is full."""

    status = 503


@dataclass(frozen=True, slots=True)
class ReceivingLimits:
    """Time for a whole body (10 MiB at 85 KiB/s), and between two chunks of it.

    `held_max_bytes`: for all bodies of a worker, each counted from its first byte to the end of its response;
    `share_bytes`: for those of one client, as much as the largest body.
    """

    body_timeout_s: float = 120.0
    pause_timeout_s: float = 20.0
    held_max_bytes: int = 128 * 1024 * 1024
    share_bytes: int = 64 * 1024 * 1024


@dataclass(slots=True, eq=False)
class _Body:
    """A body being received: bytes so far; `deadline` is the timeout of the current wait for more."""

    client: str
    size: int = 0
    deadline: asyncio.Timeout | None = None
    is_crowded_out: bool = False

    def crowd_out(self) -> bool:
        """Abort receiving the body; return False if it is not waiting for more."""
        if self.deadline is None or self.deadline.expired():
            return False
        self.is_crowded_out, self.size = True, 0
        self.deadline.reschedule(0)
        return True


_CROWDED = "The server is taking in as much as it can. Try again in a minute."


class LimitReceiving:
    """ASGI middleware; its errors are raised where the route reads the body, for the exception handlers."""

    def __init__(self, app: ASGIApp, limits: ReceivingLimits | None = None) -> None:
        self._app = app
        self._limits = limits or ReceivingLimits()
        self._bodies: dict[_Body, None] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the app with a `receive` that enforces the limits."""
        if scope["type"] != "http" or not has_body(scope):
            await self._app(scope, receive, send)
            return
        ends_at = time.monotonic() + self._limits.body_timeout_s
        body = _Body(client_of(scope))
        is_whole = False

        async def receive_in_time() -> Message:
            nonlocal is_whole
            if is_whole:  # the next message is the client's disconnect
                return await receive()
            message = await self._next(body, receive, ends_at)
            body.size += len(message.get("body", b""))
            self._make_room(body)
            is_whole = not message.get("more_body", False)
            return message

        self._bodies[body] = None
        try:
            await self._app(scope, receive_in_time, send)
        finally:
            del self._bodies[body]

    async def _next(self, body: _Body, receive: Receive, ends_at: float) -> Message:
        patience_s = min(self._limits.pause_timeout_s, ends_at - time.monotonic())
        try:
            async with asyncio.timeout(max(patience_s, 0.001)) as body.deadline:
                return await receive()
        except TimeoutError:
            if body.is_crowded_out:
                raise CrowdedError(_CROWDED) from None
            raise TooSlowError("The body did not arrive in time. Send it again, in one go.") from None
        finally:
            body.deadline = None

    def _make_room(self, newest: _Body) -> None:
        held: Counter[str] = Counter()
        for body in self._bodies:
            held[body.client] += body.size
        if held[newest.client] > self._limits.share_bytes:
            raise CrowdedError(_CROWDED)
        if held.total() > self._limits.held_max_bytes:
            (most, _), *_ = held.most_common(1)
            if not any(body.client == most and body.crowd_out() for body in self._bodies):
                raise CrowdedError(_CROWDED)


def has_body(scope: Scope) -> bool:
    names = {name for name, _ in scope["headers"]}
    return b"content-length" in names or b"transfer-encoding" in names


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
