"""Bodies on their way in: how long one may take, and how much of all of them is held at a time.

Each route limits the size of its own body while it reads (`app.web.body`); this stands before all routes,
so that a client that dribbles, or many that send much at once, cannot use up the worker.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import TriageError


class TooSlowError(TriageError):
    """A body did not arrive in time."""

    status = 408


class CrowdedError(TriageError):
    """The bodies of other requests fill the memory set aside for them."""

    status = 503


@dataclass(frozen=True, slots=True)
class ReceivingLimits:
    """How long a whole body may take (10 MiB at 85 KiB a second), and the time between two parts of it.

    `held_max_bytes`: of all bodies of a worker together, from their first byte to the end of their answers.
    """

    body_timeout_s: float = 120.0
    pause_timeout_s: float = 20.0
    held_max_bytes: int = 256 * 1024 * 1024


class LimitReceiving:
    """ASGI middleware; what it refuses is raised where the route reads, and answered by its handlers."""

    def __init__(self, app: ASGIApp, limits: ReceivingLimits | None = None) -> None:
        self._app = app
        self._limits = limits or ReceivingLimits()
        self._held_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on, with a `receive` that keeps the limits."""
        if scope["type"] != "http" or not _has_body(scope):
            await self._app(scope, receive, send)
            return
        ends_at = time.monotonic() + self._limits.body_timeout_s
        mine = 0
        is_whole = False

        async def receive_in_time() -> Message:
            nonlocal mine, is_whole
            if is_whole:  # what comes now is the client's hanging up
                return await receive()
            message = await self._next(receive, ends_at)
            size = len(message.get("body", b""))
            mine += size
            self._held_bytes += size
            if self._held_bytes > self._limits.held_max_bytes:
                raise CrowdedError("The server is taking in as much as it can. Try again in a minute.")
            is_whole = not message.get("more_body", False)
            return message

        try:
            await self._app(scope, receive_in_time, send)
        finally:
            self._held_bytes -= mine

    async def _next(self, receive: Receive, ends_at: float) -> Message:
        patience_s = min(self._limits.pause_timeout_s, ends_at - time.monotonic())
        try:
            return await asyncio.wait_for(receive(), max(patience_s, 0.001))
        except TimeoutError:
            raise TooSlowError("The body did not arrive in time. Send it again, in one go.") from None


def _has_body(scope: Scope) -> bool:
    names = {name for name, _ in scope["headers"]}
    return b"content-length" in names or b"transfer-encoding" in names
