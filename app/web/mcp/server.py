"""The MCP server: the tools and the resources, as the protocol's library wants them.

In: the services. Out: a server that speaks over HTTP (`app.web.mcp.http`) or stdio (`triage mcp`). What a
tool refuses comes back as a tool error of one line, which the model can act on; a fault is logged, not sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import (
    ResourceError,
    ResourceNotFoundError,
    ToolError,
    UnexpectedToolError,
)
from mcp.types import CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from app import __version__
from app.errors import InputError, NotFoundError, SchemaError, StoreError, TriageError
from app.knowledge.markdown import NOTICE, cut_markdown
from app.web.deps import Services
from app.web.mcp.tools import TITLES, Hint, ResourceNumber, Tools, issue_report, week_digest

NAME = "vllm-triage"
RESOURCE_CHARS_MAX = 100_000
MARKDOWN_TYPE = "text/markdown"

INSTRUCTIONS = f"""
Known failures of vLLM, from its issues and pull requests, with sources. Given a crash log, call diagnose_log
first and pass the log as it is, the whole of it: the cause often stands far above the last line. Tell the
verdict as it is: `same` and `likely` are known issues, `related` and `unknown` are not. Name the issue's URL
with every statement. A remedy whose outcome is `fails` did not help. {NOTICE}
"""

READS_ONLY = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)


class TriageServer(MCPServer[Any]):
    """The library's server, with our refusals as one line each."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Any = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool.

        Raises:
            ToolError: what the model did wrong, or what is not to be had, in one line.
            UnexpectedToolError: the tool broke.
        """
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            cause = error.__cause__
            is_broken = isinstance(error, UnexpectedToolError)
            if isinstance(cause, TriageError) or (isinstance(cause, ValidationError) and not is_broken):
                raise ToolError(_one_line(cause)) from cause
            if is_broken:
                raise UnexpectedToolError("The tool failed on this call; the fault is in its log.") from cause
            raise ToolError("There is no such tool: tools/list names them.") from None

    async def read_resource(self, uri: Any, context: Any = None) -> Iterable[Any] | InputRequiredResult:
        """Read a resource.

        Raises:
            ResourceNotFoundError: nothing is stored under that address, or it is none.
            ResourceError: it cannot be read just now.
        """
        try:
            return await super().read_resource(uri, context)
        except ResourceError as error:
            cause = error.__cause__
            if isinstance(cause, ValidationError | NotFoundError | InputError):
                raise ResourceNotFoundError(_one_line(cause)) from cause
            if isinstance(cause, TriageError):
                raise ResourceError(_one_line(cause)) from cause
            raise


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
    )
    tools = Tools(services)
    for name, title in TITLES.items():
        tool = getattr(tools, name)
        description = _one_paragraph(tool.__doc__)
        server.add_tool(tool, name=name, title=title, description=description, annotations=READS_ONLY)
    _add_resources(server, services)
    return server


def _one_paragraph(text: str) -> str:
    return " ".join(text.split())


def _add_resources(server: TriageServer, services: Services) -> None:
    @server.resource(
        "vllm-triage://issues/{number}",
        name="issue",
        title="Report on an issue",
        mime_type=MARKDOWN_TYPE,
        description="All that is known of an issue of the default repository, with quotes, as Markdown.",
    )
    def issue(number: ResourceNumber) -> str:
        return cut_markdown(issue_report(services, None, number), RESOURCE_CHARS_MAX)

    @server.resource(
        "vllm-triage://repos/{owner}/{name}/issues/{number}",
        name="repo_issue",
        mime_type=MARKDOWN_TYPE,
        title="Report on an issue of any repository",
        description="The same for another repository.",
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
