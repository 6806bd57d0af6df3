"""The MCP server: tools and resources as the protocol's library wants them, over HTTP at `/mcp` or stdio.

What a tool refuses comes back as a tool error of one line, which the model can act on; a fault is logged, not
sent. Over HTTP there are no sessions, and answers are JSON: a call is one POST, so any process behind a load
balancer can take it. A page of another site must not reach a server on somebody's own machine through that
person's browser (DNS rebinding), so only loopback names and TRIAGE_PUBLIC_HOSTS are answered.
"""

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from inspect import signature
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import (
    ResourceError,
    ResourceNotFoundError,
    ToolError,
    UnexpectedToolError,
)
from mcp.server.mcpserver.tools import Tool
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic import ValidationError
from pydantic_core import ErrorDetails
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import __version__
from app.errors import InputError, NotFoundError, SchemaError, StoreError, TriageError
from app.knowledge.markdown import NOTICE, cut_markdown
from app.web.answers.problems import answer_problem
from app.web.body import MalformedError, check_structure, nearest, read_limited
from app.web.deps import Services
from app.web.mcp.shapes import output_schema
from app.web.mcp.tools import TOOLS, Hint, ResourceNumber, Tools, issue_report, week_digest

NAME = "vllm-triage"
RESOURCE_CHARS_MAX = 100_000
MARKDOWN_TYPE = "text/markdown"

INSTRUCTIONS = f"""
Known failures of vLLM, from its issues and pull requests, with sources. Given a crash log, call diagnose_log
first and pass the complete, unchanged log: the cause is often far above the last line. Report the verdict
unchanged: `same` and `likely` are known issues, `related` and `unknown` are not. Cite the issue's URL with
every statement. A workaround with outcome `fails` did not help. {NOTICE}
"""

READS_ONLY = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)


class TriageServer(MCPServer[Any]):
    """The library's server, with our refusals as one line each."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Any = None
    ) -> CallToolResult | InputRequiredResult:
        _check_names(name, arguments)
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            cause = error.__cause__
            is_broken = isinstance(error, UnexpectedToolError)
            if isinstance(cause, TriageError) or (isinstance(cause, ValidationError) and not is_broken):
                raise ToolError(_one_line(cause)) from cause
            if is_broken:
                raise UnexpectedToolError("The tool failed; the server's log has the error.") from cause
            raise ToolError("Unknown tool; see tools/list.") from None

    async def read_resource(self, uri: Any, context: Any = None) -> Iterable[Any] | InputRequiredResult:
        try:
            return await super().read_resource(uri, context)
        except ResourceError as error:
            cause = error.__cause__
            if isinstance(cause, ValidationError | NotFoundError | InputError):
                raise ResourceNotFoundError(_one_line(cause)) from cause
            if isinstance(cause, TriageError):
                raise ResourceError(_one_line(cause)) from cause
            raise


def _check_names(tool: str, arguments: Iterable[str]) -> None:
    """Refuse an argument that the tool does not have; the library would ignore it."""
    if tool not in TOOLS:
        return
    known = [name for name in signature(getattr(Tools, tool)).parameters if name != "self"]
    for given in arguments:
        if given not in known:
            near = nearest(given, known)
            hint = f"the nearest is {near}" if near else f"there are {', '.join(known)}"
            raise ToolError(f"An argument of {tool} is unknown; {hint}.")


def _one_line(fault: TriageError | ValidationError) -> str:
    """What is wrong and what to do; nothing that the caller sent is repeated."""
    if isinstance(fault, ValidationError):
        errors = fault.errors(include_input=False, include_url=False, include_context=False)
        words = (f"{'.'.join(map(str, item['loc']))}: {_fault(item)}" for item in errors[:5])
        return "; ".join(words) + "."
    if isinstance(fault, StoreError) and not isinstance(fault, SchemaError):
        return "The database cannot be used just now. Try again in 30 seconds."
    return fault.message


def _fault(item: ErrorDetails) -> str:
    """What is wrong with an argument; the library speaks of Python where it is empty."""
    return "is empty" if item["type"] in {"too_short", "string_too_short"} else item["msg"]


def build_server(services: Services) -> TriageServer:
    """The server; it holds no state of its own."""
    server = TriageServer(
        NAME,
        title="vLLM Triage",
        version=__version__,
        instructions=_one_paragraph(INSTRUCTIONS),
        description="The known issue behind a vLLM crash log, what helps, and whether a release fixes it.",
        subscriptions=False,
        log_level="WARNING",
        tools=[_tool(Tools(services), name) for name in TOOLS],
    )
    _add_resources(server, services)
    return server


def _tool(tools: Tools, name: str) -> Tool:
    title, shape = TOOLS[name]
    function = getattr(tools, name)
    tool = Tool.from_function(
        function,
        title=title,
        description=_one_paragraph(function.__doc__),
        annotations=READS_ONLY,
    )
    tool.fn_metadata.output_schema = output_schema(name, shape)
    return tool


def _one_paragraph(text: str) -> str:
    return " ".join(text.split())


def _add_resources(server: TriageServer, services: Services) -> None:
    @server.resource(
        "vllm-triage://issues/{number}",
        name="issue",
        title="Report on an issue",
        mime_type=MARKDOWN_TYPE,
        description="Report on an issue of the default repository, with quotes, as Markdown.",
    )
    def issue(number: ResourceNumber) -> str:
        return cut_markdown(issue_report(services, None, number), RESOURCE_CHARS_MAX)

    @server.resource(
        "vllm-triage://repos/{owner}/{name}/issues/{number}",
        name="repo_issue",
        mime_type=MARKDOWN_TYPE,
        title="Report on an issue of any repository",
        description="Report on an issue of another configured repository, as Markdown.",
    )
    def repo_issue(owner: str, name: str, number: ResourceNumber) -> str:
        return cut_markdown(issue_report(services, f"{owner}/{name}", number), RESOURCE_CHARS_MAX)

    @server.resource(
        "vllm-triage://digest/{week}",
        name="digest",
        title="Digest of a week",
        mime_type=MARKDOWN_TYPE,
        description="What broke, what got fixed and what to do in an ISO week such as 2026-W46, as Markdown.",
    )
    def digest(week: Hint) -> str:
        return cut_markdown(week_digest(services, week), RESOURCE_CHARS_MAX)


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
    """Refuse what the library, which parses it on the event loop, would make too much of."""
    try:
        check_structure(content.decode())
    except UnicodeDecodeError:
        raise MalformedError("A message is UTF-8.") from None
    if b"\0" in content:  # the library's parser takes it for UTF-16, in which quotes stand elsewhere
        raise MalformedError("A message is UTF-8.")


class McpDoor:
    """ASGI endpoint: passes calls to the opened server; its bare refusals become problems."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = ROUTE  # its template names the call in the metrics
        answer = _refusal(scope, 405) if scope["method"] != "POST" else await _call(scope, receive)
        await answer(scope, receive, send)


async def _call(scope: Scope, receive: Receive) -> Response:
    """Pass a call to the library, whose answer is one JSON document."""
    content: bytes | None
    content = await read_limited(Request(scope, receive), BODY_LIMIT_BYTES, _REFUSALS[413])
    await run_in_threadpool(_check, content)
    sent: list[Message] = []

    async def receive_again() -> Message:
        nonlocal content
        if content is None:
            return await receive()
        message = {"type": "http.request", "body": content, "more_body": False}
        content = None
        return message

    async def collect(message: Message) -> None:
        sent.append(message)

    await scope["app"].state.mcp(scope, receive_again, collect)
    start, *parts = sent
    headers = MutableHeaders(raw=start["headers"])
    if start["status"] in _REFUSALS and "json" not in headers.get("content-type", ""):
        return _refusal(scope, start["status"])
    del headers["content-length"]
    body = b"".join(part.get("body", b"") for part in parts)
    return Response(_without_input(body), start["status"], headers)


def _refusal(scope: Scope, status: int) -> Response:
    headers = {"Allow": "POST"} if status == 405 else None
    return answer_problem(Request(scope), status, _REFUSALS[status], headers=headers)


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


def _without_input(content: bytes) -> bytes:
    """Remove what the caller sent, which may be a line of a log, from an error of the library."""
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
