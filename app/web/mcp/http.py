"""`/mcp`: the MCP server over Streamable HTTP, without sessions, with JSON answers.

A call is one POST, so any process behind a load balancer can take it. Who may call by which name is decided
here: a page of another site must not reach a server on somebody's own machine through that person's browser
(DNS rebinding), so only loopback names and TRIAGE_PUBLIC_HOSTS are answered.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from mcp.server.streamable_http_manager import StreamableHTTPASGIApp
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.web.answers.problems import PROBLEM_TYPE
from app.web.answers.schemas import Problem
from app.web.deps import Services
from app.web.mcp.server import build_server

PATH = "/mcp"
BODY_LIMIT_BYTES = 32 * 1024 * 1024
"""A log of 10 MiB with every third character escaped."""
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

_REFUSALS = {
    400: ("Malformed request", "Send one JSON-RPC message as application/json."),
    403: ("Not allowed", "This origin is not allowed here; TRIAGE_PUBLIC_HOSTS names those that are."),
    405: (
        "Method not allowed",
        "MCP is spoken here: send a POST. There are no sessions and no event stream.",
    ),
    406: ("Not acceptable", "Accept application/json and text/event-stream."),
    413: ("Too large", f"A message may have {BODY_LIMIT_BYTES // 1048576} MiB. Cut the log's start."),
    421: ("Not this host", "The server is not known by this name; TRIAGE_PUBLIC_HOSTS must hold it."),
}


class McpDoor:
    """ASGI endpoint: passes calls to the server that the lifespan opened, and words refusals as problems."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call."""
        scope["route"] = ROUTE  # its template names the call in the metrics
        if scope["method"] != "POST":
            await _refusal(405, {"Allow": "POST"})(scope, receive, send)
            return
        speaker: ASGIApp = scope["app"].state.mcp
        await speaker(scope, receive, _Worded(scope, receive, send))


class _Worded:
    """Sends what the library answers; its bare refusals in our words."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._is_done = False

    async def __call__(self, message: Message) -> None:
        if self._is_done:
            return
        is_refused = message["type"] == "http.response.start" and message["status"] in _REFUSALS
        if is_refused and "json" not in MutableHeaders(scope=message).get("content-type", ""):
            self._is_done = True
            await _refusal(message["status"])(self._scope, self._receive, self._send)
            return
        await self._send(message)


def _refusal(status: int, headers: dict[str, str] | None = None) -> Response:
    title, detail = _REFUSALS[status]
    problem = Problem(type="about:blank", title=title, status=status, detail=detail)
    return Response(
        problem.model_dump_json(exclude_none=True), status, headers=headers, media_type=PROBLEM_TYPE
    )


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
        yield StreamableHTTPASGIApp(server.session_manager)


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
