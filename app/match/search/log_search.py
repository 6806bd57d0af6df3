"""Which stored issues are worth a closer look: those that share the rarest terms with a log.

In: the query that a log is. Out: the most promising issues with what each shares of every part of it, as BM25
score and as share. The cost is bounded by `POSTINGS_MAX`, not by the corpus.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy.orm import Session

from app.match.search.bm25 import Field, Query, find_overlap, heaviest_holders, weigh
from app.match.search.log_query import PARTS, LogQuery, Part
from app.match.search.terms import TEXT
from app.store.derived.search_index import Key, Profile, find_postings, find_profiles

FIELD = Field(k1=1.2, b=0.5)
"""Of every part; short reports weigh as much as long ones."""
POSTINGS_MAX = 3_000
"""Rows read to find candidates."""
CANDIDATES = 50
"""How many are looked at closely."""
SEED_WEIGHTS: Mapping[Part, float] = {
    "cause": 1.0,
    "error": 1.0,
    "title": 0.7,
    "signature": 2.0,
    "chain": 0.5,
    "frames": 0.8,
    "near": 0.4,
    "context": 0.3,
}
"""What a nat of each part counts for when candidates are chosen."""
SHARED_MAX = 12
"""A candidate's weightiest shared terms, kept to say why it is one."""
RARE_DF, SCARCE_DF = 3, 20
"""In how many issues a word stands at most to be called rare or scarce. They set one log apart from all
others of its kind, which a sum over all words hides."""
NO_SUCH_WORDS = 0.5
"""The share of words where the query has none of that kind."""

_COMMON, _RARE, _SCARCE = 0, 1, 2
_KINDS = 3
_WIDTH = len(PARTS)
_OF_THE_TEXT = [at for at, part in enumerate(PARTS) if part != "title"]
_SEEDS = np.array([SEED_WEIGHTS[part] for part in PARTS])


@dataclass(frozen=True, slots=True)
class Candidate:
    """An issue and how much of the query it holds, part by part, in nats of information.

    Attributes:
        shares: of each part's information the share that this issue holds; what no issue holds counts, too.
        known_shares: the same of what any stored issue holds.
        share: the same of all parts together, but for the title, which says it otherwise.
        shared: channel, text and weight of the weightiest shared terms.
        rare, scarce: the share of the query's words that so few issues hold.
        names: the share of the message's names that this issue holds; all where it has none.
        crowd: how many issues, missing from a small base, would share its part of the error as well.
    """

    key: Key
    scores: Mapping[str, float]
    shares: Mapping[str, float]
    known_shares: Mapping[str, float]
    share: float
    shared: Sequence[tuple[int, str, float]]
    rare: float = NO_SUCH_WORDS
    scarce: float = NO_SUCH_WORDS
    names: float = 1.0
    crowd: float = 0.0


def find_candidates(
    session: Session,
    asked: LogQuery,
    repo_ids: Sequence[int] | None = None,
    *,
    exclude: Collection[Key | int] = frozenset(),
) -> list[Candidate]:
    """The stored issues most like a log, in no particular order.

    Args:
        session: of the store.
        asked: the log's terms.
        repo_ids: search these repositories only.
        exclude: issues that take no one's place, or numbers, whatever their repository.
    """
    query = weigh(session, {term: (1.0, term[1]) for term in asked.parts})
    known = query.known()
    if not len(known.ids):
        return []
    all_parts = _parts_of(asked, query)
    whole, parts = np.bincount(all_parts, query.weights, _WIDTH), all_parts[query.held > 0]
    gains = known.weights * _SEEDS[parts]
    rows = find_postings(session, _affordable(known, gains))
    keys = heaviest_holders(rows, known.ids, gains, limit=CANDIDATES, repo_ids=repo_ids, exclude=exclude)
    return _score(find_profiles(session, keys), known, parts, whole, asked.names)


def _parts_of(asked: LogQuery, query: Query) -> np.ndarray:
    """The part of each term, as its place in PARTS."""
    place = {part: at for at, part in enumerate(PARTS)}
    terms = zip(query.channels.tolist(), query.texts, strict=True)
    return np.array([place[asked.parts[term]] for term in terms], dtype=np.int64)


def _affordable(known: Query, gains: np.ndarray) -> list[int]:
    """The heaviest terms, as many as the budget of postings allows; one at least."""
    order = np.argsort(-gains, kind="stable")
    within = np.cumsum(known.held[order]) <= POSTINGS_MAX
    within[0] = True
    chosen: list[int] = known.ids[order[within]].tolist()
    return chosen


def _score(
    profiles: Mapping[Key, Profile],
    known: Query,
    parts: np.ndarray,
    whole: np.ndarray,
    names: Collection[str],
) -> list[Candidate]:
    """What each profile shares with the query, of which `known` are the terms that any issue holds."""
    size = len(profiles)
    overlap = find_overlap(list(profiles.values()), known.ids)
    of, at = overlap.of, overlap.at
    lengths = np.array([profile.length for profile in profiles.values()])
    weights = known.weights[at]
    cell = of * _WIDTH + parts[at]
    factors = FIELD.saturation(np.maximum(overlap.counts, 1), lengths[of])
    scores = np.bincount(cell, weights * factors, size * _WIDTH).reshape(-1, _WIDTH)
    covered = np.bincount(cell, weights, size * _WIDTH).reshape(-1, _WIDTH)
    shares = _share(covered, whole, 0.0)
    known_shares = _share(covered, np.bincount(parts, known.weights, _WIDTH), 0.0)
    all_shares = (covered[:, _OF_THE_TEXT].sum(axis=1) / max(whole[_OF_THE_TEXT].sum(), 1e-9)).tolist()
    rarities = _rarities(known)
    counted = np.bincount(of * _KINDS + rarities[at], minlength=size * _KINDS).reshape(-1, _KINDS)
    words = _share(counted, np.bincount(rarities, minlength=_KINDS), NO_SUCH_WORDS)
    crowds = _crowds(at, of, known, size)
    is_name = np.array([text in names for text in known.texts]) & (known.channels == TEXT)
    named = np.bincount(of, is_name[at], size) / max(len(names), 1) if names else np.ones(size)
    heaviest = at[np.lexsort((-weights, of))].tolist()
    starts = np.searchsorted(of, np.arange(size + 1)).tolist()
    terms = list(zip(known.channels.tolist(), known.texts, known.weights.tolist(), strict=True))
    return [
        Candidate(
            key,
            dict(zip(PARTS, scores[i].tolist(), strict=True)),
            dict(zip(PARTS, shares[i].tolist(), strict=True)),
            dict(zip(PARTS, known_shares[i].tolist(), strict=True)),
            all_shares[i],
            [terms[place] for place in heaviest[starts[i] : min(starts[i + 1], starts[i] + SHARED_MAX)]],
            float(words[i, _RARE]),
            float(words[i, _SCARCE]),
            float(named[i]),
            crowds[i],
        )
        for i, key in enumerate(profiles)
    ]


def _rarities(query: Query) -> np.ndarray:
    """How rare each word is; terms of other channels count as common."""
    kinds = np.where(query.dfs <= RARE_DF, _RARE, np.where(query.dfs <= SCARCE_DF, _SCARCE, _COMMON))
    rarities: np.ndarray = np.where(query.channels == TEXT, kinds, _COMMON)
    return rarities


def _crowds(at: np.ndarray, of: np.ndarray, known: Query, size: int) -> list[float]:
    """For each profile how many missing issues may share its part of the error: those of its rarest term."""
    of_error = known.channels[at] != TEXT
    least = np.full(size, np.inf)
    np.minimum.at(least, of[of_error], (known.dfs - known.held)[at[of_error]])
    crowds: list[float] = np.where(np.isinf(least), 0.0, least).tolist()
    return crowds


def _share(parts: np.ndarray, whole: np.ndarray, otherwise: float) -> np.ndarray:
    """Each column's share of its whole; `otherwise` where there is none."""
    shares: np.ndarray = np.full(parts.shape, otherwise)
    np.divide(parts, whole, out=shares, where=whole > 0)
    return shares
