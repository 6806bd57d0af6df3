"""Headers of answers: how to change them as an answer starts, and those that every answer carries."""

from collections.abc import Callable

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "X-Frame-Options": "DENY",
}
"""With these a browser runs nothing but our own style sheet and script."""
HSTS = "max-age=31536000"
"""Sent only over TLS, a trusted proxy's included: a browser then comes back by TLS for a year."""


def at_start(send: Send, change: Callable[[MutableHeaders], None]) -> Send:
    """A `send` that changes an answer's headers before it sends them."""

    async def send_changed(message: Message) -> None:
        if message["type"] == "http.response.start":
            change(MutableHeaders(scope=message))
        await send(message)

    return send_changed


class SecurityHeaders:
    """ASGI middleware that adds `SECURITY_HEADERS` where the answer has none of that name."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on; add the headers as the answer starts."""

        def add(headers: MutableHeaders) -> None:
            for name, value in SECURITY_HEADERS.items():
                headers.setdefault(name, value)
            if scope.get("scheme") == "https":
                headers.setdefault("Strict-Transport-Security", HSTS)

        await self._app(scope, receive, at_start(send, add))


class SpreadConnections:
    """ASGI middleware of one of several workers: `Connection: close` while it works on other requests.

    The workers take connections from one socket, and a connection stays with who took it: a worker may have a
    queue while its sibling is idle. A client that must connect again comes to a worker that is free.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._asking = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on; look at the others as its answer starts."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        def spread(headers: MutableHeaders) -> None:
            if self._asking > 1:
                headers["Connection"] = "close"

        self._asking += 1
        try:
            await self._app(scope, receive, at_start(send, spread))
        finally:
            self._asking -= 1
