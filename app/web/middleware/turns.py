"""Who is worked for: one request of a client at a time, so that others find a free thread.

A request takes its turn once its body is here, and gives it back as its answer starts. More requests of the
client wait for each other, up to a limit; nobody else waits for them.
"""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.web.answers.problems import answer_problem
from app.web.headers import at_start
from app.web.middleware.body_limits import has_body
from app.web.middleware.client import client_of

AT_ONCE = 1
"""Of one client, in one process: two would take turns on the interpreter's lock, and keep others from it."""
WAITING_MAX = 200
"""More than a browser or a script asks at a time."""
FREE = frozenset({"/healthz"})
_DETAIL = f"{WAITING_MAX} of your requests wait for an answer already. Wait for them first."


class Turns(asyncio.Semaphore):
    """Of one client; kept for as long as it asks something."""

    asking = 0


class TakeTurns:
    """ASGI middleware; `/healthz` waits for nobody."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._clients: WeakValueDictionary[str, Turns] = WeakValueDictionary()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on when it is its client's turn."""
        if scope["type"] != "http" or scope["path"] in FREE:
            await self._app(scope, receive, send)
            return
        turns = self._clients.setdefault(client_of(scope), Turns(AT_ONCE))
        if turns.asking >= WAITING_MAX:
            refusal = answer_problem(Request(scope), 429, _DETAIL, headers={"Retry-After": "5"})
            await refusal(scope, receive, send)
            return
        is_waiting, is_held = True, False

        async def take() -> None:
            nonlocal is_waiting, is_held
            if is_waiting:
                is_waiting = False
                await turns.acquire()
                is_held = True

        def give(_headers: MutableHeaders | None = None) -> None:
            nonlocal is_waiting, is_held
            if is_held:
                turns.release()
            is_waiting = is_held = False

        async def receive_whole() -> Message:
            message = await receive()
            if not message.get("more_body"):
                await take()
            return message

        turns.asking += 1
        try:
            if not has_body(scope):
                await take()
            await self._app(scope, receive_whole, at_start(send, give))
        finally:
            turns.asking -= 1
            give()
