"""How a sync beside the server changes what a searcher waits for.

    python -m tests.benchmarks.search_while_syncing --api-url http://127.0.0.1:8900 --queries FILE.jsonl

Starts `triage serve` on a copy-free base of its own, filled by a first sync of `--limit` rows from the GitHub at
`--api-url` (a simulator on the loopback), then asks 20 logs a second: first with nothing beside it, then while a
full `triage sync` writes to the same base. Prints p50, p95 and p99 of both. Everything it starts it also ends.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from tests.loopback import free_port

PER_SECOND = 20
READY_TIMEOUT_S = 60.0


def ask(client: httpx.Client, url: str, log: str) -> tuple[float, int]:
    """Seconds that one search took, and its status."""
    began = time.perf_counter()
    reply = client.post(f"{url}/api/v1/diagnose", json={"log": log})
    return time.perf_counter() - began, reply.status_code


def load(url: str, logs: list[str], until: threading.Event, longest_s: float) -> list[tuple[float, int]]:
    """Ask at a fixed rate, whatever the answers take, until told to stop."""
    found = []
    with httpx.Client(timeout=60) as client, ThreadPoolExecutor(16) as pool:
        began, sent = time.perf_counter(), 0
        while not until.is_set() and time.perf_counter() - began < longest_s:
            found.append(pool.submit(ask, client, url, logs[sent % len(logs)]))
            sent += 1
            time.sleep(max(0.0, began + sent / PER_SECOND - time.perf_counter()))
        return [item.result() for item in found]


def report(name: str, answers: list[tuple[float, int]]) -> dict[str, float]:
    times = sorted(seconds for seconds, _ in answers)
    failed = sum(status != 200 for _, status in answers)
    at = {share: 1000 * times[int(share * (len(times) - 1))] for share in (0.5, 0.95, 0.99, 1.0)}
    print(
        f"{name:14} {len(times):5} searches, {failed} failed, p50 {at[0.5]:.0f} ms, p95 {at[0.95]:.0f} ms, "
        f"p99 {at[0.99]:.0f} ms, longest {at[1.0]:.0f} ms"
    )
    return {"p95": at[0.95], "p99": at[0.99]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--api-url", required=True)
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=6_000)
    parser.add_argument("--seconds", type=float, default=40.0, help="of the measurement without a sync")
    asked = parser.parse_args()
    logs = [json.loads(line)["query"] for line in asked.queries.read_text(encoding="utf-8").splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "TRIAGE_DATABASE_URL": f"sqlite:///{folder}/bench.db",
            "TRIAGE_GITHUB_API_URL": asked.api_url,
            "TRIAGE_GITHUB_TOKEN": "benchmark",
        }
        triage = [sys.executable, "-m", "app.cli"]
        subprocess.run([*triage, "sync", "--limit", str(asked.limit)], env=environment, check=False)
        port = free_port()
        server = subprocess.Popen([*triage, "serve", "--port", str(port)], env=environment)
        url = f"http://127.0.0.1:{port}"
        try:
            wait_ready(url)
            load(url, logs, threading.Event(), 5.0)
            idle = report("idle", load(url, logs, threading.Event(), asked.seconds))
            done = threading.Event()
            sync = subprocess.Popen(["nice", *triage, "sync", "--full"], env=environment)
            watcher = threading.Thread(target=lambda: (sync.wait(), done.set()))
            watcher.start()
            busy = report("beside a sync", load(url, logs, done, 600.0))
            watcher.join()
            print(f"p99 beside a sync is {busy['p99'] / idle['p95']:.1f} x the idle p95")
        finally:
            server.terminate()
            server.wait(20)


def wait_ready(url: str) -> None:
    until = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < until:
        try:
            if httpx.get(f"{url}/readyz").status_code == httpx.codes.OK:
                return
        except httpx.HTTPError:
            time.sleep(0.1)
    raise SystemExit("the server did not get ready")


if __name__ == "__main__":
    main()
