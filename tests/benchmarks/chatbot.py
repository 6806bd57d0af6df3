"""How long a chatbot waits for a tool: one call after the other over HTTP, each with another log or issue.

    python -m tests.benchmarks.chatbot --queries FILE.jsonl [--calls 300] [--sdk]

Starts `triage serve` over the base of TRIAGE_DATABASE_URL, calls every tool by MCP and the REST route beside it,
and prints p50, p95, p99 and the longest of each. FILE holds `{"query": LOG, "number"?: N}` lines. A round trip
ends when the answer is parsed. `--sdk` calls through the official client, whose own work is then counted too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from mcp import Client

from tests.benchmarks.search_while_syncing import free_port, wait_ready

HEADERS = {"accept": "application/json, text/event-stream"}
VERSIONS = ("0.8.5", "0.9.1", "0.10.2", "0.11.0", "0.14.0", "0.18.0", "0.19.0")
WORDS = (
    "illegal memory access",
    "H100 out of memory",
    "fp8 kv cache",
    "hang tensor parallel",
    "qwen3 vl",
    "lora",
)
Arguments = Callable[[int], dict[str, Any]]


def tools(logs: list[str], numbers: list[int]) -> dict[str, Arguments]:
    """The arguments of each tool's call number `at`."""
    return {
        "diagnose_log": lambda at: {"log": logs[at % len(logs)]},
        "search_issues": lambda at: {"query": WORDS[at % len(WORDS)]},
        "get_issue": lambda at: {"number": numbers[at % len(numbers)]},
        "get_fix_status": lambda at: {
            "number": numbers[at % len(numbers)],
            "vllm_version": VERSIONS[at % len(VERSIONS)],
        },
        "known_issues_of_version": lambda at: {"version": VERSIONS[at % len(VERSIONS)]},
    }


def report(name: str, seconds: list[float], failed: int) -> None:
    times = sorted(seconds)
    found = ", ".join(
        f"{label} {1000 * times[int(share * (len(times) - 1))]:.0f} ms"
        for label, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("longest", 1.0))
    )
    print(f"{name:26} {len(times)} calls, {failed} failed, {found}")


def over_http(url: str, name: str, arguments: Arguments, calls: int) -> None:
    times, failed = [], 0
    with httpx.Client(timeout=60, headers=HEADERS) as client:
        for at in range(calls):
            question = {
                "jsonrpc": "2.0",
                "id": at,
                "method": "tools/call",
                "params": {"name": name, "arguments": arguments(at)},
            }
            began = time.perf_counter()
            answer = client.post(f"{url}/mcp", json=question).json()
            times.append(time.perf_counter() - began)
            failed += answer.get("result", {}).get("isError", True)
    report(f"mcp {name}", times, failed)


async def over_sdk(url: str, name: str, arguments: Arguments, calls: int) -> None:
    times, failed = [], 0
    async with Client(f"{url}/mcp") as client:
        for at in range(calls):
            began = time.perf_counter()
            answer = await client.call_tool(name, arguments(at))
            times.append(time.perf_counter() - began)
            failed += answer.is_error
    report(f"sdk {name}", times, failed)


def over_rest(url: str, logs: list[str], calls: int) -> None:
    times, failed = [], 0
    with httpx.Client(timeout=60) as client:
        for at in range(calls):
            began = time.perf_counter()
            answer = client.post(f"{url}/api/v1/diagnose", json={"log": logs[at % len(logs)]})
            answer.json()
            times.append(time.perf_counter() - began)
            failed += answer.status_code != httpx.codes.OK
    report("rest diagnose", times, failed)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--sdk", action="store_true")
    asked = parser.parse_args()
    rows = [json.loads(line) for line in asked.queries.read_text(encoding="utf-8").splitlines()]
    logs = [row["query"] for row in rows]
    numbers = [int(row["number"]) for row in rows if row.get("number")] or [39288]
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    environment = {**os.environ, "TRIAGE_RATE_LIMIT": "off"}
    command = [sys.executable, "-m", "app.cli", "serve", "--port", str(port)]
    server = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        wait_ready(url)
        for name, arguments in tools(logs, numbers).items():
            over_http(url, name, arguments, 10 if name == "diagnose_log" else 3)  # the first ones load lists
        print("-- measured")
        for name, arguments in tools(logs, numbers).items():
            over_http(url, name, arguments, asked.calls)
            if asked.sdk:
                asyncio.run(over_sdk(url, name, arguments, asked.calls))
        over_rest(url, logs, asked.calls)
    finally:
        server.terminate()
        server.wait(20)


if __name__ == "__main__":
    main()
