"""The MCP server: five read-only tools and the resources, as the protocol's library wants them.

In: a services. Out: a server that speaks over HTTP (`mcp_http`) or stdio (`triage mcp`). What a tool refuses
comes back as a tool error of one line, which the model can act on; what breaks is logged, and nothing of it
is told. The library runs the tools in the thread pool, so that none holds up the event loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import (
    ResourceError,
    ResourceNotFoundError,
    ToolError,
    UnexpectedToolError,
)
from mcp.types import CallToolResult, InputRequiredResult, TextContent, ToolAnnotations
from pydantic import BeforeValidator, Field, ValidationError

from app import __version__
from app.config import LOG_LIMIT_BYTES
from app.errors import InputError, NotFoundError, SchemaError, StoreError, TriageError
from app.knowledge.diagnosis.log_input import clean_words
from app.knowledge.issue.facets import IssueQuery
from app.knowledge.text.quoting import NOTICE, cut_markdown, without_surrogates
from app.web.answers.schemas import NUMBER_MAX
from app.web.deps import Services
from app.web.mcp import tools as mcp_tools
from app.web.mcp.budget import DEFAULT_ANSWER_CHARS, MAX_ANSWER_CHARS, MIN_ANSWER_CHARS, Fitted
from app.web.mcp.shapes import DiagnosisAnswer, FixAnswer, IssueShort, KnownAnswer, SearchAnswer

NAME = "vllm-triage"
RESOURCE_CHARS_MAX = 100_000
MARKDOWN_TYPE = "text/markdown"

INSTRUCTIONS = f"""
Known failures of vLLM, from its issues and pull requests, with sources. Given a crash log, call diagnose_log
first and pass the log as it is, the whole of it: the cause often stands far above the last line. Tell the
verdict as it is: `same` and `likely` are known issues, `related` and `unknown` are not. Name the issue's URL
with every statement. A remedy whose outcome is `fails` was tried in vain. {NOTICE}
"""

READS_ONLY = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)


def _clean(value: Any) -> Any:
    """A text without lone surrogates, which the library refuses; other values as they are."""
    return clean_words(value) if isinstance(value, str) else value


def _log_text(value: Any) -> Any:
    """A log without lone surrogates; its control characters are the log's reader's business."""
    return without_surrogates(value) if isinstance(value, str) else value


LogText = Annotated[
    str,
    BeforeValidator(_log_text),
    Field(
        min_length=1,
        description="the log as it was printed, start-up lines and all processes included; at most "
        f"{LOG_LIMIT_BYTES // 1048576} MiB; nothing of it is kept",
    ),
]
Hint = Annotated[str, BeforeValidator(_clean), Field(max_length=300)]
VersionHint = Annotated[
    Hint | None, Field(description="the vLLM version that runs, such as 0.19.0; the fix is seen from it")
]
GpuHint = Annotated[Hint | None, Field(description="the GPU, such as H100, where the log does not say")]
ModelHint = Annotated[
    Hint | None, Field(description="the model, such as Qwen/Qwen3-8B, where the log does not say")
]
GpuFilter = Annotated[Hint | None, Field(description="only issues that tell this GPU, such as H100")]
ModelFilter = Annotated[Hint | None, Field(description="only issues of this model or family, such as qwen")]
BackendFilter = Annotated[
    Hint | None, Field(description="only issues of this backend or quantization, such as FlashInfer or fp8")
]
VersionFilter = Annotated[Hint | None, Field(description="only issues that fail in this vLLM version")]
Limit = Annotated[int, Field(ge=1, le=50, description="most issues to return")]
RepoName = Annotated[Hint | None, Field(description="owner/name; the default repository without it")]
Number = Annotated[int, Field(ge=1, le=NUMBER_MAX, description="the issue's number on GitHub, without #")]
ResourceNumber = Annotated[int, Field(ge=1, le=NUMBER_MAX)]
MaxChars = Annotated[
    int,
    Field(
        ge=MIN_ANSWER_CHARS,
        le=MAX_ANSWER_CHARS,
        description="the most characters of the whole answer; what was cut is told in `truncated`",
    ),
]


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
            raise

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
        told = fault.errors(include_input=False, include_url=False, include_context=False)
        return "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in told[:5]) + "."
    if isinstance(fault, StoreError) and not isinstance(fault, SchemaError):
        return "The database cannot be used just now. Try again in a minute."
    return fault.message


def _result(answer: Fitted) -> CallToolResult:
    content = [TextContent(type="text", text=answer.text)]
    return CallToolResult(content=[*content], structured_content=answer.told)


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools, each with the signature and the description that a model sees."""

    services: Services

    def diagnose_log(
        self,
        log: LogText,
        vllm_version: VersionHint = None,
        gpu: GpuHint = None,
        model: ModelHint = None,
        max_chars: MaxChars = DEFAULT_ANSWER_CHARS,
    ) -> Annotated[CallToolResult, DiagnosisAnswer]:
        hints = mcp_tools.Hints(vllm_version, gpu, model)
        return _result(mcp_tools.diagnose_log(self.services, log, hints, max_chars))

    def search_issues(
        self,
        query: Annotated[
            Hint, Field(description="words, an error line, a flag or #number; empty where filters say enough")
        ],
        gpu: GpuFilter = None,
        model: ModelFilter = None,
        backend: BackendFilter = None,
        version: VersionFilter = None,
        limit: Limit = 10,
        max_chars: MaxChars = DEFAULT_ANSWER_CHARS,
    ) -> Annotated[CallToolResult, SearchAnswer]:
        asked = IssueQuery(
            q=query,
            gpu=gpu or None,
            model=model or None,
            backend=backend or None,
            vllm_version=version or None,
        )
        return _result(mcp_tools.search_issues(self.services, asked, limit, max_chars))

    def get_issue(
        self, number: Number, repo: RepoName = None, max_chars: MaxChars = DEFAULT_ANSWER_CHARS
    ) -> Annotated[CallToolResult, IssueShort]:
        return _result(mcp_tools.get_issue(self.services, number, repo, max_chars))

    def get_fix_status(
        self,
        number: Number,
        vllm_version: VersionHint = None,
        repo: RepoName = None,
        max_chars: MaxChars = DEFAULT_ANSWER_CHARS,
    ) -> Annotated[CallToolResult, FixAnswer]:
        return _result(mcp_tools.get_fix_status(self.services, number, vllm_version, repo, max_chars))

    def known_issues_of_version(
        self,
        version: Annotated[Hint, Field(description="a release such as 0.19.0, a build, or a commit")],
        limit: Limit = 10,
        max_chars: MaxChars = DEFAULT_ANSWER_CHARS,
    ) -> Annotated[CallToolResult, KnownAnswer]:
        return _result(mcp_tools.known_issues_of_version(self.services, version, limit, max_chars))


DESCRIPTIONS: Mapping[str, tuple[str, str]] = {
    "diagnose_log": (
        "Diagnose a vLLM crash log",
        """Finds the known vLLM issue behind a crash log: root cause, verdict, likest issues with reasons,
        what helps now, fix state. Use it whenever somebody shows a vLLM error, traceback or server log. A
        question of a few words is answered too, but never as `same`.""",
    ),
    "search_issues": (
        "Search vLLM issues",
        """Finds vLLM issues by words and by what was read out of them (GPU, model, backend, version). Use it
        for questions without a log, such as which issues speak of a feature on a GPU. For a log use
        diagnose_log.""",
    ),
    "get_issue": (
        "One vLLM issue, read",
        """What is known of one issue: error, cause as stated, remedies with outcome, fix state, GPUs, models,
        versions, regression range, each with the words it was read from. Use it for a number that a search
        or a diagnosis gave, or that the user names.""",
    ),
    "get_fix_status": (
        "Whether an issue is fixed for a version",
        """Whether an issue is fixed, by which pull request, in which release, and whether upgrading helps
        somebody who runs vllm_version (`for_you`); and what helps without the fix.""",
    ),
    "known_issues_of_version": (
        "Known failures of a vLLM version",
        """Failures that are reported in a vLLM version and were open in it or fixed only later, the most
        reported first, each with its fix release and the remedy to try first. Use it before an upgrade.""",
    ),
}
"""Title and description of each tool, as a model reads them."""


def build_server(services: Services) -> TriageServer:
    """The server over a services; it holds no state of its own."""
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
    for name, (title, description) in DESCRIPTIONS.items():
        server.add_tool(
            getattr(tools, name),
            name=name,
            title=title,
            description=_one_paragraph(description),
            annotations=READS_ONLY,
        )
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
        return _shown(mcp_tools.issue_report(services, None, number))

    @server.resource(
        "vllm-triage://repos/{owner}/{name}/issues/{number}",
        name="repo_issue",
        mime_type=MARKDOWN_TYPE,
        title="Report on an issue of any repository",
        description="The same for another repository.",
    )
    def repo_issue(owner: str, name: str, number: ResourceNumber) -> str:
        return _shown(mcp_tools.issue_report(services, f"{owner}/{name}", number))

    @server.resource(
        "vllm-triage://digest/{week}",
        name="digest",
        title="Digest of a week",
        mime_type=MARKDOWN_TYPE,
        description="What broke, what got fixed and what to do in an ISO week such as 2026-W46, as Markdown.",
    )
    def digest(week: Hint) -> str:
        return _shown(mcp_tools.week_digest(services, week))


def _shown(text: str) -> str:
    return cut_markdown(text, RESOURCE_CHARS_MAX)
