"""How the cost of one new issue grows with the corpus: read, linked and clustered, alone in its transaction.

    python -m tests.benchmarks.links_growth BASE.db [--sizes 16000 32000 64000] [--new 200] [--keep GROWN.db]

Takes a copy of a filled SQLite base and grows it by copying its issues with all that is known of them under new
numbers: so every term becomes as much more frequent as the corpus grows, which is the worst that can happen to a
search. At each size it reads the same issues as if they came now: stored ones, rewritten as from another machine
(`tests.benchmarks.rewrite`), each stored, read, linked and clustered in a transaction that is rolled back. Prints the
cost in CPU time, which other processes do not blur; the last line compares the largest size with the smallest.
With `--keep` the grown base stays, for measuring searches.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sqlalchemy import Connection, Table, text

from app.extract.log.signature import signature_id
from app.knowledge.indexing.derive import derive_issues, read_stored
from app.store.derived.clusters import (
    ClusterRecord,
    MemberRecord,
    count_reports,
    find_clusters,
    find_members,
    replace_clusters,
    save_members,
)
from app.store.github.issues import add_repository, find_issues, numbers_of, save_issues
from app.store.records import IssueRecord
from app.store.schema import migrate
from app.store.session import Store, open_store
from app.store.tables import metadata
from tests.benchmarks.rewrite import rewrite

REPO = "vllm-project/vllm"
OFFSET = 100_000
"""What is added to the numbers of each further copy of the corpus."""
NEW_FROM = 900_000_000
OWN_WAY = frozenset(
    {
        "cluster_member",
        "cluster_alias",
        "judgement",
        "fix_containment",
        "release_pull",
        "vote",
        "card",
        "pull_request",
    }
)
"""Tables that are not copied row by row."""
BATCH = 500


class _RolledBackError(Exception):
    pass


def grow(store: Store, repo_id: int, size: int) -> None:
    """Copy issues under new numbers until so many are stored."""
    with store.reading() as session:
        known = numbers_of(session, repo_id, limit=10_000_000)
    original = [number for number in known if number < OFFSET]
    while len(known) < size:
        copies = len(known) // len(original)
        wanted = original[len(known) - copies * len(original) :][: size - len(known)]
        _copy(store, repo_id, wanted, copies * OFFSET)
        known += [number + copies * OFFSET for number in wanted]


def _copy(store: Store, repo_id: int, numbers: Sequence[int], offset: int) -> None:
    asked = {"repo": repo_id, "low": numbers[0], "high": numbers[-1], "offset": offset}
    tables = [table for table in metadata.sorted_tables if {"repo_id", "number"} <= set(table.c.keys())]
    with store.engine.begin() as connection:
        for table in tables:
            if table.name in OWN_WAY:
                continue
            copy_rows(connection, table, asked)
        connection.execute(
            text(
                "UPDATE term SET df = df + (SELECT count(*) FROM posting WHERE term_id = term.id AND repo_id = :repo "
                "AND number BETWEEN :low + :offset AND :high + :offset)"
            ),
            asked,
        )
    _copy_clusters(store, repo_id, numbers, offset)


def copy_rows(
    connection: Connection, table: Table, asked: Mapping[str, int], without: Collection[str] = ()
) -> None:
    """Copy a table's rows of some issues under new numbers.

    Args:
        asked: `repo`, the `low` and `high` number, and the `offset` to add.
        without: columns that stay empty.
    """
    names = [c.name for c in table.c if (table.name, c.name) != ("fact", "id") and c.name not in without]
    found = [_copied(table.name, name) for name in names]
    connection.execute(
        text(
            f"INSERT INTO {table.name} ({', '.join(names)}) SELECT {', '.join(found)} FROM {table.name} "
            "WHERE repo_id = :repo AND number BETWEEN :low AND :high"
        ),
        asked,
    )


def _copied(table: str, name: str) -> str:
    if name == "number":
        return "number + :offset"
    if (table, name) == ("link", "target_number"):
        return "CASE WHEN kind = 'similar' THEN target_number + :offset ELSE target_number END"
    return name


def _copy_clusters(store: Store, repo_id: int, numbers: Sequence[int], offset: int) -> None:
    with store.unit_of_work() as session:
        members = find_members(session, repo_id, numbers)
        kept = find_clusters(session, repo_id, sorted({member.cluster_id for member in members.values()}))
        made = {
            key: ClusterRecord(
                signature_id(f"{item.text} | #{item.canonical + offset}"), item.canonical + offset, item.text
            )
            for key, item in kept.items()
        }
        replace_clusters(session, repo_id, [], list(made.values()))
        copied = [
            MemberRecord(replace(member.traits, number=number + offset), made[member.cluster_id].id)
            for number, member in members.items()
        ]
        save_members(session, repo_id, copied)
        count_reports(session, repo_id, [item.traits.number for item in copied])


def newcomers(store: Store, repo_id: int, count: int) -> list[IssueRecord]:
    """Stored failures as somebody else would report them now; always the same ones."""
    with store.reading() as session:
        known = [number for number in numbers_of(session, repo_id, limit=10_000_000) if number < OFFSET]
        chosen = sorted(random.Random(6).sample(sorted(find_members(session, repo_id, known)), count))
        issues = find_issues(session, repo_id, chosen)
    return [
        replace(issue, number=NEW_FROM + at, body=rewrite(issue.body, at, "whole") or issue.body, raw=None)
        for at, issue in enumerate(issues)
    ]


def cost_of(store: Store, repo_id: int, issue: IssueRecord) -> tuple[float, float, float]:
    """CPU seconds of all, CPU seconds of reading alone, seconds of all by the clock."""
    try:
        with store.unit_of_work() as session:
            save_issues(session, repo_id, [issue])
            began = time.process_time()
            read_stored(session, repo_id, REPO, [issue.number])
            read_s = time.process_time() - began
            began, began_wall = time.process_time(), time.perf_counter()
            derive_issues(session, repo_id, REPO, [issue.number])
            all_s, wall_s = time.process_time() - began, time.perf_counter() - began_wall
            _roll_back()
    except _RolledBackError:
        return all_s, read_s, wall_s
    raise AssertionError("the transaction was to be rolled back")


def _roll_back() -> None:
    raise _RolledBackError


def measure(store: Store, repo_id: int, size: int, issues: Sequence[IssueRecord]) -> float:
    """Print what the issues cost at this size; the mean in CPU milliseconds."""
    for issue in issues[:5]:  # so that no first one pays for what all share
        cost_of(store, repo_id, issue)
    found = [cost_of(store, repo_id, issue) for issue in issues]
    whole = [1000 * item[0] for item in found]
    read = [1000 * item[1] for item in found]
    wall = sorted(1000 * item[2] for item in found)
    mean = statistics.mean(whole)
    print(
        f"{size:7} stored: {mean:.1f} ms of CPU an issue (median {statistics.median(whole):.1f}, most {max(whole):.1f}), "
        f"of it {mean - statistics.mean(read):.1f} for storing, linking and clustering; by the clock median "
        f"{statistics.median(wall):.1f}, p95 {wall[int(0.95 * (len(wall) - 1))]:.1f}",
        flush=True,
    )
    return mean


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[16_000, 32_000, 64_000])
    parser.add_argument("--new", type=int, default=200)
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = asked.keep or Path(folder) / "grown.db"
        shutil.copyfile(asked.base, path)
        store = open_store(f"sqlite:///{path.resolve()}")
        migrate(store)
        with store.unit_of_work() as session:
            repo_id = add_repository(session, REPO)
        issues = newcomers(store, repo_id, asked.new)
        costs = []
        for size in sorted(asked.sizes):
            grow(store, repo_id, size)
            costs.append(measure(store, repo_id, size, issues))
        store.close()
    print(f"growth from {min(asked.sizes):,} to {max(asked.sizes):,}: {costs[-1] / costs[0]:.2f} x")


if __name__ == "__main__":
    main()
