"""Fair scheduling: while several clients are active, each has one request in progress at a time.

A request takes a turn once its body has been received and returns it with the last chunk of its response,
whether the client reads that or not. A client that is active alone has more turns. Only the total number of
waiting requests is limited, as one address may stand for many people behind a proxy. Threads are assigned in
order of arrival, so that they alternate between clients with one turn each.
"""

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.web.answers.problems import answer_problem
from app.web.middleware.body_limits import has_body
from app.web.middleware.client import client_of

ASKING_S = 10.0
"""How long a client counts as active after its last request."""
WAITING_MAX = 500
"""Waiting requests of all clients in one process. Beyond it, the client with the most gets 429."""
FREE = frozenset({"/healthz"})
_DETAIL = "Too many of your requests wait for an answer already. Wait for them first."
_BODILESS = frozenset({"GET", "HEAD"})
"""Methods whose request bodies are ignored."""


@dataclass(slots=True, eq=False)
class _Client:
    asked_at: float = 0.0
    held: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)


class Turns:
    """The turns of one process.

    Args:
        alone_max: turns of a client while no other is active; otherwise each has one.
    """

    def __init__(self, alone_max: int) -> None:
        self._alone_max = alone_max
        self._clients: dict[str, _Client] = {}

    def is_full(self, name: str) -> bool:
        """True if too many requests wait and no client has more of them than this one."""
        lengths = [len(client.waiting) for client in self._clients.values()]
        own = self._clients.get(name, _Client())
        return sum(lengths) >= WAITING_MAX and len(own.waiting) == max(lengths)

    async def take(self, name: str) -> None:
        """Wait for a turn."""
        client = self._clients.pop(name, None) or _Client()
        self._clients[name] = client  # keeps the clients ordered by their last request
        client.asked_at = time.monotonic()
        turn = asyncio.get_running_loop().create_future()
        client.waiting.append(turn)
        self._hand_out(client)
        try:
            await turn
        except asyncio.CancelledError:
            if turn in client.waiting:
                client.waiting.remove(turn)
            else:
                self.give(name)
            raise

    def give(self, name: str) -> None:
        """Return a turn."""
        client = self._clients[name]
        client.held -= 1
        self._hand_out(client)

    def _hand_out(self, client: _Client) -> None:
        most = 1 if self._do_several_ask() else self._alone_max
        while client.waiting and client.held < most:
            client.held += 1
            turn = client.waiting.popleft()
            if not turn.done():  # otherwise it is cancelled, and `take` returns it
                turn.set_result(None)

    def _do_several_ask(self) -> bool:
        over = time.monotonic() - ASKING_S
        for name, client in list(self._clients.items()):
            if client.asked_at > over or client.held or client.waiting:
                break
            del self._clients[name]
        return len(self._clients) > 1


class TakeTurns:
    """ASGI middleware; `/healthz` needs no turn.

    Args:
        alone_max: requests in progress for a client that is active alone.
    """

    def __init__(self, app: ASGIApp, alone_max: int) -> None:
        self._app = app
        self._turns = Turns(alone_max)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the app once the client has a turn."""
        if scope["type"] != "http" or scope["path"] in FREE:
            await self._app(scope, receive, send)
            return
        client = client_of(scope)
        if self._turns.is_full(client):
            refusal = answer_problem(Request(scope), 429, _DETAIL, headers={"Retry-After": "5"})
            await refusal(scope, receive, send)
            return
        is_waiting, is_held = True, False

        async def take() -> None:
            nonlocal is_waiting, is_held
            if is_waiting:
                is_waiting = False
                await self._turns.take(client)
                is_held = True

        def give() -> None:
            nonlocal is_waiting, is_held
            if is_held:
                self._turns.give(client)
            is_waiting = is_held = False

        async def receive_whole() -> Message:
            message = await receive()
            if not message.get("more_body"):
                await take()
            return message

        async def send_and_give(message: Message) -> None:
            if message["type"] == "http.response.body" and not message.get("more_body"):
                give()
            await send(message)

        try:
            if scope["method"] in _BODILESS or not has_body(scope):
                await take()
            await self._app(scope, receive_whole, send_and_give)
        finally:
            give()
