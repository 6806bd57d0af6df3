"""Candidate retrieval for a log: the stored issues that share its rarest terms.

In: the query built from a log. Out: the top candidates with BM25 score and coverage for each part of the
query. The cost is bounded by `POSTINGS_MAX`, not by the size of the corpus.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy.orm import Session

from app.match.search.bm25 import Field, Query, affordable, find_overlap, heaviest_holders, weigh
from app.match.search.log_query import PARTS, LogQuery, Part
from app.match.search.terms import TEXT
from app.store.derived.search_index import Key, Profile, find_postings, find_profiles

FIELD = Field(k1=1.2, b=0.5)
"""BM25 parameters of every part; `b` keeps short and long reports comparable."""
POSTINGS_MAX = 3_000
"""Posting rows read to find candidates."""
CANDIDATES = 50
"""Number of issues scored in full."""
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
"""Factor on the idf of each part's terms when candidates are retrieved."""
SHARED_MAX = 12
"""Heaviest shared terms kept for each candidate, to explain the match."""
RARE_DF, SCARCE_DF = 3, 20
"""Maximum document frequency of a rare or scarce word. Coverage of these words distinguishes failures of one
kind, which a sum over all words hides."""
NO_SUCH_WORDS = 0.5
"""Neutral coverage, used when the query has no rare (or scarce) words."""

_COMMON, _RARE, _SCARCE = 0, 1, 2
_KINDS = 3
_WIDTH = len(PARTS)
_OF_THE_TEXT = [at for at, part in enumerate(PARTS) if part != "title"]
_SEEDS = np.array([SEED_WEIGHTS[part] for part in PARTS])


@dataclass(frozen=True, slots=True)
class Candidate:
    """An issue with its score and coverage for each part of the query, weighted by idf in nats.

    Attributes:
        shares: coverage by part, from 0 to 1, counting terms that no stored issue holds; `scores`: BM25.
        known_shares: the same, without terms that no stored issue holds.
        share: coverage of all parts but the title, whose stems repeat the message.
        shared: channel, text and weight of the heaviest shared terms.
        rare, scarce: coverage of the query's rare and scarce words.
        names: coverage of the names in the message; 1 if it has none.
        crowd: estimated number of issues, missing from a small database, that share its error terms.
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
    """Return the stored issues most similar to a log, in no particular order.

    Args:
        session: database session.
        asked: the query built from the log.
        repo_ids: restrict to these repositories.
        exclude: issues to leave out before the limit applies, as keys, or as numbers for any repository.
    """
    query = weigh(session, {term: (1.0, term[1]) for term in asked.parts})
    known = query.known()
    if not len(known.ids):
        return []
    all_parts = _parts_of(asked, query)
    whole, parts = np.bincount(all_parts, query.weights, _WIDTH), all_parts[query.held > 0]
    gains = known.weights * _SEEDS[parts]
    heaviest: list[int] = known.ids[np.argsort(-gains, kind="stable")].tolist()
    rows = find_postings(session, affordable(heaviest, known.frequencies(), POSTINGS_MAX))
    keys = heaviest_holders(rows, known.ids, gains, limit=CANDIDATES, repo_ids=repo_ids, exclude=exclude)
    return _score(find_profiles(session, keys), known, parts, whole, asked.names)


def _parts_of(asked: LogQuery, query: Query) -> np.ndarray:
    """Return the part of each term, as an index into `PARTS`."""
    place = {part: at for at, part in enumerate(PARTS)}
    terms = zip(query.channels.tolist(), query.texts, strict=True)
    return np.array([place[asked.parts[term]] for term in terms], dtype=np.int64)


def _score(
    profiles: Mapping[Key, Profile],
    known: Query,
    parts: np.ndarray,
    whole: np.ndarray,
    names: Collection[str],
) -> list[Candidate]:
    """Score each profile against `known`, the query's terms that occur in some stored issue."""
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
    """Classify each word as rare, scarce or common; terms of other channels count as common."""
    kinds = np.where(query.dfs <= RARE_DF, _RARE, np.where(query.dfs <= SCARCE_DF, _SCARCE, _COMMON))
    rarities: np.ndarray = np.where(query.channels == TEXT, kinds, _COMMON)
    return rarities


def _crowds(at: np.ndarray, of: np.ndarray, known: Query, size: int) -> list[float]:
    """Estimate how many missing issues share each profile's error: the smoothing of its rarest error term."""
    of_error = known.channels[at] != TEXT
    least = np.full(size, np.inf)
    np.minimum.at(least, of[of_error], (known.dfs - known.held)[at[of_error]])
    crowds: list[float] = np.where(np.isinf(least), 0.0, least).tolist()
    return crowds


def _share(parts: np.ndarray, whole: np.ndarray, otherwise: float) -> np.ndarray:
    """Divide each column by its total; `otherwise` where the total is zero."""
    shares: np.ndarray = np.full(parts.shape, otherwise)
    np.divide(parts, whole, out=shares, where=whole > 0)
    return shares
