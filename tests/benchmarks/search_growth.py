"""How the cost of one search grows with the corpus: the benchmark's rewritten logs, asked in process.

    python -m tests.benchmarks.search_growth BASE.db [--sizes 64000 256000] [--folder DIR] [--share 0.5] [--keep DIR]
    python -m tests.benchmarks.search_growth BASE.db --ask URL URL…

Takes a copy of a filled SQLite base and grows it by copying its issues, with all that a search asks of them,
under new numbers. Real issues bring words of their own, so each copy of the corpus has a share of its rare terms
(those in at most `RARE_DF` issues) replaced by terms that stand nowhere else; all others become as much more
frequent as the corpus grows. Half of them is what the base itself tells: the distinct terms of a random half of
its issues, and Heaps' law from there on, printed beside what the grown base holds. `--keep` leaves each size as
`growth_SIZE.db`; `triage copy` brings them to PostgreSQL.

The second form grows nothing and asks bases of either engine that are there already, the smallest of each first.

At each size every log of `app.bench` is asked of all bases in turn. The verdict is on CPU time, which other
processes blur least; on PostgreSQL that of its own process is added, if it runs on this machine. An issue and its
copies count as one answer. HTTP is not measured here (`tests.benchmarks.load` does).
"""

from __future__ import annotations

import argparse
import math
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.engine import make_url

from app.bench.run import BenchQuery
from app.store.derived.search_index import BYTES_PER_TERM
from app.store.schema import migrate
from app.store.session import open_store
from app.store.tables import metadata
from tests.benchmarks.asking import HEAD, Figures, ask_in_turn
from tests.benchmarks.libraries import rewritten_logs
from tests.benchmarks.links_growth import OFFSET, REPO, copy_rows

ASKED_TABLES = ("issue", "reading", "fact", "occurrence", "link")
"""Copied row by row; the index's own tables are made anew, with the copies' own terms."""
EMPTY = {"issue": ("raw",)}
RARE_DF = 3
SEED = 9
ROWS = 500_000
"""Rows given to the driver at once."""


@dataclass(frozen=True, slots=True)
class Index:
    """The base's search index: terms by id, and which issue holds which (`at` counts in `ids`)."""

    ids: np.ndarray
    dfs: np.ndarray
    at: np.ndarray
    numbers: np.ndarray


def heaps_exponent(dfs: np.ndarray) -> float:
    """By which power of the number of issues the distinct terms grow: from the expected ones of a random half."""
    half = float(np.sum(1 - 0.5**dfs))
    return math.log2(len(dfs) / half)


def read_index(connection: Connection, repo_id: int) -> Index:
    """The whole search index of a base, some 3 million postings."""
    terms = connection.exec_driver_sql("SELECT id, df FROM term WHERE df > 0 ORDER BY id").all()
    ids = np.array([row[0] for row in terms], dtype=np.int64)
    asked = f"SELECT term_id, number FROM posting WHERE repo_id = {int(repo_id)} AND number < {OFFSET}"
    rows = np.array(connection.exec_driver_sql(asked).cursor.fetchall(), dtype=np.int64)
    return Index(
        ids,
        np.array([row[1] for row in terms]),
        np.searchsorted(ids, rows[:, 0]),
        rows[:, 1],
    )


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
        "INSERT INTO term (id, df) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET df = df + excluded.df",
        zip(ids[new].tolist(), counts[new].tolist(), strict=True),
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
    """A profile with other term ids, packed as `app.store.derived.search_index` packs it."""
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
            f"INSERT INTO posting (term_id, repo_id, number) VALUES (?, {int(repo_id)}, ?)",
            zip(terms[some].tolist(), numbers[some].tolist(), strict=True),
        )


def _many(connection: Connection, statement: str, rows: Iterator[tuple[object, ...]]) -> None:
    driver = connection.connection.dbapi_connection
    assert driver is not None
    driver.executemany(statement, rows)  # type: ignore[attr-defined]


def measure(urls: Mapping[str, str], queries: Sequence[BenchQuery]) -> list[Figures]:
    """Ask every log of every base in turn, and print a row for each."""
    stores = {name: open_store(url) for name, url in urls.items()}
    found = ask_in_turn(stores, queries, REPO, number_of=lambda number: number % OFFSET)
    for figures in found:
        print(figures.line(), flush=True)
    for store in stores.values():
        store.close()
    return found


def compare(small: Figures, large: Figures) -> None:
    """Print how much more a search of the larger base costs."""
    p50, p95 = (np.percentile(large.cpu_ms, at) / np.percentile(small.cpu_ms, at) for at in (50, 95))
    mean = large.cpu_ms.mean() / small.cpu_ms.mean()
    wall = np.percentile(large.wall_ms, 50) / np.percentile(small.wall_ms, 50)
    print(
        f"{large.name}, {large.issues:,} issues to {small.issues:,}: CPU {mean:.2f} x "
        f"(p50 {p50:.2f} x, p95 {p95:.2f} x), wall p50 {wall:.2f} x",
        flush=True,
    )


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


def run(base: Path, folder: Path, sizes: Sequence[int], share: float, keep: Path | None) -> None:
    """Measure each size grown from the base beside the base itself."""
    first, grown = folder / "growth_base.db", folder / "growth_grown.db"
    shutil.copyfile(base, first)
    store = open_store(f"sqlite:///{first}")
    migrate(store)
    queries = rewritten_logs(store, REPO)
    with store.engine.connect() as connection:
        dfs = np.array(connection.exec_driver_sql("SELECT df FROM term WHERE df > 0").scalars().all())
        began_with = _counts(connection)
    store.close()
    exponent = heaps_exponent(dfs)
    print(f"{len(queries)} logs; distinct terms grow as the issues to the power of {exponent:.2f}")
    print(HEAD, flush=True)
    tell_terms(first, began_with, exponent)
    shutil.copyfile(first, grown)
    for size in sorted(sizes):
        grow(grown, first, size, share)
        tell_terms(grown, began_with, exponent)
        compare(*measure({"base": f"sqlite:///{first}", "grown": f"sqlite:///{grown}"}, queries))
        if keep:
            keep.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(grown, keep / f"growth_{size}.db")


def ask(base: Path, urls: Sequence[str]) -> None:
    """Measure bases that are there, and compare those of each engine with its first one."""
    store = open_store(f"sqlite:///{base}")
    queries = rewritten_logs(store, REPO)
    store.close()
    print(f"{len(queries)} logs\n{HEAD}", flush=True)
    found = measure({_name_of(url): url for url in urls}, queries)
    first: dict[str, Figures] = {}
    for figures in found:
        engine = figures.name.split()[0]
        if first.setdefault(engine, figures) is not figures:
            compare(first[engine], figures)
    for figures in found[1:]:
        if figures.issues == found[0].issues:
            alike = sum(one[:5] == other[:5] for one, other in zip(found[0].tops, figures.tops, strict=True))
            print(f"same top 5 of {found[0].name} and {figures.name}: {alike} of {len(queries)}")


def _name_of(url: str) -> str:
    found = make_url(url)
    return f"{found.get_backend_name()} {Path(found.database or '').stem}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[64_000, 256_000])
    parser.add_argument("--folder", type=Path, help="where the grown base is made; 4 GB for 256,000 issues")
    parser.add_argument("--share", type=float, default=0.5, help="of a copy's rare terms, its own")
    parser.add_argument("--keep", type=Path, help="the folder where the grown bases stay")
    parser.add_argument("--ask", nargs="+", metavar="URL", help="bases to measure in place of growing one")
    asked = parser.parse_args()
    if asked.ask:
        ask(asked.base, asked.ask)
        return
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        run(asked.base, Path(folder), asked.sizes, asked.share, asked.keep)


if __name__ == "__main__":
    main()
