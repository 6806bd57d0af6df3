"""One line in the program's log for each request, under an id that its answer carries too.

The line has the method, the route's template, the status and the time: never an address, a query, a header
or a body, which are the caller's. Whatever else is logged while the request is answered has the id as well.
"""

from __future__ import annotations

import re
import time
import uuid

import structlog
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.web.middleware.metrics import route_of

HEADER = "X-Request-ID"
QUIET = frozenset({"/healthz", "/readyz", "/metrics", "/static"})
"""Routes that are asked all the time; logged only where they fail."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LOG = structlog.get_logger(__name__)


class LogRequests:
    """ASGI middleware. An id that the caller or a proxy sends is kept where it is a plain word."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on; write the line when the answer is out."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _id_of(scope)
        began = time.perf_counter()
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[HEADER] = request_id
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._app(scope, receive, send_with_id)
            finally:
                route = route_of(scope)
                if status >= 500 or status == 0 or route not in QUIET:
                    took_ms = round((time.perf_counter() - began) * 1000, 1)
                    _LOG.info("request", method=scope["method"], route=route, status=status, took_ms=took_ms)


def _id_of(scope: Scope) -> str:
    sent = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
    text = sent.decode("latin-1")
    return text if _ID.fullmatch(text) else uuid.uuid4().hex
