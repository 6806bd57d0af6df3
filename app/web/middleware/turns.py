"""Who is worked for: while others ask too, one request of a client at a time, so that they find a thread.

A request takes its turn once its body is here, and gives it back with the last part of its answer, whether
the client takes that or not. A client that asks alone has more turns, and only what all have waiting has a
limit: an address may stand for many people, as behind a proxy. Threads go to who asked first, so they go
round the clients that have one turn each.
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
"""For so long after its last request a client counts as one that asks."""
WAITING_MAX = 500
"""Requests of all clients in one process. Past it who has most of them waiting is refused more."""
FREE = frozenset({"/healthz"})
_DETAIL = "Too many of your requests wait for an answer already. Wait for them first."
_BODILESS = frozenset({"GET", "HEAD"})
"""What is sent with them nobody reads."""


@dataclass(slots=True, eq=False)
class _Client:
    asked_at: float = 0.0
    held: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)


class Turns:
    """The turns in one process.

    Args:
        alone_max: how many a client has while nobody else asks; others have one each.
    """

    def __init__(self, alone_max: int) -> None:
        self._alone_max = alone_max
        self._clients: dict[str, _Client] = {}

    def is_full(self, name: str) -> bool:
        """Whether too many wait, and nobody has more of them waiting than this client."""
        lengths = [len(client.waiting) for client in self._clients.values()]
        own = self._clients.get(name, _Client())
        return sum(lengths) >= WAITING_MAX and len(own.waiting) == max(lengths)

    async def take(self, name: str) -> None:
        """Wait for a turn."""
        client = self._clients.pop(name, None) or _Client()
        self._clients[name] = client  # the one that asked last stands last
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
        """Give a turn back."""
        client = self._clients[name]
        client.held -= 1
        self._hand_out(client)

    def _hand_out(self, client: _Client) -> None:
        most = 1 if self._do_several_ask() else self._alone_max
        while client.waiting and client.held < most:
            client.held += 1
            turn = client.waiting.popleft()
            if not turn.done():  # else it is cancelled, and `take` gives it back
                turn.set_result(None)

    def _do_several_ask(self) -> bool:
        over = time.monotonic() - ASKING_S
        for name, client in list(self._clients.items()):
            if client.asked_at > over or client.held or client.waiting:
                break
            del self._clients[name]
        return len(self._clients) > 1


class TakeTurns:
    """ASGI middleware; `/healthz` waits for nobody.

    Args:
        alone_max: how many requests a client that asks alone has worked on at a time.
    """

    def __init__(self, app: ASGIApp, alone_max: int) -> None:
        self._app = app
        self._turns = Turns(alone_max)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on when it is its client's turn."""
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
