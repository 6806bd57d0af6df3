"""How the cost of one search grows with the corpus: the benchmark's rewritten logs, asked in process.

    python -m tests.benchmarks.search_growth BASE.db [--sizes 64000 256000] [--folder DIR] [--share 0.5] [--keep GROWN.db]

Takes a copy of a filled SQLite base and grows it by copying its issues, with all that a search asks of them,
under new numbers. Real issues bring words of their own, so each copy of the corpus has a share of its rare terms
(those in at most `RARE_DF` issues) replaced by terms that stand nowhere else; all others become as much more
frequent as the corpus grows. Half of them is what the base itself tells: the distinct terms of a random half of
its issues, and Heaps' law from there on, printed beside what the grown base holds.

At each size every log of `app.bench` is asked of the grown base and of the first one in turn, so that both meet
the same moods of the machine. The verdict is on CPU time, which other processes blur least.
An issue and its copies count as one answer. HTTP is not measured here (`tests.benchmarks.load` does).
"""

from __future__ import annotations

import argparse
import gc
import math
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from sqlalchemy import Connection, create_engine, text

from app.bench.cases import load_cases
from app.bench.corpus import find_logs, read_documents
from app.bench.run import Query, log_queries
from app.knowledge.diagnosis import diagnose
from app.store.schema import migrate
from app.store.session import open_store
from app.store.tables import metadata
from app.store.terms import BYTES_PER_TERM
from tests.benchmarks.links_growth import OFFSET, REPO, copy_rows

ASKED_TABLES = ("issue", "reading", "fact", "occurrence", "link")
"""Copied row by row; the index's own tables are made anew, with the copies' own terms."""
EMPTY = {"issue": ("raw",)}
RARE_DF = 3
SEED = 9
WARM_UP = 40
ROUNDS = 3
ROWS = 500_000
"""Rows given to the driver at once."""


@dataclass(frozen=True, slots=True)
class Index:
    """The base's search index: terms by id, and which issue holds which (`at` counts in `ids`)."""

    ids: np.ndarray
    dfs: np.ndarray
    told: list[tuple[int, str]]
    at: np.ndarray
    numbers: np.ndarray


@dataclass(frozen=True, slots=True)
class Figures:
    """What the searches of one size cost, in milliseconds, and how many were right at once."""

    name: str
    issues: int
    size_mb: float
    cpu_ms: np.ndarray
    wall_ms: np.ndarray
    right: float

    def line(self) -> str:
        cpu, wall = np.percentile(self.cpu_ms, (50, 95)), np.percentile(self.wall_ms, (50, 95))
        return (
            f"| {self.name} | {self.issues:,} | {self.size_mb:,.0f} | {self.cpu_ms.mean():.1f} | {cpu[0]:.1f} | "
            f"{cpu[1]:.1f} | {wall[0]:.1f} | {wall[1]:.1f} | {self.right:.3f} |"
        )


def heaps_exponent(dfs: np.ndarray) -> float:
    """By which power of the number of issues the distinct terms grow: from the expected ones of a random half."""
    half = float(np.sum(1 - 0.5**dfs))
    return math.log2(len(dfs) / half)


def read_index(connection: Connection, repo_id: int) -> Index:
    """The whole search index of a base, some 3 million postings."""
    terms = connection.exec_driver_sql(
        "SELECT id, df, channel, text FROM term WHERE df > 0 ORDER BY id"
    ).all()
    ids = np.array([row[0] for row in terms], dtype=np.int64)
    asked = f"SELECT term_id, number FROM posting WHERE repo_id = {int(repo_id)} AND number < {OFFSET}"  # noqa: S608
    rows = np.array(connection.exec_driver_sql(asked).cursor.fetchall(), dtype=np.int64)
    return Index(
        ids, np.array([row[1] for row in terms]), [(row[2], row[3]) for row in terms],
        np.searchsorted(ids, rows[:, 0]), rows[:, 1],
    )  # fmt: skip


def grow(path: Path, base: Path, size: int, share: float) -> None:
    """Copy the base's issues into `path` under new numbers until so many are stored there."""
    engine = create_engine(f"sqlite:///{base}")
    with engine.connect() as connection:
        repo_id = connection.execute(
            text("SELECT id FROM repository WHERE full_name = :name"), {"name": REPO}
        ).scalar_one()
        index = read_index(connection, repo_id)
    engine.dispose()
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        for pragma in ("journal_mode=OFF", "synchronous=OFF", "cache_size=-2000000", "foreign_keys=OFF"):
            connection.exec_driver_sql(f"PRAGMA {pragma}")
        connection.commit()
        numbers = connection.exec_driver_sql("SELECT number FROM profile ORDER BY number").scalars().all()
        original = [number for number in numbers if 0 < number < OFFSET]
        stored, added, gained = len(numbers), [], np.zeros(len(index.ids), dtype=np.int64)
        while stored < size:
            copy, start = divmod(stored, len(original))
            wanted = original[start:][: size - stored]
            added.append(_copy(connection, repo_id, index, (copy, wanted[0], wanted[-1]), share, gained))
            stored += len(wanted)
            print(f"  {stored:,} issues", flush=True)
        _add_postings(connection, repo_id, added)
        raised = np.flatnonzero(gained)
        _many(
            connection,
            "UPDATE term SET df = df + ? WHERE id = ?",
            zip(gained[raised].tolist(), index.ids[raised].tolist(), strict=True),
        )
        connection.commit()
        connection.exec_driver_sql("PRAGMA journal_mode=WAL")
    engine.dispose()


def _copy(
    connection: Connection,
    repo_id: int,
    index: Index,
    part: tuple[int, int, int],
    share: float,
    gained: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Copy the issues between two numbers for the n-th time; their postings are returned: term ids, numbers."""
    copy, low, high = part
    asked = {"repo": repo_id, "low": low, "high": high, "offset": copy * OFFSET}
    for name in ASKED_TABLES:
        copy_rows(connection, metadata.tables[name], asked, EMPTY.get(name, ()))
    random = np.random.default_rng([SEED, copy])
    own = (index.dfs <= RARE_DF) & (random.random(len(index.ids)) < share)
    ids = np.where(own, index.ids ^ random.integers(1, 2**62), index.ids)
    here = (index.numbers >= low) & (index.numbers <= high)
    at, numbers = index.at[here], index.numbers[here] + copy * OFFSET
    counts = np.bincount(at, minlength=len(ids))
    gained += np.where(own, 0, counts)
    new = np.flatnonzero(own & (counts > 0))
    new = new[np.argsort(ids[new])]
    _many(
        connection,
        "INSERT INTO term (id, channel, text, df) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET df = df + excluded.df",
        (
            (key, index.told[spot][0], f"{index.told[spot][1]} #{copy}", df)
            for spot, key, df in zip(new.tolist(), ids[new].tolist(), counts[new].tolist(), strict=True)
        ),
    )
    packed = connection.exec_driver_sql(
        "SELECT number, terms FROM profile WHERE repo_id = ? AND number BETWEEN ? AND ?", (repo_id, low, high)
    ).all()
    _many(
        connection,
        "INSERT INTO profile (repo_id, number, terms) VALUES (?, ?, ?)",
        ((repo_id, number + copy * OFFSET, _renamed(terms, index.ids, ids)) for number, terms in packed),
    )
    return ids[at], numbers


def _renamed(packed: bytes, old: np.ndarray, new: np.ndarray) -> bytes:
    """A profile with other term ids, packed as `app.store.terms` packs it."""
    size = len(packed) // BYTES_PER_TERM
    ids = new[np.searchsorted(old, np.frombuffer(packed, dtype="<i8", count=size))]
    order = np.argsort(ids)
    counts = np.frombuffer(packed, dtype="<u2", offset=8 * size)[order]
    return ids[order].astype("<i8").tobytes() + counts.tobytes()


def _add_postings(
    connection: Connection, repo_id: int, added: Sequence[tuple[np.ndarray, np.ndarray]]
) -> None:
    """Insert in the order of the key: any other would take the whole tree through the cache for each row."""
    terms, numbers = (np.concatenate([part[side] for part in added]) for side in (0, 1))
    order = np.lexsort((numbers, terms))
    for start in range(0, len(order), ROWS):
        some = order[start : start + ROWS]
        _many(
            connection,
            f"INSERT INTO posting (term_id, repo_id, number) VALUES (?, {int(repo_id)}, ?)",  # noqa: S608
            zip(terms[some].tolist(), numbers[some].tolist(), strict=True),
        )


def _many(connection: Connection, statement: str, rows: Iterator[tuple[object, ...]]) -> None:
    driver = connection.connection.dbapi_connection
    assert driver is not None
    driver.executemany(statement, rows)  # type: ignore[attr-defined]


def measure(paths: Mapping[str, Path], queries: Sequence[Query]) -> list[Figures]:
    """Ask every log of every base in turn, `ROUNDS` times; of a log's times the middle one counts."""
    stores = {name: open_store(f"sqlite:///{path}") for name, path in paths.items()}
    cpu, wall = (np.zeros((len(stores), len(queries), ROUNDS)) for _ in range(2))
    right, issues = dict.fromkeys(stores, 0), dict.fromkeys(stores, 0)
    for store, query in product(stores.values(), queries[:WARM_UP]):
        diagnose(store, query.text, repos=(REPO,))
    gc.collect()
    gc.freeze()
    for turn, (which, query), (at, name) in product(range(ROUNDS), enumerate(queries), enumerate(stores)):
        began, began_wall = time.process_time(), time.perf_counter()
        told = diagnose(stores[name], query.text, repos=(REPO,))
        cpu[at, which, turn] = 1000 * (time.process_time() - began)
        wall[at, which, turn] = 1000 * (time.perf_counter() - began_wall)
        if turn == 0:
            right[name] += bool(told.matches) and told.matches[0].number % OFFSET in query.right
            issues[name] = told.index.issues
    gc.unfreeze()
    found = []
    for at, (name, path) in enumerate(paths.items()):
        size_mb, share = path.stat().st_size / 1e6, right[name] / len(queries)
        costs = np.median(cpu[at], axis=1), np.median(wall[at], axis=1)
        found.append(Figures(name, issues[name], size_mb, *costs, share))
        print(found[-1].line(), flush=True)
    for store in stores.values():
        store.close()
    return found


def tell_terms(path: Path, began_with: tuple[int, int], exponent: float) -> None:
    """Print how many terms a grown base holds, and how many Heaps' law expects there."""
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        issues, terms = _counts(connection)
        postings = connection.exec_driver_sql("SELECT count(*) FROM posting").scalar_one()
        parts = connection.exec_driver_sql(
            "SELECT name, sum(pgsize) / 1e6 FROM dbstat GROUP BY name ORDER BY 2 DESC LIMIT 8"
        ).all()
    engine.dispose()
    expected = began_with[1] * (issues / began_with[0]) ** exponent
    sizes = ", ".join(f"{name} {megabytes:.0f}" for name, megabytes in parts)
    print(f"  {terms:,} terms (Heaps: {expected:,.0f}), {postings:,} postings; MB: {sizes}", flush=True)


def _counts(connection: Connection) -> tuple[int, int]:
    issues = connection.exec_driver_sql("SELECT count(*) FROM profile").scalar_one()
    return issues, connection.exec_driver_sql("SELECT count(*) FROM term WHERE df > 0").scalar_one()


def run(base: Path, folder: Path, sizes: Sequence[int], share: float) -> Path:
    """Measure each size grown from the base beside the base itself; where the largest one is."""
    first, grown = folder / "growth_base.db", folder / "growth_grown.db"
    shutil.copyfile(base, first)
    store = open_store(f"sqlite:///{first}")
    migrate(store)
    documents = read_documents(store, REPO)
    found = find_logs(documents, load_cases())
    queries = [query for query in log_queries(documents, found) if query.split == "plain"]
    with store.engine.connect() as connection:
        dfs = np.array(connection.exec_driver_sql("SELECT df FROM term WHERE df > 0").scalars().all())
        began_with = _counts(connection)
    store.close()
    exponent = heaps_exponent(dfs)
    print(f"{len(queries)} logs; distinct terms grow as the issues to the power of {exponent:.2f}")
    print("| base | issues | MB | CPU ms mean | p50 | p95 | wall p50 | p95 | R@1 |", flush=True)
    tell_terms(first, began_with, exponent)
    shutil.copyfile(first, grown)
    for size in sorted(sizes):
        grow(grown, first, size, share)
        tell_terms(grown, began_with, exponent)
        small, large = measure({"base": first, "grown": grown}, queries)
        p50, p95 = (np.percentile(large.cpu_ms, at) / np.percentile(small.cpu_ms, at) for at in (50, 95))
        mean = large.cpu_ms.mean() / small.cpu_ms.mean()
        print(f"{large.issues:,} to {small.issues:,}: CPU {mean:.2f} x (p50 {p50:.2f} x, p95 {p95:.2f} x)")
    return grown


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[64_000, 256_000])
    parser.add_argument("--folder", type=Path, help="where the grown base is made; 4 GB for 256,000 issues")
    parser.add_argument("--share", type=float, default=0.5, help="of a copy's rare terms, its own")
    parser.add_argument("--keep", type=Path, help="where the largest base stays, for measuring it over HTTP")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        grown = run(asked.base, Path(folder), asked.sizes, asked.share)
        if asked.keep:
            shutil.move(grown, asked.keep)


if __name__ == "__main__":
    main()
