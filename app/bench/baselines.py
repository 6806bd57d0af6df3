"""What a person would reach for instead: search libraries over the same texts, well set up.

Each gets title and text of every issue; all but the plain one also the log's moving parts masked, which
helps them. None of them knows an "unknown". FTS5 is asked in a base in memory that lives as long as the run;
the archive is not touched.
"""

from __future__ import annotations

import importlib
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from app.bench.cases import Document

PLAIN_WORD = r"[A-Za-z_][\w.]{2,}"
MASKED_WORD = r"[a-z_]\w{2,}"
RAREST = 16
"""Terms FTS5 is asked for: with all of them it is slower and no better."""
_PACKAGES = re.compile(r"[\w./\\+@~-]*(?:site|dist)-packages[/\\]")
_POINTER = re.compile(r"0x[0-9a-f]+")
_NUMBER = re.compile(r"\d+(?:[.:-]\d+)*")
_WORDS = re.compile(MASKED_WORD)


class Rival(Protocol):
    """A search library with all texts in it."""

    def rank(self, query: str, hidden: frozenset[int], limit: int) -> list[int]:
        """The best numbers for a query, none of the hidden."""
        ...


Builder = Callable[[Sequence[Document]], Rival]


def rivals() -> Iterator[tuple[str, Builder | None]]:
    """Name and builder of each; None where the library is not installed."""
    yield "TF-IDF, words", PlainTfidf
    yield "TF-IDF, masked 1-2-grams", MaskedTfidf
    yield "bm25s, masked", Bm25 if find_spec("bm25s") else None
    yield f"SQLite FTS5, {RAREST} rarest masked terms", Fts5


def masked(text: str) -> str:
    """Lower case, without install paths, pointers and numbers."""
    return _NUMBER.sub("0", _POINTER.sub("hex", _PACKAGES.sub("", text.lower())))


def _words(text: str) -> list[str]:
    return _WORDS.findall(masked(text))


class _Scores:
    """Documents by number, and the best of a row of scores."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._numbers = np.array([document.number for document in documents])

    def best(self, scores: np.ndarray, hidden: frozenset[int], limit: int) -> list[int]:
        if hidden:
            scores = np.where(np.isin(self._numbers, list(hidden)), -1.0, scores)
        top = np.argsort(-scores, kind="stable")[:limit]
        return [int(self._numbers[at]) for at in top if scores[at] > 0]


class _Tfidf:
    def __init__(self, documents: Sequence[Document], **settings: Any) -> None:
        self._scores = _Scores(documents)
        self._vectoriser = TfidfVectorizer(sublinear_tf=True, dtype=np.float32, **settings)
        table = self._vectoriser.fit_transform(document.text for document in documents)
        self._by_term = table.T.tocsr()

    def rank(self, query: str, hidden: frozenset[int], limit: int) -> list[int]:
        scores = (self._vectoriser.transform([query]) @ self._by_term).toarray()[0]
        return self._scores.best(scores, hidden, limit)


class PlainTfidf(_Tfidf):
    """Words as they stand."""

    def __init__(self, documents: Sequence[Document]) -> None:
        super().__init__(documents, token_pattern=PLAIN_WORD)


class MaskedTfidf(_Tfidf):
    """Masked words, alone and in pairs."""

    def __init__(self, documents: Sequence[Document]) -> None:
        super().__init__(documents, preprocessor=masked, token_pattern=MASKED_WORD, ngram_range=(1, 2))


class Bm25:
    """bm25s over masked words."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._scores = _Scores(documents)
        self._ids: dict[str, int] = {}
        rows = [[self._ids.setdefault(word, len(self._ids)) for word in _words(d.text)] for d in documents]
        self._index = importlib.import_module("bm25s").BM25()
        self._index.index((rows, self._ids), show_progress=False)

    def rank(self, query: str, hidden: frozenset[int], limit: int) -> list[int]:
        asked = [self._ids[word] for word in dict.fromkeys(_words(query)) if word in self._ids]
        return self._scores.best(self._index.get_scores(asked), hidden, limit) if asked else []


class Fts5:
    """SQLite's full-text index over masked words, asked for a query's rarest."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._base = sqlite3.connect(":memory:")
        words = "tokenize=\"unicode61 tokenchars '_'\""
        self._base.execute(f"CREATE VIRTUAL TABLE page USING fts5(text, {words})")
        self._holders: Counter[str] = Counter()
        for document in documents:
            self._holders.update(set(_words(document.text)))
            row = (document.number, masked(document.text))
            self._base.execute("INSERT INTO page(rowid, text) VALUES (?, ?)", row)

    def rank(self, query: str, hidden: frozenset[int], limit: int) -> list[int]:
        known = sorted({word for word in _words(query) if word in self._holders})
        rarest = sorted(known, key=lambda word: self._holders[word])[:RAREST]
        if not rarest:
            return []
        said = " OR ".join(f'"{word}"' for word in rarest)
        found = self._base.execute(
            "SELECT rowid FROM page WHERE page MATCH ? ORDER BY bm25(page) LIMIT ?",
            (said, limit + len(hidden)),
        )
        return [number for (number,) in found if number not in hidden][:limit]
