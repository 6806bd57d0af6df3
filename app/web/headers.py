"""Response headers: change them when a response starts; security headers; connection spreading."""

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
"""Browsers load only our own style sheet, script and images."""
HSTS = "max-age=31536000"
"""Sent only over TLS (also a trusted proxy's); browsers then use TLS for a year."""


def at_start(send: Send, change: Callable[[MutableHeaders], None]) -> Send:
    """Wrap `send` so that `change` is applied to the response's headers before they are sent."""

    async def send_changed(message: Message) -> None:
        if message["type"] == "http.response.start":
            change(MutableHeaders(scope=message))
        await send(message)

    return send_changed


class SecurityHeaders:
    """ASGI middleware that adds each of `SECURITY_HEADERS` that the response does not set itself."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the app; add the headers when the response starts."""

        def add(headers: MutableHeaders) -> None:
            for name, value in SECURITY_HEADERS.items():
                headers.setdefault(name, value)
            if scope.get("scheme") == "https":
                headers.setdefault("Strict-Transport-Security", HSTS)

        await self._app(scope, receive, at_start(send, add))


class SpreadConnections:
    """ASGI middleware for multiple workers: send `Connection: close` while other requests are in progress.

    Workers accept connections from one socket and keep them, so a worker may have a queue while another is
    idle. A client that must reconnect gets a worker that is free.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._asking = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the app; check for other requests when the response starts."""
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
