"""Which stored issues are worth a closer look: those that share the rarest terms with a log.

In: the terms of a log. Out: the most promising issues with their BM25 score by channel, and the share of the
query that each holds. The cost is bounded by `POSTINGS_MAX`, not by the corpus.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlmodel import Session

from app.match.search.bm25 import Field, Query, affordable, find_overlap, heaviest_holders, weigh
from app.match.search.terms import CHANNELS, ERROR, FRAME, SIGNATURE, TEXT, Terms
from app.store.derived.search_index import Key, Profile, find_postings, find_profiles

FIELD = Field(k1=1.2, b=0.5)
"""Of every channel; short reports tell as much as long ones."""
POSTINGS_MAX = 2_000
"""Rows read to find candidates. On 186 labelled logs 1,500 finds as many right issues as 40,000 does."""
CANDIDATES = 40
"""How many are looked at closely; with 30 as many of those logs have their issue among the first ten."""
RAREST = {TEXT: 60, ERROR: 60, FRAME: 50, SIGNATURE: 8}
"""How many of a channel's rarest terms are asked for."""
SEED_WEIGHT = {TEXT: 0.5, ERROR: 1.5, FRAME: 1.0, SIGNATURE: 2.0}
SHARED_MAX = 12
"""A candidate's weightiest shared terms, kept to say why it is one."""
RARE_DF, SCARCE_DF = 3, 20
"""In how many issues a word stands at most to be called rare or scarce. They set one log apart from all
others of its kind, which a sum over all words hides."""
NO_SUCH_WORDS = 0.5
"""The share of words where the query has none of that kind."""

_WIDTH = max(CHANNELS) + 1
_COMMON, _RARE, _SCARCE = 0, 1, 2
_KINDS = 3
_SEED_WEIGHTS = np.array([SEED_WEIGHT.get(channel, 0.0) for channel in range(_WIDTH)])


@dataclass(frozen=True, slots=True)
class Candidate:
    """An issue and how much of the query it holds, channel by channel, in nats of information.

    Attributes:
        shared: channel, text and weight of the weightiest shared terms.
        rare, scarce: the share of the query's words that so few issues hold, known to any or not.
        crowd: how many issues, missing from a small base, would share its part of the error as well.
    """

    key: Key
    scores: Mapping[int, float]
    shares: Mapping[int, float]
    shared: Sequence[tuple[int, str, float]]
    rare: float = NO_SUCH_WORDS
    scarce: float = NO_SUCH_WORDS
    crowd: float = 0.0


def find_candidates(
    session: Session,
    terms: Terms,
    repo_ids: Sequence[int] | None = None,
    *,
    exclude: Collection[Key | int] = frozenset(),
) -> list[Candidate]:
    """The stored issues most like these terms, best first.

    Args:
        session: of the store.
        terms: of the log.
        repo_ids: search these repositories only.
        exclude: issues that take no one's place, or numbers, whatever their repository.
    """
    query = weigh(session, {term: (1.0, term[1]) for term in terms})
    known = query.known()
    if not len(known.ids):
        return []
    gains = known.weights * _SEED_WEIGHTS[known.channels]
    rows = find_postings(session, _affordable(known))
    keys = heaviest_holders(rows, known.ids, gains, limit=CANDIDATES, repo_ids=repo_ids, exclude=exclude)
    found = _score(find_profiles(session, keys), query, known)
    return sorted(found, key=lambda item: (-sum(item.scores.values()), item.key))


def _affordable(known: Query) -> list[int]:
    """The rarest terms of each channel, as many as the budget of postings allows."""
    frequencies = known.frequencies()
    chosen = [key for channel, limit in RAREST.items() for key in known.rarest(channel)[:limit]]
    return affordable(sorted(chosen, key=frequencies.__getitem__), frequencies, POSTINGS_MAX)


def _score(profiles: Mapping[Key, Profile], query: Query, known: Query) -> list[Candidate]:
    """What each profile shares with the query, of which `known` are the terms that any issue holds."""
    size = len(profiles)
    overlap = find_overlap(list(profiles.values()), known.ids)
    of, at = overlap.of, overlap.at
    lengths = np.array([profile.length for profile in profiles.values()])
    weights = known.weights[at]
    cell = of * _WIDTH + known.channels[at]
    factors = FIELD.saturation(overlap.counts, lengths[of])
    scores = np.bincount(cell, weights * factors, size * _WIDTH).reshape(-1, _WIDTH).tolist()
    covered = np.bincount(cell, weights, size * _WIDTH).reshape(-1, _WIDTH)
    # A term never seen still belongs to the query: what no issue holds, no issue can cover.
    shares = _share(covered, np.bincount(query.channels, query.weights, _WIDTH), 0.0).tolist()
    counted = np.bincount(of * _KINDS + _rarities(known)[at], minlength=size * _KINDS).reshape(-1, _KINDS)
    words = _share(counted, np.bincount(_rarities(query), minlength=_KINDS), NO_SUCH_WORDS).tolist()
    crowds = _crowds(at, of, known, size)
    starts = np.searchsorted(of, np.arange(size + 1))
    return [
        Candidate(
            key,
            {channel: scores[i][channel] for channel in CHANNELS},
            {channel: shares[i][channel] for channel in CHANNELS},
            tuple(known.heaviest(at[starts[i] : starts[i + 1]])[:SHARED_MAX]),
            words[i][_RARE],
            words[i][_SCARCE],
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
