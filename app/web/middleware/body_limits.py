"""Bodies on their way in: how long one may take, and how much of all of them is held at a time.

Each route limits the size of its own body while it reads (`app.web.body`); this stands before all routes,
so that a client that dribbles, or many that send much at once, cannot use up the worker. When all bodies are
too much, of the client that holds most the body goes that is under way for longest.
"""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import TriageError
from app.web.middleware.client import client_of


class TooSlowError(TriageError):
    """A body did not arrive in time."""

    status = 408


class CrowdedError(TriageError):
    """The bodies of other requests fill the memory set aside for them."""

    status = 503


@dataclass(frozen=True, slots=True)
class ReceivingLimits:
    """How long a whole body may take (10 MiB at 85 KiB a second), and the time between two parts of it.

    `held_max_bytes`: of all bodies of a worker together, from their first byte to the end of their answers;
    `share_bytes` of those of one client, as much as the largest body.
    """

    body_timeout_s: float = 120.0
    pause_timeout_s: float = 20.0
    held_max_bytes: int = 128 * 1024 * 1024
    share_bytes: int = 64 * 1024 * 1024


@dataclass(slots=True, eq=False)
class _Body:
    """What a request has sent so far; `deadline` ends the waiting for more of it."""

    client: str
    size: int = 0
    deadline: asyncio.Timeout | None = None
    is_crowded_out: bool = False

    def crowd_out(self) -> bool:
        """End the waiting for more; False if nobody waits for any."""
        if self.deadline is None or self.deadline.expired():
            return False
        self.is_crowded_out, self.size = True, 0
        self.deadline.reschedule(0)
        return True


_CROWDED = "The server is taking in as much as it can. Try again in a minute."


class LimitReceiving:
    """ASGI middleware; what it refuses is raised where the route reads, and answered by its handlers."""

    def __init__(self, app: ASGIApp, limits: ReceivingLimits | None = None) -> None:
        self._app = app
        self._limits = limits or ReceivingLimits()
        self._bodies: dict[_Body, None] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on, with a `receive` that keeps the limits."""
        if scope["type"] != "http" or not has_body(scope):
            await self._app(scope, receive, send)
            return
        ends_at = time.monotonic() + self._limits.body_timeout_s
        body = _Body(client_of(scope))
        is_whole = False

        async def receive_in_time() -> Message:
            nonlocal is_whole
            if is_whole:  # what comes now is the client's hanging up
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
