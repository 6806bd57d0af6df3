"""The guide's examples, run as they stand against a server on the loopback."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from mcp import Client, StdioServerParameters, stdio_client

from tests.served import CRASH, CRASH_NUMBER, served, starter_settings

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "app" / "guide" / "chatbots.md").read_text(encoding="utf-8")
EXAMPLES: dict[str, str] = {
    found[1]: found[2]
    for found in re.finditer(r"<!-- example: ([a-z-]+) -->\n```[a-z]+\n(.*?)\n```\n", GUIDE, re.DOTALL)
}
SERVER = "http://127.0.0.1:8000"
REPO = "vllm-project/vllm"
NOTHING_KNOWN = "RuntimeError: the frobnicator of shard 7 lost its quux while warming the teapot"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("guide")
    (made / "crash.log").write_text(CRASH, encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with served(starter_settings(folder)) as address:
        yield address


@pytest.fixture(scope="module")
def environment(folder: Path) -> dict[str, str]:
    """As a person has it, with `triage` on the path."""
    command = folder / "bin" / "triage"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m app.cli "$@"\n', encoding="utf-8")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    found = {name: value for name, value in os.environ.items() if not name.startswith("TRIAGE_")}
    return {**found, "PATH": f"{command.parent}:{found['PATH']}", "PYTHONPATH": str(ROOT)}


def run(*command: str, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_is_run_here() -> None:
    assert set(EXAMPLES) == {"mcp-http", "mcp-stdio", "function", "python", "curl", "workflow"}


def test_the_python_example_names_the_issue(url: str, folder: Path, environment: dict[str, str]) -> None:
    output = run(
        sys.executable, "-c", EXAMPLES["python"].replace(SERVER, url), folder=folder, environment=environment
    )

    assert output.startswith(("same ", "likely "))
    assert f"works --enforce-eager https://github.com/{REPO}/issues/{CRASH_NUMBER}" in output


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_curl_examples_answer(url: str, folder: Path, environment: dict[str, str]) -> None:
    output = run("bash", "-ec", EXAMPLES["curl"].replace(SERVER, url), folder=folder, environment=environment)

    assert "`--enforce-eager`" in output
    assert json.loads(output[output.index('{"items"') :])["items"][0]["number"] == CRASH_NUMBER


def test_the_http_configuration_reaches_the_tools(url: str) -> None:
    found = json.loads(EXAMPLES["mcp-http"].replace(SERVER, url))["mcpServers"]["vllm-triage"]

    async def listed() -> set[str]:
        async with Client(found["url"]) as client:
            return {tool.name for tool in (await client.list_tools()).tools}

    assert found["type"] == "http"
    assert asyncio.run(listed()) == tools_of_the_table()


@pytest.mark.long
def test_the_stdio_configuration_starts_the_tools(
    url: str, folder: Path, environment: dict[str, str]
) -> None:
    output = json.loads(EXAMPLES["mcp-stdio"])["mcpServers"]["vllm-triage"]
    output["env"] = {**environment, **output["env"], "TRIAGE_DATABASE_URL": f"sqlite:///{folder}/triage.db"}

    async def found() -> int:
        async with Client(stdio_client(StdioServerParameters(**output, cwd=str(folder)))) as client:
            answer = await client.call_tool("diagnose_log", {"log": CRASH})
            return int(answer.structured_content["matches"][0]["number"])

    assert asyncio.run(found()) == CRASH_NUMBER


def tools_of_the_table() -> set[str]:
    section = GUIDE[GUIDE.index("## MCP") :]
    return set(re.findall(r"^\| `(\w+)\(", section[: section.index("<!--")], re.MULTILINE))


def test_the_function_definition_is_what_the_api_takes(url: str) -> None:
    function = json.loads(EXAMPLES["function"])["function"]
    schemas = httpx.get(f"{url}/openapi.json", timeout=60).json()["components"]["schemas"]
    taken = schemas["DiagnoseRequest"]
    assert function["parameters"]["required"] == taken["required"]
    for name, found in function["parameters"]["properties"].items():
        kinds = {
            option.get("type")
            for option in taken["properties"][name].get("anyOf", [taken["properties"][name]])
        }
        assert found["type"] in kinds
    arguments = {
        "log": CRASH,
        "vllm_version": "0.19.0",
        "gpu": "H100",
        "model": "Llama-3.2-90B-Vision-Instruct",
    }
    assert set(arguments) == set(function["parameters"]["properties"])
    answer = httpx.post(f"{url}/api/v1/diagnose", json=arguments)
    assert answer.json()["matches"][0]["number"] == CRASH_NUMBER


@dataclass
class Tracker:
    """Takes comments as GitHub's API does, and keeps them."""

    url: str = ""
    comments: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)


@pytest.fixture
def tracker() -> Iterator[Tracker]:
    found = Tracker()

    class Desk(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            found.comments.append((self.path, self.headers["authorization"], body))
            self.send_response(201)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Desk) as server:
        found.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield found
        server.shutdown()
        thread.join()


def event(title: str, body: str, **more: Any) -> dict[str, Any]:
    issue = {"number": 77, "title": title, "body": body, "comments_url": "", **more}
    return {"action": "opened", "issue": issue, "repository": {"full_name": REPO}}


KNOWN = event("[Bug]: graphs fail", f"It dies.\n\n```text\n{CRASH}```\n")


def run_workflow(
    told: dict[str, Any], url: str, tracker: Tracker, folder: Path, environment: dict[str, str]
) -> None:
    """What a runner does with the last step of each of the workflow's jobs."""
    jobs = yaml.safe_load(EXAMPLES["workflow"])["jobs"]
    (folder / "event.json").write_text(json.dumps(told), encoding="utf-8")
    output = folder / "output"
    output.touch()
    given = {
        "GITHUB_EVENT_PATH": str(folder / "event.json"),
        "GITHUB_API_URL": tracker.url,
        "GITHUB_REPOSITORY": REPO,
        "GITHUB_OUTPUT": str(output),
    }

    def run_step(job: str, **own: str) -> None:
        step = jobs[job]["steps"][-1]
        assert set(step["env"]) == set(own)
        shell = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"])
        run(*shell, folder=folder, environment={**environment, **given, **own})

    run_step("ask", SERVER=url)
    comment = output.read_text(encoding="ascii").removeprefix("comment=").strip()
    if comment:
        run_step("comment", COMMENT=comment, GH_TOKEN="a-token", NUMBER=str(told["issue"]["number"]))


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_workflow_posts_one_comment_on_a_known_issue(
    url: str, tracker: Tracker, tmp_path: Path, environment: dict[str, str]
) -> None:
    run_workflow(KNOWN, url, tracker, tmp_path, environment)

    ((path, authorization, comment),) = tracker.comments
    assert path == f"/repos/{REPO}/issues/77/comments"
    assert authorization == "Bearer a-token"
    assert set(comment) == {"body"}
    assert f"[#{CRASH_NUMBER}](https://github.com/{REPO}/issues/{CRASH_NUMBER})" in comment["body"]
    assert "`--enforce-eager`" in comment["body"]
    assert "does not state the GPU" in comment["body"]


@pytest.mark.long
def test_the_workflow_posts_nothing_where_there_is_nothing_to_say(
    url: str, tracker: Tracker, tmp_path: Path, environment: dict[str, str]
) -> None:
    run_workflow(
        event("[Bug]: it fails", f"```text\n{NOTHING_KNOWN}\n```"), url, tracker, tmp_path, environment
    )

    assert tracker.comments == []


@pytest.mark.long
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_what_a_reporter_writes_does_not_reach_the_shell(
    url: str, tracker: Tracker, tmp_path: Path, environment: dict[str, str]
) -> None:
    hostile = "\"; touch owned; $(touch owned) `touch owned` ${{ github.token }} ' \n::set-output name=x::y"
    run_workflow(
        event(f"[Bug]: {hostile}", f"{hostile}\n```text\n{CRASH}```\n{hostile}"),
        url,
        tracker,
        tmp_path,
        environment,
    )

    assert len(tracker.comments) == 1
    assert not (tmp_path / "owned").exists()


def test_the_workflow_interpolates_nothing_into_a_script_and_may_do_little() -> None:
    found = yaml.safe_load(EXAMPLES["workflow"])
    ask, comment = found["jobs"]["ask"], found["jobs"]["comment"]
    steps = [*ask["steps"], *comment["steps"]]

    assert found[True] == {"issues": {"types": ["opened"]}}  # YAML 1.1 reads `on` so
    assert found["permissions"] == {}
    assert (ask["permissions"], comment["permissions"]) == ({}, {"issues": "write"})
    assert "github.token" not in str(ask)
    assert not [step["run"] for step in steps if "${{" in step.get("run", "")]
    assert all(re.search(r"@[0-9a-f]{40}$", step["uses"]) for step in steps if "uses" in step)
    assert all(
        re.fullmatch(
            r"\$\{\{ (github\.(token|event\.issue\.number)|needs\.ask\.outputs\.comment) \}\}|https://YOUR-HOST",
            value,
        )
        for step in (ask["steps"][-1], comment["steps"][-1])
        for value in step["env"].values()
    )


def test_contributing_names_files_that_there_are() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:app|ingest|templates|tests|migrations)/[\w./-]+\.\w+|app/[\w/]+/)`", text))
    assert len(named) > 30
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_two_walks_are_short() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    walks = [part.split("\n#")[0] for part in text.split("### The way of ")[1:]]
    assert [len(re.findall(r"^\d+\. ", walk, re.MULTILINE)) <= 14 for walk in walks] == [True, True]
