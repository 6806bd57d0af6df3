"""Reads that need no second copy: an `ETag` on every answer, 304 for who has it, and `HEAD` beside `GET`.

The tag is a hash of the answer before compression, and weak: the same answer goes out with and without gzip.
It spares the way, not the work; the answer is made to be compared.
"""

from __future__ import annotations

import hashlib

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_TAGGED = (
    "application/json",
    "application/atom+xml",
    "application/xml",
    "text/html",
    "text/markdown",
    "text/plain",
    "image/svg+xml",
)
_UNTAGGED = frozenset({"/metrics", "/healthz", "/readyz"})
"""What is never the same twice."""
_STREAM = "/mcp"
_STAYS = frozenset({b"cache-control", b"content-location", b"etag", b"expires", b"vary", b"link"})
"""Headers that a 304 repeats (RFC 9110, 15.4.5)."""
_IF_NONE_MATCH_CHARS = 4000
_TAG_BYTES = 12


class ConditionalReads:
    """ASGI middleware; stands inside the compression."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a read on as GET; hold its answer back until it is known whether the caller has it."""
        is_read = scope["type"] == "http" and scope["method"] in {"GET", "HEAD"}
        if not is_read or scope["path"].startswith(_STREAM):
            await self._app(scope, receive, send)
            return
        reply = _Reply(scope, send)
        method, scope["method"] = scope["method"], "GET"
        try:
            await self._app(scope, receive, reply.take)
        finally:
            scope["method"] = method  # what answers a failure must know that a HEAD has no body


class _Reply:
    """The answer to one read, on its way out."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.is_head = scope["method"] == "HEAD"
        self._scope = scope
        self._pass_on = send
        self._start: Message | None = None
        self._body = bytearray()

    async def take(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            if not self._is_tagged(message):
                await self._send(message)
                self._start = None
        elif message["type"] == "http.response.body":
            await self._take_body(message)
        else:
            await self._send(message)

    async def _send(self, message: Message) -> None:
        if self.is_head:  # the server looks at the method: a HEAD's answer has no body
            self._scope["method"] = "HEAD"
        await self._pass_on(message)

    async def _take_body(self, message: Message) -> None:
        if self._start is None:
            await self._send({**message, "body": b""} if self.is_head else message)
            return
        self._body += message.get("body", b"")
        if message.get("more_body"):
            return
        tag = f'W/"{hashlib.blake2b(self._body, digest_size=_TAG_BYTES).hexdigest()}"'
        headers = MutableHeaders(scope=self._start)
        headers["ETag"] = tag
        headers.setdefault("Cache-Control", "no-cache")
        sent = Headers(scope=self._scope).get("if-none-match", "")
        if sent and _names(sent, tag):
            headers.add_vary_header("Accept-Encoding")  # as the compression adds to the answer itself
            kept = [pair for pair in self._start["headers"] if pair[0].lower() in _STAYS]
            await self._send({**self._start, "status": 304, "headers": kept})
            await self._send({"type": "http.response.body", "body": b""})
            return
        await self._send(self._start)
        await self._send({"type": "http.response.body", "body": b"" if self.is_head else bytes(self._body)})

    def _is_tagged(self, start: Message) -> bool:
        headers = Headers(raw=start["headers"])
        return (
            start["status"] == 200
            and "etag" not in headers
            and headers.get("content-type", "").startswith(_TAGGED)
            and "no-store" not in headers.get("cache-control", "")
            and self._scope["path"] not in _UNTAGGED
        )


def _names(sent: str, tag: str) -> bool:
    """Whether `If-None-Match` names the tag, compared weakly."""
    wanted = tag.removeprefix("W/")
    told = (part.strip().removeprefix("W/") for part in sent[:_IF_NONE_MATCH_CHARS].split(","))
    return any(part in {"*", wanted} for part in told)
