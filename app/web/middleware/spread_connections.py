"""Kept-open connections of a busy worker process close, so that their clients come back to a free one.

The workers of one server take connections from one socket, and a connection stays with who took it: a worker
may have a queue while its sibling has nothing to do. A new connection is taken by whoever is free first.
"""

from __future__ import annotations

from anyio.to_thread import current_default_thread_limiter
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Receive, Scope, Send

from app.web.middleware.headers import at_start


class SpreadConnections:
    """ASGI middleware of one of several workers: `Connection: close` while it works on other requests."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on; by the time its answer starts, its own thread is free again."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        def spread(headers: MutableHeaders) -> None:
            if current_default_thread_limiter().borrowed_tokens:
                headers["Connection"] = "close"

        await self._app(scope, receive, at_start(send, spread))
