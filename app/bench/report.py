"""Figures of a run: what the table and the JSON show.

The figures as Markdown, and into a file between its marks.

`triage bench diagnose`: run, figures, table.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import get_args

from app.bench.cases import load_pinned
from app.bench.run import OURS, Asked, Run, Split, run
from app.errors import InputError
from app.knowledge.diagnosis.shapes import Band
from app.store.session import Store

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
        day=datetime.now(UTC).date().isoformat(),
        machine=machine(),
        issues=run.issues,
        cases=len(run.found.logs),
        missing=run.found.missing,
        changed=run.found.changed,
        recall=tuple(row for name, asked in run.asked.items() for row in _recalls(name, asked)),
        bands=tuple(_bands(ours)),
        reliability=tuple(_reliability(ours)),
    )


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
        system,
        split,
        len(asked),
        r1,
        r5,
        r10,
        mrr=round(sum(1 / rank for rank in ranks if rank) / len(ranks), 4),
        p50_ms=round(statistics.median(times), 1),
        p95_ms=round(times[int(0.95 * (len(times) - 1))], 1),
    )


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


BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
BANDS = ("same", "likely", "related", "unknown")
NUMBERS_MAX = 20


def markdown(figures: Figures) -> str:
    """All tables."""
    parts = (
        _head(figures),
        _recall_table(figures),
        _set_table(figures),
        _band_table(figures),
        _reliability_table(figures),
    )
    return "\n".join("\n".join(part) + "\n" for part in parts)


def write_between_marks(path: Path, text: str) -> None:
    """Replace what stands between the marks of a file.

    Raises:
        InputError: the file or one of its marks is not there.
    """
    try:
        old = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    head, begin, rest = old.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise InputError(f"{path} lacks the marks {BEGIN} and {END}: put them where the table belongs")
    path.write_text(f"{head}{BEGIN}\n{text}{END}{tail}", encoding="utf-8")


def _head(figures: Figures) -> Iterator[str]:
    queries = next((row.queries for row in figures.recall if row.split == "plain"), 0)
    yield (
        f"{figures.day}, {figures.machine}: {figures.cases} logs of stored issues in {queries} rewrites, "
        f"over {figures.issues:,} issues."
    )
    for what, numbers in (("not stored", figures.missing), ("changed since", figures.changed)):
        if numbers:
            named = ", ".join(map(str, numbers[:NUMBERS_MAX]))
            more = f" and {len(numbers) - NUMBERS_MAX} others" if len(numbers) > NUMBERS_MAX else ""
            yield f"{len(numbers)} logs {what} and left out: {named}{more}."


def _recall_table(figures: Figures) -> Iterator[str]:
    yield "| all issues visible | R@1 | R@5 | R@10 | MRR | p50 | p95 |"
    yield "|---|---|---|---|---|---|---|"
    for row in _rows(figures, "plain"):
        told = f"{_four(row)} | {row.p50_ms:.0f} ms | {row.p95_ms:.0f} ms"
        yield f"| {_name(row)} | {told if row.installed else _absent(6)} |"
    yield ""
    yield "| only issues no newer than the log's own | R@1 | R@5 | R@10 | MRR |"
    yield "|---|---|---|---|---|"
    for row in _rows(figures, "temporal"):
        yield f"| {_name(row)} | {_four(row) if row.installed else _absent(4)} |"


def _set_table(figures: Figures) -> Iterator[str]:
    sets = (
        ("plain, other machine", "R@1, as from another machine", "r1"),
        ("plain, server of today", "R@1, as a server of today prints it", "r1"),
        ("older twins", "R@5, an older report of the same failure, own issue hidden", "r5"),
        ("questions", "R@5, questions without a log", "r5"),
        ("questions, held out", "R@5, questions that nothing was chosen by", "r5"),
    )
    ours = {row.split: row for row in figures.recall if row.system == OURS}
    titles = [f"{title} ({ours[name].queries if name in ours else 0})" for name, title, _ in sets]
    yield f"| | {' | '.join(titles)} |"
    yield "|---|" + "---|" * len(sets)
    for system in dict.fromkeys(row.system for row in figures.recall):
        rows = {row.split: row for row in figures.recall if row.system == system}
        if not all(row.installed for row in rows.values()):
            yield f"| {system} | {_absent(len(sets))} |"
            continue
        told = (f"{getattr(rows[name], figure):.3f}" for name, _, figure in sets)
        yield f"| {_name(rows['plain'])} | {' | '.join(told)} |"


def _band_table(figures: Figures) -> Iterator[str]:
    splits = {
        "plain": "known",
        "temporal": "known, temporal",
        "unknown": "its issue and twins hidden",
        "unknown, temporal": "hidden, temporal",
        "foreign": "other programs",
        "question": "questions",
        "question, held out": "questions, held out",
    }
    counts = {(item.split, item.band): item for item in figures.bands}
    titles = (f"{title} ({_queries(figures, split)})" for split, title in splits.items())
    yield f"| {OURS} says | {' | '.join(titles)} |"
    yield "|---|" + "---|" * len(splits)
    for band in BANDS:
        cells = []
        for split in splits:
            item = next(found for key, found in counts.items() if key == (split, band))
            share = f"{item.given / item.queries:.0%}" if item.queries else "–"
            is_known = split in {"plain", "temporal", "question", "question, held out"} and item.given > 0
            right = f", {item.right / item.given:.1%} right" if is_known and band != "unknown" else ""
            cells.append(share + right)
        yield f"| {band} | {' | '.join(cells)} |"
    yield ""
    yield "The libraries always answer: none of them knows an unknown."


def _queries(figures: Figures, split: str) -> int:
    return next((item.queries for item in figures.bands if item.split == split), 0)


def _reliability_table(figures: Figures) -> Iterator[str]:
    yield "| chance told for the first match | queries | said on average | was right |"
    yield "|---|---|---|---|"
    for item in figures.reliability:
        told = f"{item.said:.1%} | {item.right:.1%}" if item.queries else "– | –"
        yield f"| {item.low:.0%} to {item.high:.0%} | {item.queries} | {told} |"
    yield ""
    yield "Over the known logs, the same ones with their issue hidden, and the texts of other programs."


def _rows(figures: Figures, split: str) -> Sequence[Recall]:
    return [row for row in figures.recall if row.split == split]


def _four(row: Recall) -> str:
    return f"{row.r1:.3f} | {row.r5:.3f} | {row.r10:.3f} | {row.mrr:.3f}"


def _name(row: Recall) -> str:
    return f"**{row.system}**" if row.system == OURS else row.system


def _absent(cells: int) -> str:
    return " | ".join(["not installed", *["–"] * (cells - 1)])


def bench_diagnose(
    store: Store, repo: str, *, tell: Callable[[str], None], as_json: bool = False, write: Path | None = None
) -> str:
    """Measure, put the table into `write` if one is given, and return it, or all figures as JSON.

    Raises:
        InputError: nothing of `repo` is stored, or `write` lacks its marks.
    """
    figures = figures_of(run(store, repo, load_pinned(), tell))
    if write is not None:
        write_between_marks(write, markdown(figures))
    return json.dumps(asdict(figures), indent=2) if as_json else markdown(figures)
