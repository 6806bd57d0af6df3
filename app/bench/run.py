"""Asks every system every query in every split.

*plain* sees all issues; *temporal* only those older than the log's own issue was then; *unknown* neither that
issue nor its known twins, so nothing is right; *older twins* only issues older than the log's own.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from app.bench.baselines import baselines
from app.bench.cases import Pinned, SearchText, StoredCases, find_logs, read_texts
from app.bench.rewrite import Form, rewrite
from app.knowledge.diagnosis.diagnose import diagnose
from app.knowledge.diagnosis.shapes import Band
from app.store.session import Store

OURS = "vLLM Triage"
LIMIT = 10
WARM_UP = 3
NOTHING: frozenset[int] = frozenset()

Split = Literal[
    "plain",
    "temporal",
    "older twins",
    "unknown",
    "unknown, temporal",
    "foreign",
    "question",
    "question, held out",
]
KNOWN: tuple[Split, ...] = ("plain", "temporal", "older twins", "question", "question, held out")
"""Splits in which something is right; a system without an "unknown" is asked these only."""


@dataclass(frozen=True, slots=True)
class BenchQuery:
    """A text to ask, what it may not see, and what is right."""

    text: str
    split: Split
    form: Form | None
    right: frozenset[int]
    hidden: frozenset[int] = NOTHING


@dataclass(frozen=True, slots=True)
class AnsweredQuery:
    """A query, the numbers a system gave, best first, and how sure it is, where it says so."""

    query: BenchQuery
    numbers: tuple[int, ...]
    took_ms: float
    verdict: Band | None = None
    chance: float | None = None

    @property
    def rank(self) -> int:
        """Where the first right answer stands, from 1; 0 if nowhere."""
        places = (at for at, number in enumerate(self.numbers, 1) if number in self.query.right)
        return next(places, 0)


@dataclass(frozen=True, slots=True)
class BenchRun:
    """All that was asked: by system, None where a library is not installed."""

    issues: int
    found: StoredCases
    answers: dict[str, list[AnsweredQuery] | None]


def run(store: Store, repo: str, pinned: Pinned, report: Callable[[str], None]) -> BenchRun:
    """Ask everything of everyone.

    Raises:
        InputError: nothing of `repo` is stored.
    """
    texts = read_texts(store, repo)
    found = find_logs(texts, pinned.cases)
    queries = [*log_queries(texts, found), *other_queries(pinned)]
    known = [query for query in queries if query.split in KNOWN]

    def ask(query: BenchQuery) -> AnsweredQuery:
        began = time.perf_counter()
        answer = diagnose(store, query.text, repos=(repo,), limit=LIMIT, exclude=query.hidden)
        took_ms = (time.perf_counter() - began) * 1000
        numbers = tuple(match.number for match in answer.matches)
        chance = answer.matches[0].score if answer.matches else None
        return AnsweredQuery(query, numbers, took_ms, answer.verdict, chance)

    report(f"{OURS}: {len(queries)} queries over {len(texts)} issues")
    answers: dict[str, list[AnsweredQuery] | None] = {OURS: _ask_all(ask, queries)}
    for name, build in baselines().items():
        if build is None:
            answers[name] = None
            continue
        report(f"{name}: {len(known)} queries")
        rank = build(texts)

        def ask_library(query: BenchQuery, rank: Callable[..., list[int]] = rank) -> AnsweredQuery:
            began = time.perf_counter()
            numbers = tuple(rank(query.text, query.hidden, LIMIT))
            return AnsweredQuery(query, numbers, (time.perf_counter() - began) * 1000)

        answers[name] = _ask_all(ask_library, known)
        del rank, ask_library
        gc.collect()  # an index takes as much memory as all texts: one at a time
    return BenchRun(len(texts), found, answers)


def _ask_all(
    ask: Callable[[BenchQuery], AnsweredQuery], queries: Sequence[BenchQuery]
) -> list[AnsweredQuery]:
    """The answers; the first few queries are asked twice, so that caches are warm."""
    for query in queries[:WARM_UP]:
        ask(query)
    return [ask(query) for query in queries]


def log_queries(texts: Sequence[SearchText], found: StoredCases) -> Iterator[BenchQuery]:
    """The rewritten logs, in each split they fit."""
    created = {text.number: text.created_at for text in texts}
    for case, log in found.logs:
        own, right = created[case.number], frozenset(case.right)
        newer = frozenset(number for number, day in created.items() if day > own)
        not_older = frozenset(number for number, day in created.items() if day >= own)
        for way in case.rewrites:
            text = rewrite(log, way.seed, way.form)
            yield BenchQuery(text, "plain", way.form, right)
            yield BenchQuery(text, "temporal", way.form, right - newer, newer)
            yield BenchQuery(text, "unknown", way.form, NOTHING, right)
            yield BenchQuery(text, "unknown, temporal", way.form, NOTHING, right | newer)
            if right - not_older:
                yield BenchQuery(text, "older twins", way.form, right - not_older, not_older)


def other_queries(pinned: Pinned) -> Iterator[BenchQuery]:
    """Questions without a log, and texts behind which nothing stands."""
    for question in pinned.questions:
        split: Split = "question, held out" if question.held_out else "question"
        yield BenchQuery(question.text, split, None, frozenset(question.right))
    for item in pinned.foreign:
        yield BenchQuery(item.text, "foreign", None, NOTHING)
