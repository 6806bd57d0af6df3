"""Asks every query of the benchmark.

*real log* is all that a server printed; *paste* is a log as it stands in an issue, which is hidden: the other
reports of its failure are right. The answer to a real log is compared with its label by their words.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from app.bench.cases import Pinned, RealLog, StoredCases, find_logs, read_texts
from app.knowledge.diagnosis.diagnose import diagnose
from app.knowledge.diagnosis.shapes import Band, Diagnosis
from app.store.session import Store

LIMIT = 10
WARM_UP = 3
NOTHING: frozenset[int] = frozenset()

Split = Literal["real log", "real log, unseen", "paste", "question", "question, held out", "foreign"]


@dataclass(frozen=True, slots=True)
class BenchQuery:
    """A text to ask, the set it belongs to, what is right, and what it may not see."""

    text: str
    split: str
    right: frozenset[int] = NOTHING
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
    """All that was asked."""

    issues: int
    found: StoredCases
    answers: Sequence[AnsweredQuery]


def run(store: Store, repo: str, pinned: Pinned, report: Callable[[str], None]) -> BenchRun:
    """Ask everything.

    Raises:
        InputError: nothing of `repo` is stored.
    """
    texts = read_texts(store, repo)
    found = find_logs(texts, pinned.cases)
    queries = [*paste_queries(found), *other_queries(pinned)]
    report(f"{len(queries)} queries over {len(texts)} issues")
    return BenchRun(len(texts), found, ask_all(store, repo, queries))


def ask_all(store: Store, repo: str, queries: Sequence[BenchQuery]) -> list[AnsweredQuery]:
    """The answers; the first few queries are asked twice, so that caches are warm."""

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
    """The logs of stored issues whose failure others report, too."""
    for case, log in found.logs:
        own = frozenset({case.number})
        if twins := frozenset(case.right) - own:
            yield BenchQuery(log, "paste", twins, own)


def other_queries(pinned: Pinned) -> Iterator[BenchQuery]:
    """Whole logs of real servers, questions without a log, and texts behind which nothing stands."""
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
