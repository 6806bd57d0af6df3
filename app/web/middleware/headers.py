"""The moment in which an answer's headers can still be changed.

What every answer carries, so that a browser runs nothing but our own style sheet and script.
"""

from __future__ import annotations

from collections.abc import Callable

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send


def at_start(send: Send, change: Callable[[MutableHeaders], None]) -> Send:
    """What sends an answer as `send` does, its headers changed first."""

    async def send_changed(message: Message) -> None:
        if message["type"] == "http.response.start":
            change(MutableHeaders(scope=message))
        await send(message)

    return send_changed


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

_PAIRS = tuple((name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items())
HSTS = "max-age=31536000"
"""Told only over TLS, a trusted proxy's included: a browser then comes back by TLS for a year."""


class SecurityHeaders:
    """ASGI middleware that adds them where the answer has none of that name."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on; add the headers as the answer starts."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        def add(headers: MutableHeaders) -> None:
            told = {name for name, _ in headers.raw}
            headers.raw.extend(pair for pair in _PAIRS if pair[0] not in told)
            if scope.get("scheme") == "https":
                headers.setdefault("Strict-Transport-Security", HSTS)

        await self._app(scope, receive, at_start(send, add))
