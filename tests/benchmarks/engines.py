"""Whether both engines answer alike, and how fast each does: the same logs over the same base.

    python -m tests.benchmarks.engines --base sqlite:////path/of/triage.db [--logs 100] [--to URL]

Copies the base to a PostgreSQL of its own (or to the empty base at `--to`), asks each engine the first form of
the pinned logs that the base holds, and prints how many have the same top 5 and what an answer took. Everything
it starts it also ends.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from app.bench.cases import load_pinned
from app.bench.corpus import find_logs, read_documents
from app.bench.rewrite import rewrite
from app.knowledge.diagnosis import diagnose
from app.store.copying import copy_base
from app.store.session import Store, open_store
from tests.postgresql import set_up_server

TOP = 5
WARM_UP = 5
SERVER = ("shared_buffers=512MB", "max_wal_size=4GB")


def logs_of(store: Store, repo: str, count: int) -> list[str]:
    """Pinned logs as another machine prints them."""
    found = find_logs(read_documents(store, repo), load_pinned().cases)
    return [
        rewrite(item.log, item.case.rewrites[0].seed, item.case.rewrites[0].form) for item in found.logs[:count]
    ]


def ask(store: Store, repo: str, logs: Sequence[str]) -> tuple[list[tuple[int, ...]], list[float]]:
    """The top numbers of each log, and how long each took in milliseconds."""
    for log in logs[:WARM_UP]:
        diagnose(store, log, repos=(repo,))
    tops, times = [], []
    for log in logs:
        began = time.perf_counter()
        told = diagnose(store, log, repos=(repo,), limit=TOP)
        times.append(1000 * (time.perf_counter() - began))
        tops.append(tuple(match.number for match in told.matches))
    return tops, times


def compare(one: Store, other: Store, repo: str, count: int) -> tuple[int, int]:
    """Print the figures; how many logs have the same top, of how many."""
    logs = logs_of(one, repo, count)
    answers = {}
    for store in (one, other):
        answers[store], times = ask(store, repo, logs)
        middle, late = sorted(times)[len(times) // 2], sorted(times)[int(0.95 * len(times))]
        print(f"{store.engine.name}: {len(logs)} logs, p50 {middle:.1f} ms, p95 {late:.1f} ms, worst {max(times):.1f} ms")
    alike = sum(mine == theirs for mine, theirs in zip(answers[one], answers[other], strict=True))
    print(f"same top {TOP}: {alike} of {len(logs)}")
    return alike, len(logs)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", required=True)
    parser.add_argument("--repo", default="vllm-project/vllm")
    parser.add_argument("--logs", type=int, default=100)
    parser.add_argument("--to")
    told = parser.parse_args()
    one = open_store(told.base)
    server = None
    if not told.to:
        server = set_up_server(*SERVER)
        server.start()
    try:
        other = open_store(told.to or server.new_database())
        began = time.perf_counter()
        copied = copy_base(one, other)
        rows = sum(summed.rows for summed in copied.values())
        print(f"copied and checked {rows:,} rows in {time.perf_counter() - began:.1f} s")
        compare(one, other, told.repo, told.logs)
        other.close()
    finally:
        if server is not None:
            server.remove()


if __name__ == "__main__":
    main()
