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
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from app.knowledge.indexing.batches import Progress
from app.knowledge.operations.model_reading import read_issues
from app.model_reader.client import ReaderClient
from app.store.schema import migrate
from app.store.session import open_store
from app.train.confidence import rows_of
from ingest.importer import import_paths
from tests.model_reader.replies import NOTHING
from tests.samples import REPO


class _Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answer_s = 2.0
    asked: ClassVar[list[float]] = []
    lock = threading.Lock()

    def do_GET(self) -> None:
        self._send({"data": [{"id": "reader", "max_model_len": 32_768}]})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        with self.lock:
            self.asked.append(time.monotonic())
        time.sleep(self.answer_s)
        reply = {**NOTHING, "kind": {"value": "other", "line": 1, "quote": "Bug"}}
        choice = {"message": {"content": json.dumps(reply)}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 2_000, "completion_tokens": 100}
        self._send({"model": "reader", "choices": [choice], "usage": usage})

    def _send(self, answer: object) -> None:
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing: requests are counted."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


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
    _Answering.answer_s = asked.answer_s
    server = _Server(("127.0.0.1", 0), _Answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    memory: list[tuple[int, float]] = []

    def report(step: Progress) -> None:
        memory.append((step.done, resident_mib()))

    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "issues.jsonl"
        chosen = islice(rows_of([asked.corpus]), 3_000, 3_000 + asked.issues)
        rows.write_text("\n".join(map(json.dumps, chosen)), encoding="utf-8")
        store = open_store(f"sqlite:///{folder}/base.db")
        migrate(store)
        import_paths(store, [str(rows)], REPO)
        with ReaderClient(f"http://127.0.0.1:{server.server_port}", parallel=asked.parallel) as client:
            begun, cpu = time.monotonic(), time.process_time()
            result = read_issues(store, REPO, client, parallel=asked.parallel, report=report)
            took, cpu = time.monotonic() - begun, time.process_time() - cpu
        store.close()
    least = asked.issues * asked.answer_s / asked.parallel
    early = next((mib for done, mib in memory if done >= asked.issues / 4), 0.0)
    print(f"{result.asked} issues in {took:.1f} s, the least possible is {least:.1f} s: {took / least:.2f} x")
    print(
        f"CPU {cpu:.1f} s; the last reply came {_Answering.asked[-1] + asked.answer_s - begun:.1f} s after the first request"
    )
    print(f"memory: {early:.0f} MiB after a quarter, {memory[-1][1]:.0f} MiB at the end")
    print(f"requests: {len(_Answering.asked)}, outcomes {result.outcomes}")


if __name__ == "__main__":
    main()
