"""Whether both engines answer alike, and how fast each does: the same logs over the same base, asked in turn.

    python -m tests.benchmarks.engines --base sqlite:////path/of/triage.db [--logs 100] [--to URL | --beside URL]

Copies the base to a PostgreSQL of its own (or to the empty base at `--to`; `--beside` names a copy that is there),
asks both engines the first form of the pinned logs that the base holds, and prints what an answer took, how many
round trips it was, and how many logs have the same top 5. Everything it starts it also ends.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from sqlalchemy import event

from app.bench.run import BenchQuery
from app.knowledge.diagnosis.diagnose import diagnose
from app.store.backup.copy import copy_database
from app.store.session import Store, open_store
from tests.benchmarks.asking import HEAD, ask_in_turn
from tests.benchmarks.libraries import rewritten_logs
from tests.postgresql import set_up_server

TOP = 5
SERVER = ("shared_buffers=512MB", "max_wal_size=4GB")


def count_statements(store: Store, repo: str, queries: Sequence[BenchQuery]) -> float:
    """How many statements an answer takes; PostgreSQL is told the beginning and end of its transaction besides."""
    count = 0

    def add(*_told: object) -> None:
        nonlocal count
        count += 1

    event.listen(store.engine, "before_cursor_execute", add)
    for query in queries:
        diagnose(store, query.text, repos=(repo,), limit=TOP)
    event.remove(store.engine, "before_cursor_execute", add)
    return count / len(queries)


def compare(one: Store, other: Store, repo: str, count: int) -> tuple[int, int]:
    """Print the figures; how many logs have the same top, of how many."""
    queries = rewritten_logs(one, repo)[:count]
    stores = {store.engine.name: store for store in (one, other)}
    found = ask_in_turn(stores, queries, repo, limit=TOP)
    print(HEAD)
    for figures in found:
        print(figures.line())
    walls = [float(np.percentile(figures.wall_ms, 50)) for figures in found]
    print(f"wall p50 of {found[1].name} to {found[0].name}: {walls[1] / walls[0]:.2f} x")
    for name, store in stores.items():
        print(f"{name}: {count_statements(store, repo, queries):.1f} statements an answer")
    alike = sum(mine == theirs for mine, theirs in zip(found[0].tops, found[1].tops, strict=True))
    print(f"same top {TOP}: {alike} of {len(queries)}")
    return alike, len(queries)


@contextmanager
def other_engine(one: Store, to: str | None, beside: str | None) -> Iterator[Store]:
    """The same rows in another base: one that is there, or a copy made now."""
    server = None
    if not (to or beside):
        server = set_up_server(*SERVER)
        server.start()
    try:
        other = open_store(beside or to or (server.new_database() if server else ""))
        if not beside:
            began = time.perf_counter()
            rows = sum(copy_database(one, other).values())
            print(f"copied and checked {rows:,} rows in {time.perf_counter() - began:.1f} s")
        yield other
        other.close()
    finally:
        if server is not None:
            server.remove()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", required=True)
    parser.add_argument("--repo", default="vllm-project/vllm")
    parser.add_argument("--logs", type=int, default=100)
    parser.add_argument("--to")
    parser.add_argument("--beside")
    asked = parser.parse_args()
    one = open_store(asked.base)
    with other_engine(one, asked.to, asked.beside) as other:
        compare(one, other, asked.repo, asked.logs)
    one.close()


if __name__ == "__main__":
    main()
