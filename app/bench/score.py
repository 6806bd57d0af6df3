"""Figures of a run: what the table and the JSON show."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import get_args

from app.bench.run import OURS, Asked, Run, Split
from app.knowledge.answers import Band

BINS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 1.0)
"""Edges of the reliability table; finer where a promise is made."""
UNKNOWN_SPLITS: tuple[Split, ...] = ("unknown", "unknown, temporal", "foreign")
RELIABILITY_SPLITS: tuple[Split, ...] = ("plain", "unknown", "foreign")
"""One view of the base, with what it knows and what it does not: half and half."""


@dataclass(frozen=True, slots=True)
class Recall:
    """How well a set of queries was answered; no figures where the library is not installed."""

    system: str
    split: str
    queries: int = 0
    r1: float = 0.0
    r5: float = 0.0
    r10: float = 0.0
    mrr: float = 0.0
    p50_ms: float = 0.0
    p95_ms: float = 0.0
    installed: bool = True


@dataclass(frozen=True, slots=True)
class BandShare:
    """How often a verdict was given in a split, and how often its first match was right."""

    split: Split
    band: Band
    given: int
    queries: int
    right: int


@dataclass(frozen=True, slots=True)
class Reliability:
    """Queries whose first match was given a chance in [low, high): said on average, and right."""

    low: float
    high: float
    queries: int
    said: float
    right: float


@dataclass(frozen=True, slots=True)
class Figures:
    """All figures of a run."""

    day: str
    machine: str
    issues: int
    cases: int
    missing: tuple[int, ...]
    changed: tuple[int, ...]
    recall: tuple[Recall, ...]
    bands: tuple[BandShare, ...]
    reliability: tuple[Reliability, ...]


def figures_of(run: Run) -> Figures:
    """The figures of what was asked."""
    ours = run.asked[OURS] or []
    return Figures(
        day=datetime.now(UTC).date().isoformat(), machine=machine(), issues=run.issues,
        cases=len(run.found.logs), missing=run.found.missing, changed=run.found.changed,
        recall=tuple(row for name, asked in run.asked.items() for row in _recalls(name, asked)),
        bands=tuple(_bands(ours)), reliability=tuple(_reliability(ours)),
    )  # fmt: skip


def _recalls(system: str, asked: Sequence[Asked] | None) -> list[Recall]:
    if asked is None:
        return [Recall(system, split, installed=False) for split in _SETS]
    return [recall_of(system, name, [item for item in asked if fits(item)]) for name, fits in _SETS.items()]


_SETS: dict[str, Callable[[Asked], bool]] = {
    "plain": lambda item: item.query.split == "plain",
    "plain, other machine": lambda item: item.query.split == "plain" and item.query.form != "cascade",
    "plain, server of today": lambda item: item.query.split == "plain" and item.query.form == "cascade",
    "temporal": lambda item: item.query.split == "temporal",
    "older twins": lambda item: item.query.split == "older twins",
    "questions": lambda item: item.query.split == "question",
    "questions, held out": lambda item: item.query.split == "question, held out",
}


def recall_of(system: str, split: str, asked: Sequence[Asked]) -> Recall:
    """Recall, mean reciprocal rank and latency over some queries."""
    if not asked:
        return Recall(system, split)
    ranks = [item.rank for item in asked]
    times = sorted(item.took_ms for item in asked)
    r1, r5, r10 = (_share([0 < rank <= k for rank in ranks]) for k in (1, 5, 10))
    return Recall(
        system, split, len(asked), r1, r5, r10,
        mrr=round(sum(1 / rank for rank in ranks if rank) / len(ranks), 4),
        p50_ms=round(statistics.median(times), 1), p95_ms=round(times[int(0.95 * (len(times) - 1))], 1),
    )  # fmt: skip


def _bands(asked: Sequence[Asked]) -> list[BandShare]:
    found = []
    for split in get_args(Split):
        here = [item for item in asked if item.query.split == split]
        for band in get_args(Band):
            given = [item for item in here if item.answer.verdict == band]
            right = sum(item.rank == 1 for item in given)
            found.append(BandShare(split, band, len(given), len(here), right))
    return found


def _reliability(asked: Sequence[Asked]) -> list[Reliability]:
    told = [
        (item.answer.chance, item.rank == 1)
        for item in asked
        if item.query.split in RELIABILITY_SPLITS and item.answer.chance is not None
    ]
    found = []
    for low, high in pairwise(BINS):
        inside = [(chance, ok) for chance, ok in told if low <= chance < high or chance == high == 1]
        said = round(statistics.mean(chance for chance, _ in inside), 4) if inside else 0.0
        found.append(Reliability(low, high, len(inside), said, _share([ok for _, ok in inside])))
    return found


def _share(hits: Sequence[bool]) -> float:
    return round(sum(hits) / len(hits), 4) if hits else 0.0


def machine() -> str:
    """The class of this machine: processor and cores, nothing that names it."""
    cores = os.cpu_count() or 1
    return f"{_processor()}, {cores} {'core' if cores == 1 else 'cores'}"


def _processor() -> str:
    told = Path("/proc/cpuinfo")
    if told.is_file():
        for line in told.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
