"""How long and how heavy the pages are over a whole base: cold, just after the start, and warm.

    TRIAGE_DATABASE_URL=… python -m tests.benchmarks.pages [--tries 5]

Serves the base of TRIAGE_DATABASE_URL on a free port of the loopback with `triage serve`, asks for each page once
(cold: templates are compiled and the base's pages come from the disk's cache) and then `--tries` times more, and
prints a row for each: milliseconds cold, median and longest warm, KiB with style sheet and script uncompressed,
status. Which pages are the heaviest is asked of the base: the biggest signature, the busiest week, the longest
texts. It exits 1 if the first page takes more than 300 ms, any page more than 500 ms (medians, warm) or more than
100 KiB. It ends what it started.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import httpx
from sqlalchemy import text

from app.config import load_settings
from app.knowledge.digest.digest import archive
from app.paths import static_dir
from app.store.session import Store, open_store
from tests.benchmarks.load import free_port

FIRST_PAGE_MAX_MS, PAGE_MAX_MS, PAGE_MAX_BYTES = 300.0, 500.0, 100 * 1024
READY_TIMEOUT_S = 60.0
ASSETS = ("style.css", "app.js", "icon.svg")
LISTS = (
    "/",
    "/?example=1",
    "/issues",
    "/issues?gpu=H100",
    "/issues?state=open",
    "/issues?q=illegal+memory+access",
    "/issues?q=out+of+memory&gpu=H100&state=open",
    "/issues?q=error",
    "/issues?arch=Hopper&sort=newest",
    "/issues?sort=comments",
    "/issues?has_regression=true",
    "/issues?vllm_version=0.19.0",
    "/signatures",
    "/signatures?q=out+of+memory",
    "/families",
    "/regressions",
    "/regressions?version=0.19.0",
    "/regressions?version=0.8.5",
    "/upgrade?from=0.19.0&to=0.21.0",
    "/upgrade?from=0.19.0&to=0.21.0&stack=0.19.0~H200~Qwen/Qwen3.5-35B-A3B-FP8~--tensor-parallel-size+4+--enable-auto-tool-choice",
    "/stack?stack=0.19.0~H200~Qwen/Qwen3.5-35B-A3B-FP8~--tensor-parallel-size+4+--enable-auto-tool-choice",
    "/digest/archive",
    "/report",
    "/feed.atom",
)
HEAVIEST = {
    "biggest signature": "SELECT '/signatures/' || cluster_id FROM cluster_member GROUP BY cluster_id ORDER BY count(*) DESC LIMIT 3",
    "longest texts": "SELECT '/issues/' || number FROM issue WHERE body IS NOT NULL ORDER BY length(body) DESC LIMIT 4",
    "most commented": "SELECT '/issues/' || number FROM issue ORDER BY comments DESC LIMIT 3",
    "most linked": "SELECT '/report?url=' || link.number FROM link JOIN issue USING (repo_id, number) WHERE NOT is_pull_request"
    " GROUP BY link.number ORDER BY count(*) DESC LIMIT 3",
}
KNOWN = ("/issues/39288", "/report?url=39288", "/issues/37931", "/report?url=42096")


def heaviest(store: Store) -> list[str]:
    """Addresses that the base itself names."""
    with store.engine.connect() as connection:
        return [str(path) for query in HEAVIEST.values() for (path,) in connection.execute(text(query))]


def weeks(store: Store) -> list[str]:
    """The digests of the newest week and of that with the most issues."""
    found = archive(store, load_settings().default_repo).weeks
    busiest = max(found, key=lambda one: one.issues, default=None)
    return [f"/digest/{one.week}" for one in (*found[:2], busiest) if one]


def wait_until_ready(client: httpx.Client) -> None:
    ends_at = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < ends_at:
        try:
            if client.get("/readyz").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise SystemExit("the server did not come up")


def ask(client: httpx.Client, path: str) -> tuple[float, httpx.Response]:
    began = time.perf_counter()
    reply = client.get(path)
    return 1000 * (time.perf_counter() - began), reply


def measure(client: httpx.Client, paths: list[str], tries: int) -> list[str]:
    """Prints a row for each page; returns what is over a limit."""
    assets = sum((static_dir() / name).stat().st_size for name in ASSETS)
    faults = []
    print(f"{'cold':>6} {'median':>6} {'max':>6} {'KiB':>6}")
    cold = {path: ask(client, path) for path in paths}
    for path, (cold_ms, reply) in cold.items():
        warm = sorted(ask(client, path)[0] for _ in range(tries))
        median = statistics.median(warm)
        weight = len(reply.content) + (assets if "html" in reply.headers["content-type"] else 0)
        print(f"{cold_ms:6.0f} {median:6.0f} {warm[-1]:6.0f} {weight / 1024:6.1f} {reply.status_code} {path}")
        if median > (FIRST_PAGE_MAX_MS if path == "/" else PAGE_MAX_MS):
            faults.append(f"{path} takes {median:.0f} ms")
        if weight > PAGE_MAX_BYTES:
            faults.append(f"{path} weighs {weight / 1024:.0f} KiB")
    return faults


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tries", type=int, default=5)
    parser.add_argument("paths", nargs="*", help="only these addresses")
    asked = parser.parse_args()
    store = open_store(load_settings().database_url)
    paths = asked.paths or [*LISTS, *KNOWN, *heaviest(store), *weeks(store)]
    store.close()
    port = free_port()
    command = [sys.executable, "-m", "app.cli", "serve", "--port", str(port)]
    server = subprocess.Popen(
        command,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "TRIAGE_RATE_LIMIT": "off"},
    )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60.0, trust_env=False) as client:
            wait_until_ready(client)
            faults = measure(client, list(dict.fromkeys(paths)), asked.tries)
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()
    print(
        f"machine: load {Path('/proc/loadavg').read_text(encoding='ascii').split()[0]}, {os.cpu_count()} cores"
    )
    sys.exit("\n".join(faults) if faults else 0)


if __name__ == "__main__":
    main()
