"""Which stored issues are worth a closer look: those that share the rarest terms.

In: the terms of a log. Out: the most promising issues with their BM25 score a channel, and the query's
own score, so that a share can be told. Cost is bounded by `POSTINGS_MAX`, not by the corpus.
BM25 after Robertson and Zaragoza 2009, k1 = 1.2, b = 0.5 (short reports tell as much as long ones).
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlmodel import Session

from app.match.terms import CHANNELS, ERROR, FRAME, SIGNATURE, TEXT, Terms
from app.store.terms import (
    Key,
    Profile,
    count_indexed,
    find_frequencies,
    find_postings,
    find_profiles,
    term_id,
)

K1 = 1.2
B = 0.5
MEAN_TERMS = 250
"""Terms of a usual issue; a fixed yardstick, so that a score does not drift as the corpus grows."""
POSTINGS_MAX = 3_000
"""Rows read to find candidates. On 186 labelled logs 2,500 finds as many right issues as 40,000 does."""
CANDIDATES = 60
RAREST = {TEXT: 60, ERROR: 60, FRAME: 50, SIGNATURE: 8}
"""How many of a channel's rarest terms are asked for."""
SEED_WEIGHT = {TEXT: 0.5, ERROR: 1.5, FRAME: 1.0, SIGNATURE: 2.0}


@dataclass(frozen=True, slots=True)
class Candidate:
    """An issue and how much of the query it holds, channel by channel, in nats of information."""

    key: Key
    scores: Mapping[int, float]
    shares: Mapping[int, float]
    shared: tuple[tuple[int, str, float], ...]


@dataclass(frozen=True, slots=True)
class _Query:
    """A log's known terms: ids sorted, with idf, channel and text in the same order."""

    ids: np.ndarray
    weights: np.ndarray
    channels: np.ndarray
    texts: tuple[str, ...]
    totals: Mapping[int, float]
    frequencies: Mapping[int, int]


def find_candidates(session: Session, terms: Terms, repo_ids: Sequence[int] | None = None) -> list[Candidate]:
    """The stored issues most like these terms, best first."""
    size = count_indexed(session)
    query = _weigh(session, terms, size)
    if not len(query.ids):
        return []
    best = _seeds(session, query, repo_ids)
    profiles = find_profiles(session, best)
    found = [_score(key, profiles[key], query) for key in best if key in profiles]
    return sorted(found, key=lambda item: (-sum(item.scores.values()), item.key))


def score_one(session: Session, terms: Terms, key: Key) -> Candidate | None:
    """How much of these terms one stored issue holds, candidate or not; None if it is not indexed."""
    profile = find_profiles(session, [key]).get(key)
    query = _weigh(session, terms, count_indexed(session))
    return _score(key, profile, query) if profile is not None and len(query.ids) else None


def _seeds(session: Session, query: _Query, repo_ids: Sequence[int] | None) -> list[Key]:
    """The issues that hold the weightiest of the rare terms."""
    weight = dict(zip(query.ids.tolist(), query.weights.tolist(), strict=True))
    channel = dict(zip(query.ids.tolist(), query.channels.tolist(), strict=True))
    rarest = _rarest(query)
    holders: dict[int, list[Key]] = {}
    for term, repo_id, number in find_postings(session, rarest):
        if repo_ids is None or repo_id in repo_ids:
            holders.setdefault(term, []).append((repo_id, number))
    seeds: Counter[Key] = Counter()
    # In a fixed order of the terms, and equals by number: the engines give rows in different orders.
    for term in rarest:
        for key in holders.get(term, ()):
            seeds[key] += weight[term] * SEED_WEIGHT[channel[term]]
    return heapq.nsmallest(CANDIDATES, seeds, key=lambda key: (-seeds[key], key))


def _weigh(session: Session, terms: Terms, size: int) -> _Query:
    by_id = {term_id(*term): term for term in terms}
    frequencies = find_frequencies(session, list(by_id))
    totals = dict.fromkeys(CHANNELS, 0.0)
    for key, (channel, _) in by_id.items():
        # A term never seen still belongs to the query: what no issue holds, no issue can cover.
        totals[channel] += _idf(frequencies.get(key, 0), size)
    ids = np.array(sorted(frequencies), dtype=np.int64)
    known = [by_id[int(key)] for key in ids]
    return _Query(
        ids,
        np.array([_idf(frequencies[int(key)], size) for key in ids]),
        np.array([channel for channel, _ in known], dtype=np.int8),
        tuple(text for _, text in known),
        totals,
        frequencies,
    )


def _idf(df: int, size: int) -> float:
    return math.log(1 + (size - df + 0.5) / (df + 0.5)) if df <= size else 0.0


def _rarest(query: _Query) -> list[int]:
    """The rarest terms of each channel, as many as the budget of postings allows."""
    chosen: list[int] = []
    for channel, limit in RAREST.items():
        ids = query.ids[query.channels == channel].tolist()
        chosen += sorted(ids, key=lambda key: query.frequencies[key])[:limit]
    chosen.sort(key=lambda key: query.frequencies[key])
    total = 0
    for position, key in enumerate(chosen):
        total += query.frequencies[key]
        if total > POSTINGS_MAX and position > 0:
            return chosen[:position]
    return chosen


def _score(key: Key, profile: Profile, query: _Query) -> Candidate:
    at = np.searchsorted(profile.ids, query.ids)
    at[at == len(profile.ids)] = 0
    here = profile.ids[at] == query.ids if len(profile.ids) else np.zeros(len(query.ids), dtype=bool)
    counts = profile.counts[at[here]].astype(float)
    length = 1 - B + B * len(profile.ids) / MEAN_TERMS
    gains = query.weights[here] * counts * (K1 + 1) / (counts + K1 * length)
    channels = query.channels[here]
    scores = {channel: float(gains[channels == channel].sum()) for channel in CHANNELS}
    covered = {channel: float(query.weights[here][channels == channel].sum()) for channel in CHANNELS}
    shares = {
        channel: covered[channel] / query.totals[channel] if query.totals[channel] else 0.0
        for channel in CHANNELS
    }
    positions = np.flatnonzero(here)
    top = positions[np.argsort(-query.weights[positions])][:12]
    shared = tuple(
        (int(query.channels[i]), query.texts[i], float(query.weights[i])) for i in top.tolist()
    )
    return Candidate(key, scores, shares, shared)
