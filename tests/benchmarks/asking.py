"""The same logs asked of several bases in turn, so that all meet the same moods of the machine."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from app.bench.run import BenchQuery
from app.knowledge.diagnosis.diagnose import diagnose
from app.knowledge.diagnosis.shapes import Diagnosis
from app.store.session import Store
from tests.benchmarks.processes import Meter, size_mb

WARM_UP = 40
ROUNDS = 3
HEADINGS = (
    "base",
    "issues",
    "MB",
    "CPU ms mean",
    "p50",
    "p95",
    "of it PostgreSQL",
    "wall ms p50",
    "p95",
    "R@1",
)
HEAD = f"| {' | '.join(HEADINGS)} |\n|{'---|' * len(HEADINGS)}"


@dataclass(frozen=True, slots=True)
class Figures:
    """What the searches of one base cost, in milliseconds a log, how many were right at once, and the answers.

    `cpu_ms` is that of both processes where there is a database server.
    """

    name: str
    issues: int
    size_mb: float
    cpu_ms: np.ndarray
    database_ms: np.ndarray
    wall_ms: np.ndarray
    right: float
    tops: tuple[tuple[int, ...], ...]

    def line(self) -> str:
        cpu, wall = np.percentile(self.cpu_ms, (50, 95)), np.percentile(self.wall_ms, (50, 95))
        return (
            f"| {self.name} | {self.issues:,} | {self.size_mb:,.0f} | {self.cpu_ms.mean():.1f} | {cpu[0]:.1f} | "
            f"{cpu[1]:.1f} | {self.database_ms.mean():.1f} | {wall[0]:.1f} | {wall[1]:.1f} | {self.right:.3f} |"
        )


def ask_in_turn(
    stores: Mapping[str, Store],
    queries: Sequence[BenchQuery],
    repo: str,
    *,
    limit: int = 10,
    number_of: Callable[[int], int] = int,
) -> list[Figures]:
    """Ask every log of every base in turn, `ROUNDS` times; of a log's times the middle one counts.

    Args:
        number_of: which issue a number stands for, where a base holds copies.
    """
    meters = {name: Meter(store) for name, store in stores.items()}
    cpu, database, wall = (np.zeros((len(stores), len(queries), ROUNDS)) for _ in range(3))
    first: dict[str, list[Diagnosis]] = {name: [] for name in stores}
    for (_, store), query in product(stores.items(), queries[:WARM_UP]):
        diagnose(store, query.text, repos=(repo,), limit=limit)
    gc.collect()
    gc.freeze()
    asked = product(range(ROUNDS), enumerate(queries), enumerate(stores.items()))
    for turn, (which, query), (at, (name, store)) in asked:
        meters[name].begin()
        answer = diagnose(store, query.text, repos=(repo,), limit=limit)
        cost = meters[name].end()
        cpu[at, which, turn], database[at, which, turn] = cost.cpu_ms, cost.database_ms
        wall[at, which, turn] = cost.wall_ms
        if turn == 0:
            first[name].append(answer)
    gc.unfreeze()
    found = []
    for at, (name, store) in enumerate(stores.items()):
        tops = tuple(tuple(number_of(match.number) for match in answer.matches) for answer in first[name])
        right = sum(bool(top) and top[0] in query.right for top, query in zip(tops, queries, strict=True))
        costs = (np.median(part[at], axis=1) for part in (cpu, database, wall))
        issues = first[name][0].index.issues
        found.append(Figures(name, issues, size_mb(store), *costs, right / len(queries), tops))
    return found
