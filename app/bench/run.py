"""Asks every system every query in every split.

*real log* is all that a server printed; *paste* is a log as it stands in an issue, which is hidden: the other
reports of its failure are right. Rewritten logs see all issues (*plain*), only those no newer than their own
(*temporal*), or neither their own nor its known twins, so that nothing is right (*unknown*). The answer to a
real log is compared with its label by their words.
"""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from app.bench.baselines import Rank, baselines
from app.bench.cases import Pinned, RealLog, SearchText, StoredCases, find_logs, read_texts
from app.bench.rewrite import Form, rewrite
from app.knowledge.diagnosis.diagnose import diagnose
from app.knowledge.diagnosis.shapes import Band, Diagnosis
from app.store.session import Store

OURS = "vLLM Triage"
LIMIT = 10
WARM_UP = 3
NOTHING: frozenset[int] = frozenset()

Split = Literal[
    "real log",
    "real log, unseen",
    "paste",
    "question",
    "question, held out",
    "plain",
    "temporal",
    "unknown",
    "unknown, temporal",
    "foreign",
]


@dataclass(frozen=True, slots=True)
class BenchQuery:
    """A text to ask, what it may not see, and what is right."""

    text: str
    split: Split
    form: Form | None
    right: frozenset[int]
    hidden: frozenset[int] = NOTHING
    real_log: RealLog | None = None


@dataclass(frozen=True, slots=True)
class AnsweredQuery:
    """A query, the numbers a system gave, best first, and how sure it is, where it says so."""

    query: BenchQuery
    numbers: tuple[int, ...]
    took_ms: float
    verdict: Band | None = None
    chance: float | None = None
    result: RealLogResult | None = None

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
    known = [query for query in queries if query.right]  # the libraries know no "unknown"

    def ask(query: BenchQuery) -> AnsweredQuery:
        began = time.perf_counter()
        answer = diagnose(store, query.text, repos=(repo,), limit=LIMIT, exclude=query.hidden)
        took_ms = (time.perf_counter() - began) * 1000
        numbers = tuple(match.number for match in answer.matches)
        chance = answer.matches[0].score if answer.matches else None
        result = check_answer(query.real_log, answer) if query.real_log else None
        return AnsweredQuery(query, numbers, took_ms, answer.verdict, chance, result)

    report(f"{OURS}: {len(queries)} queries over {len(texts)} issues")
    answers: dict[str, list[AnsweredQuery] | None] = {OURS: _ask_all(ask, queries)}
    for name, build in baselines().items():
        report(f"{name}: {len(known) if build else 0} queries")
        answers[name] = _ask_all(partial(_ask_library, build(texts)), known) if build else None
        gc.collect()  # an index takes as much memory as all texts: one at a time
    return BenchRun(len(texts), found, answers)


def _ask_library(rank: Rank, query: BenchQuery) -> AnsweredQuery:
    began = time.perf_counter()
    numbers = tuple(rank(query.text, query.hidden, LIMIT))
    return AnsweredQuery(query, numbers, (time.perf_counter() - began) * 1000)


def _ask_all(
    ask: Callable[[BenchQuery], AnsweredQuery], queries: Sequence[BenchQuery]
) -> list[AnsweredQuery]:
    """The answers; the first few queries are asked twice, so that caches are warm."""
    for query in queries[:WARM_UP]:
        ask(query)
    return [ask(query) for query in queries]


def log_queries(texts: Sequence[SearchText], found: StoredCases) -> Iterator[BenchQuery]:
    """The logs of stored issues: as pasted, and rewritten in each split they fit."""
    created = {text.number: text.created_at for text in texts}
    for case, log in found.logs:
        own, right = created[case.number], frozenset(case.right)
        newer = frozenset(number for number, day in created.items() if day > own)
        if twins := right - {case.number}:
            yield BenchQuery(log, "paste", None, twins, frozenset({case.number}))
        for way in case.rewrites:
            text = rewrite(log, way.seed, way.form)
            yield BenchQuery(text, "plain", way.form, right)
            yield BenchQuery(text, "temporal", way.form, right - newer, newer)
            yield BenchQuery(text, "unknown", way.form, NOTHING, right)
            yield BenchQuery(text, "unknown, temporal", way.form, NOTHING, right | newer)


def other_queries(pinned: Pinned) -> Iterator[BenchQuery]:
    """Whole logs of real servers, questions without a log, and texts behind which nothing stands."""
    for item in pinned.real_logs:
        half: Split = "real log, unseen" if item.unseen else "real log"
        yield BenchQuery(item.log, half, None, frozenset(item.expected), real_log=item)
    for question in pinned.questions:
        split: Split = "question, held out" if question.held_out else "question"
        yield BenchQuery(question.text, split, None, frozenset(question.right))
    for other in pinned.foreign:
        yield BenchQuery(other.text, "foreign", None, NOTHING)


HEADLINE_CHARS_MAX = 240
_WORD = re.compile(r"[a-z0-9_.\-/]{2,}")
_QUOTES = re.compile(r"[`'\"█]")


@dataclass(frozen=True, slots=True)
class RealLogResult:
    """What of an answer is right, beside its matches; `unrelated_remedy`: one is shown under `unknown`."""

    root_cause: bool
    headline: bool
    unrelated_remedy: bool


def check_answer(log: RealLog, answer: Diagnosis) -> RealLogResult:
    """The answer beside the log's labels."""
    root = answer.root_cause
    remedies = answer.workarounds or any(match.workarounds for match in answer.matches)
    return RealLogResult(
        root_cause=root is not None and is_root_cause(log, root.message or root.type or ""),
        headline=_names_cause(answer.headline, log),
        unrelated_remedy=answer.verdict == "unknown" and bool(remedies),
    )


def is_root_cause(log: RealLog, message: str) -> bool:
    """Whether a message and one of the log's causes hold each other or share most of their words."""
    return any(_is_same_message(cause, message) for cause in (log.error, *log.also_ok))


def _is_same_message(label: str, found: str) -> bool:
    a, b = (" ".join(_QUOTES.sub("", text.lower()).split()) for text in (label, found))
    words_a, words_b = _WORD.findall(a), _WORD.findall(b)
    if not a or not b or len(words_b) > max(3 * len(words_a), len(words_a) + 12):
        return a == b  # a page that holds the cause does not name it
    if a in b or (b in a and len(words_b) >= 4):
        return True
    return len({*words_a} & {*words_b}) >= max(3, 0.75 * min(len({*words_a}), len({*words_b})))


def _names_cause(line: str, log: RealLog) -> bool:
    """Whether a short line holds most of the first ten longer words of a cause."""
    held = set(_WORD.findall(line.lower()))
    causes = [_WORD.findall(cause.lower()) for cause in (log.error, *log.also_ok)]
    wanted = [[word for word in cause if len(word) > 3][:10] for cause in causes]
    shares = [sum(word in held for word in words) / len(words) for words in wanted if words]
    return "\n" not in line and len(line) <= HEADLINE_CHARS_MAX and max(shares, default=1) >= 0.6
