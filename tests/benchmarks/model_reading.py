"""How long a model reader takes for many issues, and how its memory grows.

    python -m tests.benchmarks.model_reading --corpus ISSUES.jsonl.gz [--issues 1000] [--parallel 32] [--answer-s 2]

Issues of the corpus are stored in a base of their own and read against a local server, a process of its own, that
answers each request after so many seconds. Printed: wall time beside the least possible, the CPU's time, the reading
process's memory along the run, and how many requests the server saw.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from pathlib import Path

from app.knowledge.operations.model_reading import read_issues
from app.model_reader.client import ReaderClient
from app.store.records import Progress
from app.store.schema import migrate
from app.store.session import open_store
from app.train.shared import read_rows
from ingest.importer import import_paths
from tests.memory import resident_mib
from tests.model_reader.server import reader_server
from tests.samples import REPO


@contextmanager
def served_apart(answer_s: float) -> Iterator[tuple[str, Callable[[], tuple[int, float]]]]:
    """A server in a process of its own: its address, and what gives its requests' number and the last one's time."""
    ours, theirs = Pipe()
    process = Process(target=_serve, args=(theirs, answer_s), daemon=True)
    process.start()

    def asked() -> tuple[int, float]:
        ours.send("asked")
        count, last = ours.recv()
        return count, last

    try:
        yield ours.recv(), asked
    finally:
        process.terminate()
        process.join()


def _serve(pipe: Connection, answer_s: float) -> None:
    with reader_server(answer_s=answer_s) as server:
        pipe.send(server.url)
        while pipe.recv():
            pipe.send((len(server.asked), server.asked[-1][0]))


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
            served_apart(asked.answer_s) as (url, requests),
            ReaderClient(url, parallel=asked.parallel) as client,
        ):
            begun, cpu = time.monotonic(), time.process_time()
            result = read_issues(store, REPO, client, parallel=asked.parallel, report=report)
            took, cpu = time.monotonic() - begun, time.process_time() - cpu
            count, last = requests()
        store.close()
    least = asked.issues * asked.answer_s / asked.parallel
    print(f"{result.asked} issues in {took:.1f} s, the least possible is {least:.1f} s: {took / least:.2f} x")
    after_s = last + asked.answer_s - begun
    print(f"CPU {cpu:.1f} s without the processes that read facts; the last reply came after {after_s:.1f} s")
    eighths = [max(mib for done, mib in memory if done <= asked.issues * part / 8) for part in range(1, 9)]
    print("memory, the most until each eighth of the run, MiB:", *map(round, eighths))
    print(f"requests: {count}, outcomes {result.outcomes}")


if __name__ == "__main__":
    main()
