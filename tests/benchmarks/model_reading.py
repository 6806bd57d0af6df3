"""How long a model reader takes for many issues, and how its memory grows.

    python -m tests.benchmarks.model_reading --corpus ISSUES.jsonl.gz [--issues 1000] [--parallel 32] [--answer-s 2]

Issues of the corpus are stored in a base of their own and read against a local server that answers each request
after so many seconds. Printed: wall time beside the least possible, the CPU's time, memory of its own at a quarter
of the run and at its end, and how many requests the server saw.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from itertools import islice
from pathlib import Path

from app.knowledge.indexing.batches import Progress
from app.knowledge.operations.model_reading import read_issues
from app.model_reader.client import ReaderClient
from app.store.schema import migrate
from app.store.session import open_store
from app.train.inputs import read_rows
from ingest.importer import import_paths
from tests.model_reader.server import reader_server
from tests.samples import REPO


def resident_mib() -> float:
    """What this process holds in memory of its own now, without the base's file."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


def main() -> None:
    """Measure once."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--issues", type=int, default=1_000)
    parser.add_argument("--parallel", type=int, default=32)
    parser.add_argument("--answer-s", type=float, default=2.0)
    asked = parser.parse_args()
    memory: list[tuple[int, float]] = []

    def report(step: Progress) -> None:
        memory.append((step.done, resident_mib()))

    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "issues.jsonl"
        chosen = islice(read_rows([asked.corpus]), 3_000, 3_000 + asked.issues)
        rows.write_text("\n".join(map(json.dumps, chosen)), encoding="utf-8")
        store = open_store(f"sqlite:///{folder}/base.db")
        migrate(store)
        import_paths(store, [str(rows)], REPO)
        with (
            reader_server(answer_s=asked.answer_s) as server,
            ReaderClient(server.url, parallel=asked.parallel) as client,
        ):
            begun, cpu = time.monotonic(), time.process_time()
            result = read_issues(store, REPO, client, parallel=asked.parallel, report=report)
            took, cpu = time.monotonic() - begun, time.process_time() - cpu
        store.close()
    least = asked.issues * asked.answer_s / asked.parallel
    early = next((mib for done, mib in memory if done >= asked.issues / 4), 0.0)
    print(f"{result.asked} issues in {took:.1f} s, the least possible is {least:.1f} s: {took / least:.2f} x")
    last = server.asked[-1][0] + asked.answer_s - begun
    print(f"CPU {cpu:.1f} s without the processes that read facts; the last reply came after {last:.1f} s")
    print(f"memory: {early:.0f} MiB after a quarter, {memory[-1][1]:.0f} MiB at the end")
    print(f"requests: {len(server.asked)}, outcomes {result.outcomes}")


if __name__ == "__main__":
    main()
