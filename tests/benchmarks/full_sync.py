"""Memory, time and requests of a full sync of the whole corpus against the GitHub simulator.

    python -m tests.benchmarks.full_sync [--issues N] [--numbered]

Prints one JSON object: rows, requests and their bound, seconds, peak resident memory of the syncing process.
The data is made new, with comments made up where only their count is known.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

from app.store.schema import migrate
from app.store.session import open_store
from ingest.github.client import GitHubClient
from ingest.sync.sync import sync

SHARED = Path(os.environ.get("TRIAGE_SHARED") or Path(__file__).resolve().parents[2].parent / "shared")
SIMULATOR = SHARED / "github-sim"
REPO = "vllm-project/vllm"


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--issues", type=int, help="only the newest so many")
    asked.add_argument("--numbered", action="store_true", help="numbered links in place of cursors")
    args = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        some = ["--issues", str(args.issues)] if args.issues else []
        subprocess.run(
            [sys.executable, SIMULATOR / "make_data.py", data, *some], check=True, stdout=subprocess.DEVNULL
        )
        mode = [] if args.numbered else ["--cursor"]
        server = subprocess.Popen(
            [
                sys.executable,
                SIMULATOR / "github_sim.py",
                "--data",
                data,
                "--repo",
                REPO,
                "--port",
                "0",
                "--synth-comments",
                *mode,
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert server.stdout is not None
            print(json.dumps(measure(server.stdout.readline().split()[2], Path(folder)), indent=2))
        finally:
            server.terminate()
            server.wait(timeout=10)


def measure(url: str, folder: Path) -> dict[str, float | int | bool]:
    """A full sync, one with nothing new and another full one, with their figures."""
    store = open_store(f"sqlite:///{folder / 'triage.db'}")
    migrate(store)
    began = time.monotonic()
    with GitHubClient(url, "any") as client:
        first = sync(store, client, REPO, full=True)
        took_s = time.monotonic() - began
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        again = sync(store, client, REPO)
        began = time.monotonic()
        second = sync(store, client, REPO, full=True)
        second_took_s = time.monotonic() - began
    truth = httpx.get(f"{url}/_sim/truth", timeout=60, trust_env=False).json()
    rows = len(truth["issues"]) + len(truth["comments"]) + first.releases
    store.close()
    return {
        "complete": first.complete,
        "items": first.issues,
        "items_in_truth": len(truth["issues"]),
        "comments": first.comments,
        "comments_in_truth": len(truth["comments"]),
        "releases": first.releases,
        "requests": first.requests,
        "requests_at_most": math.floor(1.05 * rows / 100 + 10),
        "requests_when_nothing_is_new": again.requests,
        "seconds": round(took_s, 1),
        "peak_rss_mb": round(peak_mb, 1),
        "seconds_of_another_full_run": round(second_took_s, 1),
        "its_requests": second.requests,
        "its_changes": second.issues + second.comments + second.gone,
        "database_mb": round((folder / "triage.db").stat().st_size / 1e6, 1),
    }


if __name__ == "__main__":
    main()
