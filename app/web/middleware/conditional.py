"""Conditional requests: an `ETag` on responses, 304 for clients that have it; and `HEAD` for every `GET`.

The tag is a hash of the uncompressed response, and weak, as the same response is sent with and without gzip.
This saves transfer, not computation: the response is still generated to be hashed.
"""

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
"""Responses that are never the same twice."""
_STREAM = "/mcp"
_STAYS = frozenset({b"cache-control", b"content-location", b"etag", b"expires", b"vary", b"link"})
"""Headers that a 304 repeats (RFC 9110, 15.4.5)."""
_IF_NONE_MATCH_CHARS = 4000
_TAG_BYTES = 12


class ConditionalReads:
    """ASGI middleware; must be inside the compression middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle GET and HEAD as GET; buffer the response until its tag is compared with the client's."""
        method = scope.get("method", "")
        if method not in {"GET", "HEAD"} or scope["path"].startswith(_STREAM):
            await self._app(scope, receive, send)
            return
        start: Message | None = None
        body = bytearray()

        async def pass_on(message: Message) -> None:
            scope["method"] = method  # the server checks it: a HEAD response has no body
            await send({**message, "body": b""} if method == "HEAD" and "body" in message else message)

        async def take(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start" and _is_tagged(scope, message):
                start = message
            elif message["type"] != "http.response.body" or start is None:
                await pass_on(message)
            else:
                body += message.get("body", b"")
                if not message.get("more_body"):
                    start, content = _tagged(scope, start, bytes(body))
                    await pass_on(start)
                    await pass_on({"type": "http.response.body", "body": content})

        scope["method"] = "GET"
        try:
            await self._app(scope, receive, take)
        finally:
            scope["method"] = method  # exception handlers must know that a HEAD response has no body


def _is_tagged(scope: Scope, start: Message) -> bool:
    headers = Headers(raw=start["headers"])
    return (
        start["status"] == 200
        and "etag" not in headers
        and headers.get("content-type", "").startswith(_TAGGED)
        and "no-store" not in headers.get("cache-control", "")
        and scope["path"] not in _UNTAGGED
    )


def _tagged(scope: Scope, start: Message, body: bytes) -> tuple[Message, bytes]:
    """Return the response with its tag, or a 304 if the client has it."""
    tag = f'"{hashlib.blake2b(body, digest_size=_TAG_BYTES).hexdigest()}"'
    headers = MutableHeaders(scope=start)
    headers["ETag"] = f"W/{tag}"
    headers.setdefault("Cache-Control", "no-cache")
    sent = Headers(scope=scope).get("if-none-match", "")[:_IF_NONE_MATCH_CHARS]
    if not {"*", tag} & {part.strip().removeprefix("W/") for part in sent.split(",")}:
        return start, body
    headers.add_vary_header("Accept-Encoding")  # as the compression does on the full response
    kept = [pair for pair in start["headers"] if pair[0].lower() in _STAYS]
    return {**start, "status": 304, "headers": kept}, b""
