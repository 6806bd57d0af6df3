"""Asks every system every query in every split.

A query is a pinned log, rewritten, in a view of the base: *plain* sees all issues; *temporal* only those
that were there when the log's own issue was written; *unknown* sees neither the log's issue nor its known
twins, so that nothing is right; *older twins* asks what of the past a newcomer would have been shown.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from app.bench.baselines import Rival, rivals
from app.bench.cases import Case, Document, Foreign, Found, Pinned, Question, find_logs, read_documents
from app.bench.rewrite import Form, rewrite
from app.knowledge.diagnosis.diagnose import diagnose
from app.knowledge.diagnosis.shapes import Band
from app.store.session import Store

OURS = "vLLM Triage"
LIMIT = 10
WARM_UP = 3

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
class Query:
    """A text to ask, what it may see, and what is right."""

    text: str
    split: Split
    form: Form | None
    right: frozenset[int]
    hidden: frozenset[int]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a system said: numbers, best first; how sure it is, where it tells that."""

    numbers: tuple[int, ...]
    verdict: Band | None = None
    chance: float | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A query and its answer."""

    query: Query
    answer: Answer
    took_ms: float

    @property
    def rank(self) -> int:
        """Where the first right answer stands, from 1; 0 if nowhere."""
        places = (at for at, number in enumerate(self.answer.numbers, 1) if number in self.query.right)
        return next(places, 0)


Ask = Callable[[Query], Answer]


@dataclass(frozen=True, slots=True)
class Run:
    """All that was asked: by system, None where a library is not installed."""

    issues: int
    found: Found
    asked: dict[str, list[Asked] | None]


def run(store: Store, repo: str, pinned: Pinned, tell: Callable[[str], None]) -> Run:
    """Ask everything of everyone.

    Args:
        tell: takes lines on how far it is.

    Raises:
        InputError: nothing of `repo` is stored.
        StoreError: the archive cannot be read.
    """
    documents = read_documents(store, repo)
    found = find_logs(documents, pinned.cases)
    queries = [*log_queries(documents, found), *other_queries(pinned.questions, pinned.foreign)]
    asked: dict[str, list[Asked] | None] = {}
    tell(f"{OURS}: {len(queries)} queries over {len(documents)} issues")
    asked[OURS] = ask_all(partial(_ask_ours, store, repo), queries)
    known = [query for query in queries if query.split in KNOWN]
    for name, build in rivals():
        if build is None:
            asked[name] = None
            continue
        tell(f"{name}: {len(known)} queries")
        rival = build(documents)
        asked[name] = ask_all(partial(_ask_rival, rival), known)
        del rival
        gc.collect()  # an index takes as much memory as all texts: one at a time
    return Run(len(documents), found, asked)


def log_queries(documents: Sequence[Document], found: Found) -> Iterator[Query]:
    """The rewritten logs, in each split they fit."""
    created = {document.number: document.created_at for document in documents}
    for log in found.logs:
        case, own = log.case, created[log.case.number]
        newer = frozenset(number for number, day in created.items() if day > own)
        not_older = frozenset(number for number, day in created.items() if day >= own)
        for way in case.rewrites:
            text = rewrite(log.log, way.seed, way.form)
            yield from _views(case, text, way.form, newer, not_older)


def _views(
    case: Case, text: str, form: Form, newer: frozenset[int], not_older: frozenset[int]
) -> Iterator[Query]:
    right = frozenset(case.right)
    yield Query(text, "plain", form, right, frozenset())
    yield Query(text, "temporal", form, right - newer, newer)
    yield Query(text, "unknown", form, frozenset(), right)
    yield Query(text, "unknown, temporal", form, frozenset(), right | newer)
    if right - not_older:
        yield Query(text, "older twins", form, right - not_older, not_older)


def other_queries(questions: Sequence[Question], foreign: Sequence[Foreign]) -> Iterator[Query]:
    """Questions without a log, and texts behind which nothing stands."""
    nothing: frozenset[int] = frozenset()
    for question in questions:
        split: Split = "question, held out" if question.held_out else "question"
        yield Query(question.text, split, None, frozenset(question.right), nothing)
    for item in foreign:
        yield Query(item.text, "foreign", None, nothing, nothing)


def ask_all(ask: Ask, queries: Sequence[Query]) -> list[Asked]:
    """Each query and its answer, timed; the first few are asked twice, so that caches are warm."""
    for query in queries[:WARM_UP]:
        ask(query)
    asked = []
    for query in queries:
        began = time.perf_counter()
        answer = ask(query)
        asked.append(Asked(query, answer, (time.perf_counter() - began) * 1000))
    return asked


def _ask_rival(rival: Rival, query: Query) -> Answer:
    return Answer(tuple(rival.rank(query.text, query.hidden, LIMIT)))


def _ask_ours(store: Store, repo: str, query: Query) -> Answer:
    told = diagnose(store, query.text, repos=(repo,), limit=LIMIT, exclude=query.hidden)
    first = told.matches[0].score if told.matches else None
    return Answer(tuple(match.number for match in told.matches), told.verdict, first)
