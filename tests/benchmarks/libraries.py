"""How the log search does beside search libraries, and on logs that are rewritten.

    python -m tests.benchmarks.libraries --database sqlite:///triage.db [--write app/guide/benchmark.md]

The libraries get title and body of every issue; all but the plain one also get the log's moving parts masked.
None of them knows an "unknown". FTS5 runs in memory. Rewritten logs are those of stored issues as another
machine or a server of today prints them. They see all issues (*rewritten*), only those no newer than their own
(*temporal*), or neither their own nor its known twins, so that nothing is right (*hidden*).
"""

from __future__ import annotations

import argparse
import gc
import importlib
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from app.bench.cases import SearchText, StoredCases, find_logs, load_pinned, read_texts
from app.bench.run import (
    LIMIT,
    AnsweredQuery,
    BenchQuery,
    ask_all,
    band_shares,
    other_queries,
    paste_queries,
    recall_of,
)
from app.errors import InputError
from app.store.session import Store, open_store
from app.terminal import say
from tests.benchmarks.rewrite import rewrite, ways_of

OURS = "vLLM Triage"
SETS = (
    "real log",
    "real log, unseen",
    "paste",
    "question",
    "question, held out",
    "rewritten",
    "rewritten, cascade",
    "temporal",
)
HIDDEN = ("hidden", "hidden, temporal")
RAREST = 16
"""Terms FTS5 is asked for: with all of them it is slower and no better."""
_PLAIN_WORD = r"[A-Za-z_][\w.]{2,}"
_MASKED_WORD = r"[a-z_]\w{2,}"
_WORDS = re.compile(_MASKED_WORD)
_PACKAGES = re.compile(r"[\w./\\+@~-]*(?:site|dist)-packages[/\\]")
_POINTER = re.compile(r"0x[0-9a-f]+")
_NUMBER = re.compile(r"\d+(?:[.:-]\d+)*")

Rank = Callable[[str, frozenset[int], int], list[int]]
"""The best numbers for a query, without the hidden ones, at most so many."""
Builder = Callable[[Sequence[SearchText]], Rank]


def baselines() -> dict[str, Builder | None]:
    """The builder of each library by its name; None where the library is not installed."""
    has_tfidf = find_spec("sklearn") is not None
    return {
        "TF-IDF, words": _tfidf_words if has_tfidf else None,
        "TF-IDF, masked 1-2-grams": _tfidf_masked if has_tfidf else None,
        "bm25s, masked": _bm25 if find_spec("bm25s") else None,
        f"SQLite FTS5, {RAREST} rarest masked terms": _fts5,
    }


def _masked(text: str) -> str:
    """Lower case, without install paths, pointers and numbers."""
    return _NUMBER.sub("0", _POINTER.sub("hex", _PACKAGES.sub("", text.lower())))


def _words(text: str) -> list[str]:
    return _WORDS.findall(_masked(text))


def _best_of(texts: Sequence[SearchText], scores_of: Callable[[str], np.ndarray]) -> Rank:
    """The ranking by a score for each text, those above 0."""
    numbers = np.array([text.number for text in texts])

    def rank(query: str, hidden: frozenset[int], limit: int) -> list[int]:
        scores = scores_of(query)
        if hidden:
            scores = np.where(np.isin(numbers, list(hidden)), -1.0, scores)
        top = np.argsort(-scores, kind="stable")[:limit]
        return [int(numbers[at]) for at in top if scores[at] > 0]

    return rank


def _tfidf_words(texts: Sequence[SearchText]) -> Rank:
    return _tfidf(texts, _PLAIN_WORD)


def _tfidf_masked(texts: Sequence[SearchText]) -> Rank:
    return _tfidf(texts, _MASKED_WORD, preprocessor=_masked, ngram_range=(1, 2))


def _tfidf(texts: Sequence[SearchText], word: str, **settings: Any) -> Rank:
    library = importlib.import_module("sklearn.feature_extraction.text")
    vectoriser = library.TfidfVectorizer(sublinear_tf=True, dtype=np.float32, token_pattern=word, **settings)
    by_term = vectoriser.fit_transform(text.text for text in texts).T.tocsr()
    return _best_of(texts, lambda query: (vectoriser.transform([query]) @ by_term).toarray()[0])


def _bm25(texts: Sequence[SearchText]) -> Rank:
    ids: dict[str, int] = {}
    rows = [[ids.setdefault(word, len(ids)) for word in _words(text.text)] for text in texts]
    index = importlib.import_module("bm25s").BM25()
    index.index((rows, ids), show_progress=False)

    def scores_of(query: str) -> np.ndarray:
        known = [ids[word] for word in dict.fromkeys(_words(query)) if word in ids]
        return np.asarray(index.get_scores(known)) if known else np.zeros(len(texts))

    return _best_of(texts, scores_of)


def _fts5(texts: Sequence[SearchText]) -> Rank:
    """SQLite's full-text index over masked words, asked for a query's rarest."""
    base = sqlite3.connect(":memory:")
    base.execute("CREATE VIRTUAL TABLE page USING fts5(text, tokenize=\"unicode61 tokenchars '_'\")")
    holders: Counter[str] = Counter()
    for text in texts:
        holders.update(set(_words(text.text)))
        base.execute("INSERT INTO page(rowid, text) VALUES (?, ?)", (text.number, _masked(text.text)))

    def rank(query: str, hidden: frozenset[int], limit: int) -> list[int]:
        known = sorted({word for word in _words(query) if word in holders})
        rarest = sorted(known, key=lambda word: holders[word])[:RAREST]
        words = " OR ".join(f'"{word}"' for word in rarest)
        question = "SELECT rowid FROM page WHERE page MATCH ? ORDER BY bm25(page) LIMIT ?"
        found = base.execute(question, (words, limit + len(hidden))) if words else ()
        return [number for (number,) in found if number not in hidden][:limit]

    return rank


def rewritten_queries(texts: Sequence[SearchText], found: StoredCases) -> Iterator[BenchQuery]:
    """The logs of stored issues, rewritten, in each set they fit."""
    created = {text.number: text.created_at for text in texts}
    for case, log in found.logs:
        right = frozenset(case.right)
        newer = frozenset(number for number, day in created.items() if day > created[case.number])
        for form, seed in ways_of(case.number, log):
            text = rewrite(log, seed, form)
            yield BenchQuery(text, "rewritten, cascade" if form == "cascade" else "rewritten", right)
            yield BenchQuery(text, "temporal", right - newer, newer)
            yield BenchQuery(text, "hidden", hidden=right)
            yield BenchQuery(text, "hidden, temporal", hidden=right | newer)


def rewritten_logs(store: Store, repo: str) -> list[BenchQuery]:
    """The pinned logs that a base holds, rewritten, with what is right for each."""
    texts = read_texts(store, repo)
    queries = rewritten_queries(texts, find_logs(texts, load_pinned().cases))
    return [query for query in queries if query.split.startswith("rewritten")]


def ask_library(rank: Rank, queries: Sequence[BenchQuery]) -> list[AnsweredQuery]:
    """What a library answers; never what it cannot know: that nothing is right."""
    answers = []
    for query in queries:
        if query.right:
            began = time.perf_counter()
            numbers = tuple(rank(query.text, query.hidden, LIMIT))
            answers.append(AnsweredQuery(query, numbers, (time.perf_counter() - began) * 1000))
    return answers


def rows_of(system: str, answers: Sequence[AnsweredQuery]) -> Iterator[tuple[int, str]]:
    """A system's row of Markdown for each set, with the set's place."""
    for place, name in enumerate(SETS):
        found = recall_of(name, [one for one in answers if one.query.split == name])
        figures = " | ".join(f"{figure:.3f}" for figure in (found.r1, found.r5, found.r10, found.mrr))
        times = f"{found.p50_ms:.0f} | {found.p95_ms:.0f}"
        yield place, f"| {name} ({found.queries}) | {system} | {figures} | {times} |"


def table(rows: Sequence[tuple[int, str]], ours: Sequence[AnsweredQuery]) -> str:
    """All rows by set, then how often each verdict was given to rewritten logs, and right."""
    lines = [
        "| set | system | R@1 | R@5 | R@10 | MRR | p50 ms | p95 ms |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [row for _, row in sorted(rows, key=lambda pair: pair[0])]
    lines += ["", "| set | verdict | given | first match right |", "|---|---|---|---|"]
    for name in (*SETS[-3:], *HIDDEN):
        for item in band_shares(name, [one for one in ours if one.query.split == name]):
            share = item.given / item.queries if item.queries else 0.0
            right = f"{item.right / item.given:.1%}" if item.given and name not in HIDDEN else "–"
            lines.append(f"| {name} ({item.queries}) | {item.band} | {share:.0%} | {right} |")
    return "\n".join(lines) + "\n"


def write_between_marks(path: Path, text: str, name: str) -> None:
    """Replace what stands between the marks of this name in a file.

    Raises:
        InputError: the file or one of its marks is not there.
    """
    try:
        old = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    head, has_begin, rest = old.partition(begin)
    _, has_end, tail = rest.partition(end)
    if not has_begin or not has_end:
        raise InputError(f"{path} lacks the marks {begin} and {end}: put them where the table belongs")
    path.write_text(f"{head}{begin}\n{text}{end}{tail}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--database", required=True)
    parser.add_argument("--repo", default="vllm-project/vllm")
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="put the table between the marks of this file"
    )
    asked = parser.parse_args()
    store, pinned = open_store(asked.database), load_pinned()
    texts = read_texts(store, asked.repo)
    found = find_logs(texts, pinned.cases)
    queries = [*paste_queries(found), *other_queries(pinned), *rewritten_queries(texts, found)]
    say(f"{OURS}: {len(queries)} queries over {len(texts)} issues")
    ours = ask_all(store, asked.repo, queries)
    rows = list(rows_of(OURS, ours))
    for name, build in baselines().items():
        say(f"{name}{'' if build else ' is not installed'}")
        rows += rows_of(name, ask_library(build(texts), queries)) if build else ()
        gc.collect()  # an index takes as much memory as all texts: one at a time
    text = table(rows, ours)
    if asked.write:
        write_between_marks(asked.write, text, "libraries")
    print(text)


if __name__ == "__main__":
    main()
