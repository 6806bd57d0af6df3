"""`triage bench diagnose`: run all queries and report the figures as JSON or Markdown.

A *real log* is the complete output of a server; its answer is compared with the label by their words. A
*paste* is a log in an issue, which is hidden; the other reports of its failure are the correct answers.
"""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Literal, get_args

from app.bench.cases import Pinned, RealLog, StoredCases, find_logs, load_pinned, read_texts
from app.knowledge.diagnosis.diagnose import diagnose
from app.knowledge.diagnosis.shapes import Band, Diagnosis
from app.knowledge.markdown import render_markdown
from app.store.session import Store

LIMIT = 10
WARM_UP = 3
NOTHING: frozenset[int] = frozenset()

Split = Literal["real log", "real log, unseen", "paste", "question", "question, held out", "foreign"]


@dataclass(frozen=True, slots=True)
class BenchQuery:
    """A query text, its split, the correct issues, and the issues excluded from the search."""

    text: str
    split: str
    right: frozenset[int] = NOTHING
    hidden: frozenset[int] = NOTHING
    real_log: RealLog | None = None


@dataclass(frozen=True, slots=True)
class AnsweredQuery:
    """A query with a system's ranked issue numbers and, if available, verdict and probability."""

    query: BenchQuery
    numbers: tuple[int, ...]
    took_ms: float
    verdict: Band | None = None
    chance: float | None = None
    result: RealLogResult | None = None

    @property
    def rank(self) -> int:
        """Rank of the first correct answer, from 1; 0 if there is none."""
        places = (at for at, number in enumerate(self.numbers, 1) if number in self.query.right)
        return next(places, 0)


@dataclass(frozen=True, slots=True)
class BenchRun:
    """The answers to all queries."""

    issues: int
    found: StoredCases
    answers: Sequence[AnsweredQuery]


def run(store: Store, repo: str, pinned: Pinned, report: Callable[[str], None]) -> BenchRun:
    """Run all queries."""
    texts = read_texts(store, repo)
    found = find_logs(texts, pinned.cases)
    queries = [*paste_queries(found), *other_queries(pinned)]
    report(f"{len(queries)} queries over {len(texts)} issues")
    return BenchRun(len(texts), found, ask_all(store, repo, queries))


def ask_all(store: Store, repo: str, queries: Sequence[BenchQuery]) -> list[AnsweredQuery]:
    """Return the answers; the first few queries are run twice to warm up caches."""

    def ask(query: BenchQuery) -> AnsweredQuery:
        began = time.perf_counter()
        answer = diagnose(store, query.text, repos=(repo,), limit=LIMIT, exclude=query.hidden)
        took_ms = (time.perf_counter() - began) * 1000
        numbers = tuple(match.number for match in answer.matches)
        chance = answer.matches[0].score if answer.matches else None
        result = check_answer(query.real_log, answer) if query.real_log else None
        return AnsweredQuery(query, numbers, took_ms, answer.verdict, chance, result)

    for query in queries[:WARM_UP]:
        ask(query)
    return [ask(query) for query in queries]


def paste_queries(found: StoredCases) -> Iterator[BenchQuery]:
    """Yield the logs of stored issues whose failure is also reported in other issues."""
    for case, log in found.logs:
        own = frozenset({case.number})
        if twins := frozenset(case.right) - own:
            yield BenchQuery(log, "paste", twins, own)


def other_queries(pinned: Pinned) -> Iterator[BenchQuery]:
    """Yield complete logs of real servers, questions without a log, and texts that no issue explains."""
    for item in pinned.real_logs:
        half: Split = "real log, unseen" if item.unseen else "real log"
        yield BenchQuery(item.log, half, frozenset(item.expected), real_log=item)
    for question in pinned.questions:
        split: Split = "question, held out" if question.held_out else "question"
        yield BenchQuery(question.text, split, frozenset(question.right))
    for other in pinned.foreign:
        yield BenchQuery(other.text, "foreign")


HEADLINE_CHARS_MAX = 240
_WORD = re.compile(r"[a-z0-9_.\-/]{2,}")
_QUOTES = re.compile(r"[`'\"█]")


@dataclass(frozen=True, slots=True)
class RealLogResult:
    """Correctness of an answer apart from its matches; `unrelated_remedy`: a remedy despite `unknown`."""

    root_cause: bool
    headline: bool
    unrelated_remedy: bool


def check_answer(log: RealLog, answer: Diagnosis) -> RealLogResult:
    root = answer.root_cause
    remedies = answer.workarounds or any(match.workarounds for match in answer.matches)
    return RealLogResult(
        root_cause=root is not None and is_root_cause(log, root.message or root.type or ""),
        headline=_names_cause(answer.headline, log),
        unrelated_remedy=answer.verdict == "unknown" and bool(remedies),
    )


def is_root_cause(log: RealLog, message: str) -> bool:
    """True if a message and one of the log's causes contain each other or share most of their words."""
    return any(_is_same_message(cause, message) for cause in (log.error, *log.also_ok))


def _is_same_message(label: str, found: str) -> bool:
    a, b = (" ".join(_QUOTES.sub("", text.lower()).split()) for text in (label, found))
    words_a, words_b = _WORD.findall(a), _WORD.findall(b)
    if not a or not b or len(words_b) > max(3 * len(words_a), len(words_a) + 12):
        return a == b  # a much longer text may contain the cause without naming it
    if a in b or (b in a and len(words_b) >= 4):
        return True
    return len({*words_a} & {*words_b}) >= max(3, 0.75 * min(len({*words_a}), len({*words_b})))


def _names_cause(line: str, log: RealLog) -> bool:
    """True if a short line contains most of the first ten longer words of a cause."""
    held = set(_WORD.findall(line.lower()))
    causes = [_WORD.findall(cause.lower()) for cause in (log.error, *log.also_ok)]
    wanted = [[word for word in cause if len(word) > 3][:10] for cause in causes]
    shares = [sum(word in held for word in words) / len(words) for words in wanted if words]
    return "\n" not in line and len(line) <= HEADLINE_CHARS_MAX and max(shares, default=1) >= 0.6


BINS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 1.0)
"""Bin edges of the reliability table; finer at high probabilities, which support claims."""
CLAIMS: tuple[Band, ...] = ("same", "likely")
REAL_LOGS: tuple[Split, ...] = ("real log", "real log, unseen")
RELIABILITY_SPLITS: tuple[Split, ...] = (*REAL_LOGS, "paste", "foreign")
"""Splits that resemble user input: known failures, unreported failures, and texts unrelated to vLLM."""


@dataclass(frozen=True, slots=True)
class Recall:
    """Recall and latency of a split."""

    split: str
    queries: int = 0
    r1: float = 0.0
    r5: float = 0.0
    r10: float = 0.0
    mrr: float = 0.0
    p50_ms: float = 0.0
    p95_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class BandShare:
    """How often a verdict was given in a split, and how often its first match was right."""

    split: str
    band: Band
    given: int
    queries: int
    right: int


@dataclass(frozen=True, slots=True)
class Reliability:
    """Queries whose first match has a probability in [low, high): mean probability and share correct."""

    low: float
    high: float
    queries: int
    given: float
    right: float


@dataclass(frozen=True, slots=True)
class BenchFigures:
    day: str
    machine: str
    issues: int
    cases: int
    missing: tuple[int, ...]
    changed: tuple[int, ...]
    real_logs: dict[str, dict[Split, tuple[int, int]]]
    """By statement and split: number of answers to real logs for which it holds, and of all."""
    recall: tuple[Recall, ...]
    bands: tuple[BandShare, ...]
    reliability: tuple[Reliability, ...]


def bench_diagnose(store: Store, repo: str, *, report: Callable[[str], None], as_json: bool = False) -> str:
    """Run the benchmark and return tables as Markdown, or all figures as JSON."""
    figures = figures_of(run(store, repo, load_pinned(), report))
    return json.dumps(asdict(figures), indent=2) if as_json else markdown(figures)


def markdown(figures: BenchFigures) -> str:
    return render_markdown("bench.md", figures=figures) + "\n"


def figures_of(ran: BenchRun) -> BenchFigures:
    by_split = {name: [one for one in ran.answers if one.query.split == name] for name in get_args(Split)}
    return BenchFigures(
        day=datetime.now(UTC).date().isoformat(),
        machine=machine(),
        issues=ran.issues,
        cases=len(ran.found.logs),
        missing=ran.found.missing,
        changed=ran.found.changed,
        real_logs=real_log_figures(ran.answers),
        recall=tuple(recall_of(name, answers) for name, answers in by_split.items()),
        bands=tuple(share for name, answers in by_split.items() for share in band_shares(name, answers)),
        reliability=tuple(_reliability(ran.answers)),
    )


def recall_of(split: str, answers: Sequence[AnsweredQuery]) -> Recall:
    """Return latency over all answers, and recall and mean reciprocal rank over those with a known answer."""
    ranks = [item.rank for item in answers if item.query.right]
    if not ranks:
        return Recall(split)
    times = sorted(item.took_ms for item in answers)
    r1, r5, r10 = (_share([0 < rank <= k for rank in ranks]) for k in (1, 5, 10))
    return Recall(
        split,
        len(ranks),
        r1,
        r5,
        r10,
        mrr=round(sum(1 / rank for rank in ranks if rank) / len(ranks), 4),
        p50_ms=round(statistics.median(times), 1),
        p95_ms=round(times[int(0.95 * (len(times) - 1))], 1),
    )


def real_log_figures(answers: Sequence[AnsweredQuery]) -> dict[str, dict[Split, tuple[int, int]]]:
    """Count for each statement how many answers to real logs fulfil it."""
    figures: dict[str, dict[Split, tuple[int, int]]] = {}
    for split in REAL_LOGS:
        asked = [item for item in answers if item.query.split == split]
        known, results = [i for i in asked if i.query.right], [i.result for i in asked if i.result]
        statements: dict[str, list[bool]] = {
            "the root cause is right": [result.root_cause for result in results],
            "the headline names it": [result.headline for result in results],
            "where a report is stored, one is first": [item.rank == 1 for item in known],
            "…, one is among the first five": [0 < item.rank <= 5 for item in known],
            "…, one is first as `same` or `likely`": [i.verdict in CLAIMS and i.rank == 1 for i in known],
            "where none is stored, none is claimed": [
                i.verdict not in CLAIMS for i in asked if not i.query.right
            ],
            "another failure is claimed": [i.verdict in CLAIMS and i.rank != 1 for i in asked],
            "`unknown`, but a remedy is shown": [result.unrelated_remedy for result in results],
        }
        for statement, hits in statements.items():
            figures.setdefault(statement, {})[split] = sum(hits), len(hits)
    return figures


def band_shares(split: str, answers: Sequence[AnsweredQuery]) -> Iterator[BandShare]:
    """Yield how often each verdict was given in a split."""
    for band in get_args(Band):
        given = [item for item in answers if item.verdict == band]
        yield BandShare(split, band, len(given), len(answers), sum(item.rank == 1 for item in given))


def _reliability(answers: Sequence[AnsweredQuery]) -> Iterator[Reliability]:
    chances = [
        (item.chance, item.rank == 1)
        for item in answers
        if item.query.split in RELIABILITY_SPLITS and item.chance is not None
    ]
    for low, high in pairwise(BINS):
        inside = [(chance, ok) for chance, ok in chances if low <= chance < high or chance == high == 1]
        mean = round(statistics.mean(chance for chance, _ in inside), 4) if inside else 0.0
        yield Reliability(low, high, len(inside), mean, _share([ok for _, ok in inside]))


def _share(hits: Sequence[bool]) -> float:
    return round(sum(hits) / len(hits), 4) if hits else 0.0


def machine() -> str:
    """Describe this machine by processor and cores, without identifying it."""
    cores = os.cpu_count() or 1
    processor = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        found = re.search(r"(?m)^model name\s*:(.+)", info.read_text(encoding="utf-8", errors="replace"))
        processor = found[1].strip() if found else processor
    return f"{processor}, {cores} {'core' if cores == 1 else 'cores'}"
