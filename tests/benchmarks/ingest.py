"""Ingest throughput: issues a second from raw JSON to searchable, and how the cost of one grows.

    python -m tests.benchmarks.ingest ISSUES.jsonl[.gz] [--database URL] [--until 16000]

Loads the file's issues in a shuffled, fixed order in batches of 500, through the same code as the sync (records,
archive, facts, signatures, terms), and prints the cost of an issue at each size. The last line compares the
cost around 16,000 stored issues with that around 4,000.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.knowledge.indexing.derive import derive_issues
from app.store.github.issues import add_repository, save_issues
from app.store.schema import migrate
from app.store.session import Store, open_store
from ingest.parse import issue_record

REPO = "vllm-project/vllm"
BATCH = 500
WINDOW = 1_000
"""The cost at a size is the mean over the issues this far below and above it."""


def rows_of(path: Path) -> list[dict[str, Any]]:
    """All rows of a file, in an order that mixes long and short, old and new."""
    opened = gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")
    with opened as lines:
        rows = [json.loads(line) for line in lines]
    random.Random(4).shuffle(rows)
    return rows


def load(store: Store, rows: list[dict[str, Any]]) -> Iterator[tuple[int, float]]:
    """Store and read the rows; yields (stored so far, seconds of the batch)."""
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
    for start in range(0, len(rows), BATCH):
        began = time.perf_counter()
        records = [issue_record(row, REPO) for row in rows[start : start + BATCH]]
        with store.unit_of_work() as session:
            save_issues(session, repo_id, records)
        for first in range(0, len(records), 100):
            with store.unit_of_work() as session:
                numbers = [record.number for record in records[first : first + 100]]
                derive_issues(session, repo_id, REPO, numbers)
        yield start + len(records), time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("issues", type=Path)
    parser.add_argument("--database")
    parser.add_argument("--until", type=int, default=16_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(asked.database or f"sqlite:///{folder}/bench.db")
        migrate(store)
        rows = rows_of(asked.issues)[: asked.until]
        measured = list(load(store, rows))
        store.close()
    total = sum(seconds for _, seconds in measured)
    print(f"{len(rows)} issues in {total:.1f} s: {len(rows) / total:.0f} a second")
    costs = {}
    for size in (2_000, 4_000, 8_000, 12_000, 15_000):
        near = [(stored, s) for stored, s in measured if abs(stored - BATCH / 2 - size) <= WINDOW]
        if near:
            costs[size] = 1000 * sum(s for _, s in near) / (len(near) * BATCH)
            print(f"  around {size:6} stored: {costs[size]:.2f} ms an issue")
    if len(costs) > 1 and 4_000 in costs:
        print(f"growth from 4,000: {costs[max(costs)] / costs[4_000]:.2f} x")


if __name__ == "__main__":
    main()
