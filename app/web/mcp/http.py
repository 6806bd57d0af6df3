"""`/mcp`: the MCP server over Streamable HTTP, without sessions, with JSON answers.

A call is one POST, so any process behind a load balancer can take it. Who may call by which name is decided
here: a page of another site must not reach a server on somebody's own machine through that person's browser
(DNS rebinding), so only loopback names and TRIAGE_PUBLIC_HOSTS are answered.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from mcp.server.streamable_http_manager import StreamableHTTPASGIApp
from mcp.server.transport_security import TransportSecuritySettings
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.web.answers.problems import answer_problem
from app.web.body import MalformedError, check_structure, read_limited
from app.web.deps import Services
from app.web.mcp.server import build_server

PATH = "/mcp"
BODY_LIMIT_BYTES = 16 * 1024 * 1024
"""A log of 10 MiB with every tenth character escaped. The library parses it on the event loop: 3 ms a MiB."""
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

_REFUSALS = {
    400: "Send one JSON-RPC message as application/json.",
    403: "This origin is not allowed here; TRIAGE_PUBLIC_HOSTS names those that are.",
    405: "MCP is spoken here: send a POST. There are no sessions and no event stream.",
    406: "Accept application/json and text/event-stream.",
    413: f"A message may have {BODY_LIMIT_BYTES // 1048576} MiB. Cut the log's start.",
    421: "The server is not known by this name; TRIAGE_PUBLIC_HOSTS must hold it.",
}


_REPEATING = frozenset({"Validation error", "Parse error", "Unknown resource", "Unknown prompt"})
"""How messages of the library begin that go on with the caller's own words."""


def _check(content: bytes) -> None:
    """Refuse what the library, which parses it on the event loop, would make too much of.

    Raises:
        MalformedError: it is not UTF-8, or has too many parts.
    """
    try:
        check_structure(content.decode())
    except UnicodeDecodeError:
        raise MalformedError("A message is UTF-8.") from None
    if b"\0" in content:  # the library's parser takes it for UTF-16, in which quotes stand elsewhere
        raise MalformedError("A message is UTF-8.")


class McpDoor:
    """ASGI endpoint: passes calls to the opened server; its bare refusals become problems."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call."""
        scope["route"] = ROUTE  # its template names the call in the metrics
        refused = 0 if scope["method"] == "POST" else 405

        async def send_unless_bare(message: Message) -> None:
            nonlocal refused
            if message["type"] == "http.response.start" and message["status"] in _REFUSALS:
                is_bare = "json" not in Headers(raw=message["headers"]).get("content-type", "")
                refused = message["status"] if is_bare else 0
            if not refused:
                await send(message)

        if not refused:
            content: bytes | None
            content = await read_limited(Request(scope, receive), BODY_LIMIT_BYTES, _REFUSALS[413])
            await run_in_threadpool(_check, content)

            async def receive_again() -> Message:
                nonlocal content
                if content is None:
                    return await receive()
                message = {"type": "http.request", "body": content, "more_body": False}
                content = None
                return message

            speaker: ASGIApp = scope["app"].state.mcp
            await speaker(scope, receive_again, send_unless_bare)
        if refused:
            headers = {"Allow": "POST"} if refused == 405 else None
            answer = answer_problem(Request(scope), refused, _REFUSALS[refused], headers=headers)
            await answer(scope, receive, send)


ROUTE = Route(PATH, endpoint=McpDoor(), include_in_schema=False)


@asynccontextmanager
async def speaking(services: Services) -> AsyncIterator[ASGIApp]:
    """The server at work for as long as the context lasts; what it gives goes to `app.state.mcp`."""
    server = build_server(services)
    server.streamable_http_app(
        stateless_http=True,
        json_response=True,
        max_request_body_size=BODY_LIMIT_BYTES,
        transport_security=allowed(services.settings.public_hosts),
    )
    async with server.session_manager.run():
        yield _PlainErrors(StreamableHTTPASGIApp(server.session_manager))


class _PlainErrors:
    """ASGI: the library's errors without what the caller sent, which may be a line of a log."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on; its answer is one JSON document."""
        start: Message | None = None

        async def send_plain(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message
                return
            if start is not None:
                message = {**message, "body": _without_input(message.get("body", b""))}
                MutableHeaders(scope=start)["Content-Length"] = str(len(message["body"]))
                await send(start)
                start = None
            await send(message)

        await self._app(scope, receive, send_plain)


def _without_input(content: bytes) -> bytes:
    if b'"error":{' not in content:  # in a text its quotes would be escaped
        return content
    answer = json.loads(content)
    if "error" not in answer:  # a schema has such a field
        return content
    answer["error"].pop("data", None)
    noun, is_cut, _ = answer["error"]["message"].partition(": ")
    if is_cut and noun in _REPEATING:
        answer["error"]["message"] = f"{noun}."
    return json.dumps(answer).encode()


def allowed(public_hosts: Sequence[str]) -> TransportSecuritySettings:
    """The accepted Host and Origin headers: loopback and the public names, on any port by default."""
    hosts = [
        form
        for name in (*LOOPBACK, *public_hosts)
        for form in ((name,) if name.rpartition("]")[2].count(":") else (name, f"{name}:*"))
    ]
    origins = [f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True, allowed_hosts=hosts, allowed_origins=origins
    )
