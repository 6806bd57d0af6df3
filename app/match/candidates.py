"""Which stored issues are worth a closer look: those that share the rarest terms.

In: the terms of a log. Out: the most promising issues with their BM25 score a channel, and the query's
own score, so that a share can be told. Cost is bounded by `POSTINGS_MAX`, not by the corpus.
BM25 after Robertson and Zaragoza 2009, k1 = 1.2, b = 0.5 (short reports tell as much as long ones).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
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
SHOWN = 12
"""A candidate's weightiest shared terms, kept to say why it is one."""

_NUMBER_BITS = 40
_NUMBER_MASK = (1 << _NUMBER_BITS) - 1
"""An issue's key as one number: its repository above, its own number below."""
_WIDTH = max(CHANNELS) + 1
_SEED_WEIGHTS = np.array([SEED_WEIGHT.get(channel, 0.0) for channel in range(_WIDTH)])


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


def find_candidates(
    session: Session,
    terms: Terms,
    repo_ids: Sequence[int] | None = None,
    *,
    exclude: Collection[int] = frozenset(),
) -> list[Candidate]:
    """The stored issues most like these terms, best first; numbers in `exclude` take no one's place."""
    query = _weigh(session, terms, count_indexed(session))
    if not len(query.ids):
        return []
    found = _score(find_profiles(session, _seeds(session, query, repo_ids, exclude)), query)
    return sorted(found, key=lambda item: (-sum(item.scores.values()), item.key))


def score_one(session: Session, terms: Terms, key: Key) -> Candidate | None:
    """How much of these terms one stored issue holds, candidate or not; None if it is not indexed."""
    query = _weigh(session, terms, count_indexed(session))
    found = _score(find_profiles(session, [key]), query) if len(query.ids) else []
    return found[0] if found else None


def _seeds(
    session: Session, query: _Query, repo_ids: Sequence[int] | None, exclude: Collection[int]
) -> list[Key]:
    """The issues that hold the weightiest of the rare terms."""
    rows = np.array(find_postings(session, _rarest(query)), dtype=np.int64).reshape(-1, 3)
    if repo_ids is not None:
        rows = rows[np.isin(rows[:, 1], list(repo_ids))]
    if exclude:
        rows = rows[~np.isin(rows[:, 2], list(exclude))]
    # In a fixed order, so that sums and ties are the same on engines that give rows in another order.
    packed = rows[:, 1] << _NUMBER_BITS | rows[:, 2]
    order = np.lexsort((rows[:, 0], packed))
    packed, at = packed[order], np.searchsorted(query.ids, rows[order, 0])
    told = query.weights[at] * _SEED_WEIGHTS[query.channels[at]]
    keys, holder = np.unique(packed, return_inverse=True)
    sums = np.bincount(holder, weights=told, minlength=len(keys))
    best = keys[np.lexsort((keys, -sums))[:CANDIDATES]]
    return [(key >> _NUMBER_BITS, key & _NUMBER_MASK) for key in best.tolist()]


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


def _score(profiles: Mapping[Key, Profile], query: _Query) -> list[Candidate]:
    """What each profile shares with the query; all of them in one pass."""
    if not profiles:
        return []
    keys = list(profiles)
    sizes = np.array([len(profiles[key].ids) for key in keys])
    ids = np.concatenate([profiles[key].ids for key in keys])
    at = np.minimum(np.searchsorted(query.ids, ids), len(query.ids) - 1)
    here = query.ids[at] == ids
    at, of = at[here], np.repeat(np.arange(len(keys)), sizes)[here]
    counts = np.concatenate([profiles[key].counts for key in keys])[here].astype(float)
    length = 1 - B + B * sizes[of] / MEAN_TERMS
    weights = query.weights[at]
    cell = of * _WIDTH + query.channels[at]
    size = len(keys) * _WIDTH
    gains = np.bincount(cell, weights * counts * (K1 + 1) / (counts + K1 * length), size)
    covered = np.bincount(cell, weights, size)
    top = np.lexsort((-weights, of))
    starts = np.searchsorted(of, np.arange(len(keys) + 1))  # `of` ascends, so does each profile's run
    return [
        _candidate(
            key, gains[i * _WIDTH :], covered[i * _WIDTH :],
            at[top[starts[i] : starts[i + 1]][:SHOWN]], query,
        )
        for i, key in enumerate(keys)
    ]  # fmt: skip


def _candidate(
    key: Key, gains: np.ndarray, covered: np.ndarray, shared: np.ndarray, query: _Query
) -> Candidate:
    return Candidate(
        key,
        {channel: float(gains[channel]) for channel in CHANNELS},
        {
            channel: float(covered[channel]) / query.totals[channel] if query.totals[channel] else 0.0
            for channel in CHANNELS
        },
        tuple((int(query.channels[i]), query.texts[i], float(query.weights[i])) for i in shared.tolist()),
    )
