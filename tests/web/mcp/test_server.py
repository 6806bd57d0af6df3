"""The MCP server as its clients meet it: tools, resources and refusals, over HTTP, stdio and in memory."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.types import CallToolResult

from app.config import Settings
from app.store.session import Store, open_store
from app.web.answers.budget import dumps
from app.web.deps import Services
from app.web.mcp import tools
from app.web.mcp.server import RESOURCE_CHARS_MAX, build_server
from app.web.mcp.shapes import MIN_ANSWER_CHARS
from tests.served import CRASH, CRASH_NUMBER, served, starter_settings

CALLS: dict[str, dict[str, Any]] = {
    "diagnose_log": {"log": CRASH},
    "search_issues": {"query": "stream is capturing"},
    "get_issue": {"number": CRASH_NUMBER},
    "get_fix_status": {"number": CRASH_NUMBER, "vllm_version": "0.19.0"},
    "known_issues_of_version": {"version": "0.9.1"},
    "compare_versions": {"from_version": "0.18.0", "to_version": "0.19.0", "gpu": "H100"},
}
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mcp")


@pytest.fixture(scope="module")
def settings(folder: Path) -> Settings:
    return starter_settings(
        folder, public_hosts="triage.example.org, desk.example.org:8443", rate_limit="off"
    )


@pytest.fixture(scope="module")
def url(settings: Settings) -> Iterator[str]:
    with served(settings) as address:
        yield f"{address}/mcp"


@pytest.fixture(scope="module")
def store(settings: Settings) -> Iterator[Store]:
    opened = open_store(settings.database_url)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def ask(settings: Settings, store: Store) -> Callable[..., CallToolResult]:
    """Calls a tool of a server in memory."""
    server = build_server(Services(settings, store))

    async def call(name: str, arguments: dict[str, Any]) -> CallToolResult:
        async with Client(server) as client:
            return await client.call_tool(name, arguments)

    return lambda name, **arguments: asyncio.run(call(name, arguments))


def stdio(folder: Path) -> Any:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRIAGE_")}
    environment |= {
        "PYTHONPATH": str(Path(__file__).parents[3]),
        "TRIAGE_DATABASE_URL": f"sqlite:///{folder}/triage.db",
    }
    return StdioServerParameters(
        command=sys.executable, args=["-m", "app.cli", "mcp"], env=environment, cwd=str(folder)
    )


async def all_tools(client: Client) -> dict[str, CallToolResult]:
    """Every tool called once, with what the list of tools promises."""
    listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(listed) == set(CALLS)
    assert all(tool.annotations and tool.annotations.read_only_hint for tool in listed.values())
    assert all(tool.annotations.open_world_hint is False for tool in listed.values() if tool.annotations)
    assert all(tool.output_schema and tool.description for tool in listed.values())
    return {name: await client.call_tool(name, arguments) for name, arguments in CALLS.items()}


def check(told: dict[str, CallToolResult]) -> None:
    assert not [name for name, answer in told.items() if answer.is_error]
    diagnosis = told["diagnose_log"].structured_content
    assert diagnosis["verdict"] in {"same", "likely"}
    assert diagnosis["matches"][0]["number"] == CRASH_NUMBER
    assert diagnosis["workarounds"][0]["action"] == "--enforce-eager"
    assert told["search_issues"].structured_content["items"][0]["number"] == CRASH_NUMBER
    assert told["get_issue"].structured_content["url"].endswith(f"/issues/{CRASH_NUMBER}")
    assert told["get_fix_status"].structured_content["fix"]["for_you"]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_official_client_calls_every_tool_over_http(url: str, mode: str) -> None:
    async def run() -> dict[str, CallToolResult]:
        async with Client(url, mode=mode) as client:
            return await all_tools(client)

    check(asyncio.run(run()))


def test_the_official_client_calls_every_tool_over_stdio(folder: Path, settings: Settings) -> None:
    async def run() -> tuple[dict[str, CallToolResult], str]:
        async with Client(stdio_client(stdio(folder))) as client:
            found = await all_tools(client)
            read = await client.read_resource(f"vllm-triage://issues/{CRASH_NUMBER}")
            return found, read.contents[0].text

    found, report = asyncio.run(run())
    check(found)
    assert "## Remedies" in report


@pytest.mark.long
def test_another_maker_s_client_calls_every_tool(url: str, folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its dependencies' own
        fastmcp = pytest.importorskip("fastmcp", reason="pip install -e '.[long]'")

    over_stdio = fastmcp.client.transports.StdioTransport(
        **stdio(folder).model_dump(include={"command", "args", "env", "cwd"})
    )

    async def run(transport: Any) -> dict[str, Any]:
        async with fastmcp.Client(transport) as client:
            assert {tool.name for tool in await client.list_tools()} == set(CALLS)
            return {
                name: (await client.call_tool(name, arguments)).structured_content
                for name, arguments in CALLS.items()
            }

    for transport in (url, over_stdio):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            found = asyncio.run(run(transport))
        assert found["diagnose_log"]["matches"][0]["number"] == CRASH_NUMBER


@pytest.mark.long
def test_stdout_carries_the_protocol_only(folder: Path, settings: Settings) -> None:
    """Also when the base must be migrated first and a tool is refused."""

    async def run() -> tuple[bytes, bytes]:
        found = stdio(folder)
        process = await asyncio.create_subprocess_exec(
            found.command,
            *found.args,
            env=found.env,
            cwd=found.cwd,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }
        calls = [
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {
                "jsonrpc": "2.0",
                "id": 2,
                "method": "tools/call",
                "params": {"name": "get_issue", "arguments": {"number": 5}},
            },
        ]
        assert process.stdin
        assert process.stdout
        process.stdin.write("".join(json.dumps(call) + "\n" for call in calls).encode() + b"no json\n")
        await process.stdin.drain()
        output = b""
        while b'"id":2' not in output:
            output += await asyncio.wait_for(process.stdout.readline(), 60)
        process.stdin.close()
        rest, errors = await asyncio.wait_for(process.communicate(), 30)
        assert process.returncode == 0
        return output + rest, errors

    output, errors = asyncio.run(run())
    messages = [json.loads(line) for line in output.splitlines()]
    assert all(message["jsonrpc"] == "2.0" for message in messages)
    assert b"Traceback" not in errors


@pytest.mark.long
def test_a_hundred_calls_at_once(url: str) -> None:
    async def run() -> list[CallToolResult]:
        async with Client(url) as client:
            return await asyncio.gather(
                *(client.call_tool("diagnose_log", {"log": CRASH}) for _ in range(100))
            )

    found = asyncio.run(run())
    assert {answer.structured_content["matches"][0]["number"] for answer in found} == {CRASH_NUMBER}


def size(answer: CallToolResult) -> int:
    """Characters of an answer as it is sent."""
    found = {
        "content": [{"type": "text", "text": answer.content[0].text}],
        "structuredContent": answer.structured_content,
        "isError": answer.is_error,
        "resultType": "complete",
    }
    return len(dumps(found))


@pytest.mark.parametrize("max_chars", [MIN_ANSWER_CHARS, 250, 333, 500, 800, 1200, 2000, 3500, 6000, 20_000])
@pytest.mark.parametrize("name", CALLS)
def test_no_answer_is_longer_than_was_asked(
    ask: Callable[..., CallToolResult], name: str, max_chars: int
) -> None:
    answer = ask(name, **CALLS[name], max_chars=max_chars)

    assert not answer.is_error
    assert size(answer) <= max_chars


def test_what_was_cut_is_told(ask: Callable[..., CallToolResult]) -> None:
    whole = ask("get_issue", number=CRASH_NUMBER).structured_content
    cut = ask("get_issue", number=CRASH_NUMBER, max_chars=1200).structured_content

    assert "truncated" not in whole
    assert cut["truncated"]
    assert cut["number"] == CRASH_NUMBER


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("get_issue", {"number": 0}, "number: Input should be greater than or equal to 1."),
        ("get_issue", {"number": "seven"}, "number: Input should be a valid integer"),
        ("get_issue", {}, "number: Field required."),
        ("get_issue", {"number": 5}, "vllm-project/vllm#5 is not stored"),
        (
            "get_issue",
            {"number": 5, "repo": "acme/engine"},
            "repo: only issues of vllm-project/vllm are known here.",
        ),
        (
            "get_fix_status",
            {"number": CRASH_NUMBER, "vllm_version": "latest please"},
            "vllm_version: is no version such as 0.19.0, and no commit.",
        ),
        ("known_issues_of_version", {"version": "b4d1dea"}, "version: no stored issue names b4d1dea."),
        ("known_issues_of_version", {"version": " "}, "version: give a vLLM release"),
        ("search_issues", {"query": " "}, "query: give words to search by"),
        (
            "search_issues",
            {"query": "x", "version": "banana"},
            "version: is no version such as 0.19.0, and no commit.",
        ),
        (
            "search_issues",
            {"query": "x", "gpus": "H100"},
            "An argument of search_issues is unknown; the nearest is gpu.",
        ),
        (
            "get_issue",
            {"number": 5, "<b>": 1},
            "An argument of get_issue is unknown; there are number, repo,",
        ),
        ("diagnose_log", {"log": " \n"}, "The log is empty."),
        ("diagnose_log", {"log": ""}, "log: is empty."),
        (
            "diagnose_log",
            {"log": "x", "max_chars": 5},
            "max_chars: Input should be greater than or equal to 200.",
        ),
        ("diagnose_log", {"log": "x" * (10 * 1024 * 1024 + 1)}, "is over the limit of 10 MiB"),
        ("diagnose_log", {"log": "\x00\x01" * 50}, "This is not text."),
    ],
)
def test_what_cannot_be_used_is_one_clear_line(
    ask: Callable[..., CallToolResult], name: str, arguments: dict[str, Any], said: str
) -> None:
    answer = ask(name, **arguments)

    assert answer.is_error
    assert said in answer.content[0].text
    assert "\n" not in answer.content[0].text


@pytest.mark.parametrize(
    "log",
    [
        "=> ERROR [builder 3/3] RUN pip wheel -r requirements.txt",
        "why is it slow?",
        "x",
        "\u00e9 \ud83d\ude00",
        '{"a": 1}',
        "[1, 2]",
    ],
)
def test_any_text_has_an_answer_of_the_promised_shape(ask: Callable[..., CallToolResult], log: str) -> None:
    answer = ask("diagnose_log", log=log)

    assert not answer.is_error
    assert answer.structured_content["verdict"] in {"unknown", "related", "likely"}


def test_null_means_not_given(ask: Callable[..., CallToolResult]) -> None:
    answer = ask("diagnose_log", log=CRASH, vllm_version=None, gpu=None, model="")

    assert not answer.is_error


def test_a_fault_of_the_program_is_not_told(
    settings: Settings, store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("the secret of the house")

    monkeypatch.setattr(tools, "view_issue", broken)

    async def run() -> CallToolResult:
        async with Client(build_server(Services(settings, store))) as client:
            return await client.call_tool("get_issue", {"number": 1})

    answer = asyncio.run(run())
    assert answer.is_error
    assert answer.content[0].text == "The tool failed; the server's log has the error."
    assert "the secret of the house" in caplog.text


def test_resources_are_reports(settings: Settings, store: Store) -> None:
    async def run() -> tuple[set[str], list[str]]:
        async with Client(build_server(Services(settings, store))) as client:
            templates = (await client.list_resource_templates()).resource_templates
            read = [
                (await client.read_resource(address)).contents[0].text
                for address in (
                    f"vllm-triage://issues/{CRASH_NUMBER}",
                    f"vllm-triage://repos/vllm-project/vllm/issues/{CRASH_NUMBER}",
                    "vllm-triage://digest/2024-W47",
                )
            ]
            return {item.uri_template for item in templates}, read

    templates, read = asyncio.run(run())
    assert templates == {
        "vllm-triage://issues/{number}",
        "vllm-triage://repos/{owner}/{name}/issues/{number}",
        "vllm-triage://digest/{week}",
    }
    assert read[0] == read[1]
    assert read[0].startswith("Titles, words in `code`")
    assert len(read[0]) <= RESOURCE_CHARS_MAX
    assert read[2].startswith("# vllm-project/vllm, week 2024-W47")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("vllm-triage://issues/5", "is not stored"),
        ("vllm-triage://issues/seven", "valid integer"),
        ("vllm-triage://digest/2024-W60", "2024 has no week 60"),
        ("vllm-triage://repos/acme/engine/issues/5", "only issues of vllm-project/vllm"),
    ],
)
def test_a_resource_that_is_not_there_is_told_in_one_line(
    settings: Settings, store: Store, address: str, said: str
) -> None:
    async def run() -> None:
        async with Client(build_server(Services(settings, store))) as client:
            with pytest.raises(MCPError, match=said):
                await client.read_resource(address)

    asyncio.run(run())


@pytest.mark.parametrize(
    "host",
    ["triage.example.org", "triage.example.org:9000", "desk.example.org:8443", "localhost:1", "[::1]:80"],
)
def test_it_answers_under_its_public_names_and_loopback(url: str, host: str) -> None:
    answer = httpx.post(url, json=LIST_TOOLS, headers={**HEADERS, "host": host})

    assert answer.status_code == 200
    assert {tool["name"] for tool in answer.json()["result"]["tools"]} == set(CALLS)


@pytest.mark.parametrize(
    "headers",
    [{"host": "evil.example"}, {"host": "desk.example.org"}, {"host": "triage.example.org.evil.example"}],
)
def test_it_answers_under_no_other_name(url: str, headers: dict[str, str]) -> None:
    answer = httpx.post(url, json=LIST_TOOLS, headers={**HEADERS, **headers})

    assert answer.status_code == 421
    assert answer.headers["content-type"] == "application/problem+json"
    assert "TRIAGE_PUBLIC_HOSTS" in answer.json()["detail"]


def test_a_page_of_another_site_is_refused(url: str) -> None:
    answer = httpx.post(url, json=LIST_TOOLS, headers={**HEADERS, "origin": "https://evil.example"})

    assert answer.status_code == 403


def test_a_call_is_one_post_without_a_session(url: str) -> None:
    answer = httpx.post(url, json=LIST_TOOLS, headers=HEADERS, follow_redirects=False)

    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("application/json")
    assert "mcp-session-id" not in answer.headers


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_there_is_no_stream_to_hold_open(url: str, method: str) -> None:
    answer = httpx.request(method, url, headers={"accept": "text/event-stream"})

    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"


@pytest.mark.long
def test_a_log_of_10_mib_is_read_and_a_message_of_17_is_not(url: str) -> None:
    def call(log: str) -> httpx.Response:
        params = {"name": "diagnose_log", "arguments": {"log": log}}
        return httpx.post(
            url, json={**LIST_TOOLS, "method": "tools/call", "params": params}, headers=HEADERS, timeout=60
        )

    assert call("\u00e9" * (5 * 1024 * 1024)).status_code == 200
    refused = call("x" * (17 * 1024 * 1024))
    assert refused.status_code == 413
    assert "16 MiB" in refused.json()["detail"]


def test_calls_are_counted_under_their_route(url: str) -> None:
    httpx.post(url, json=LIST_TOOLS, headers=HEADERS)

    assert (
        'triage_requests_total{key="",method="POST",route="/mcp",status="200"}'
        in httpx.get(url.replace("/mcp", "/metrics")).text
    )


SENT = "A-Line-Of-A-Log"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": SENT, "arguments": {}}),
        ("tools/call", {"name": "diagnose_log", "arguments": {"log": [SENT], SENT: 1}}),
        ("tools/call", {"name": [SENT]}),
        ("resources/read", {"uri": f"vllm-triage://issues/{SENT}"}),
        ("resources/read", {"uri": f"vllm-triage://repos/{SENT}/{SENT}/issues/1"}),
        ("resources/read", {"uri": f"other://{SENT}"}),
        ("prompts/get", {"name": SENT}),
        (SENT, {SENT: SENT}),
        ([SENT], {}),
    ],
)
def test_no_refusal_repeats_what_was_sent(url: str, method: Any, params: dict[str, Any]) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = httpx.post(url, json=message, headers=HEADERS, trust_env=False)

    assert "rror" in answer.text
    assert SENT not in answer.text
    assert int(answer.headers["content-length"]) == len(answer.content)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
def test_a_message_of_too_many_parts_is_refused_before_it_is_parsed(url: str, encoding: str) -> None:
    arguments = '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":[' + "[]," * 100_001 + "[]]}}"
    answer = httpx.post(url, content=arguments.encode(encoding), headers=HEADERS, trust_env=False)
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json")
