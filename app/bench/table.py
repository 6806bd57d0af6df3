"""The figures as Markdown, and into a file between its marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from app.bench.run import OURS
from app.bench.score import Figures, Recall
from app.errors import InputError

BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
BANDS = ("same", "likely", "related", "unknown")
NUMBERS_MAX = 20


def markdown(figures: Figures) -> str:
    """All tables."""
    parts = (
        _head(figures), _recall_table(figures), _set_table(figures), _band_table(figures),
        _reliability_table(figures),
    )  # fmt: skip
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
        "plain": "known", "temporal": "known, temporal", "unknown": "its issue and twins hidden",
        "unknown, temporal": "hidden, temporal", "foreign": "other programs", "question": "questions",
        "question, held out": "questions, held out",
    }  # fmt: skip
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
