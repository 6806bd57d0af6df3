"""Search libraries over the same texts, as a person would use them instead.

Each gets title and body of every issue; all but the plain one also get the log's moving parts masked. None of
them knows an "unknown". FTS5 runs in memory.
"""

from __future__ import annotations

import importlib
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from app.bench.cases import SearchText

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
