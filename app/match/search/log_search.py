"""Which stored issues are worth a closer look: those that share the rarest terms.

In: the terms of a log. Out: the most promising issues with their BM25 score a channel, and the query's
own score, so that a share can be told. Cost is bounded by `POSTINGS_MAX`, not by the corpus.
BM25 after Robertson and Zaragoza 2009, k1 = 1.2, b = 0.5 (short reports tell as much as long ones).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
from sqlmodel import Session

from app.match.search.bm25 import affordable, information, weighed
from app.match.search.terms import CHANNELS, ERROR, FRAME, SIGNATURE, TEXT, Terms
from app.store.derived.search_index import (
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
POSTINGS_MAX = 2_000
"""Rows read to find candidates. On 186 labelled logs 1,500 finds as many right issues as 40,000 does."""
CANDIDATES = 40
"""How many are looked at closely; with 30 as many of those logs have their issue among the first ten."""
RAREST = {TEXT: 60, ERROR: 60, FRAME: 50, SIGNATURE: 8}
"""How many of a channel's rarest terms are asked for."""
SEED_WEIGHT = {TEXT: 0.5, ERROR: 1.5, FRAME: 1.0, SIGNATURE: 2.0}
SHOWN = 12
"""A candidate's weightiest shared terms, kept to say why it is one."""
RARE_DF, SCARCE_DF = 3, 20
"""In how many issues a word stands at most to be called rare or scarce. They set one log apart from all
others of its kind, which a sum over all words hides."""
NO_SUCH_WORDS = 0.5
"""What is told of a share of words where the query has none of that kind."""

_NUMBER_BITS = 40
_NUMBER_MASK = (1 << _NUMBER_BITS) - 1
"""An issue's key as one number: its repository above, its own number below."""
_LAST_BITS = (1 << 16) - 1
"""Of a term's id; few terms of a query and of a profile have the same ones by chance."""
_WIDTH = max(CHANNELS) + 1
_COMMON, _RARE, _SCARCE = 0, 1, 2
_KINDS = 3
_SEED_WEIGHTS = np.array([SEED_WEIGHT.get(channel, 0.0) for channel in range(_WIDTH)])


@dataclass(frozen=True, slots=True)
class Candidate:
    """An issue and how much of the query it holds, channel by channel, in nats of information.

    Attributes:
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


@dataclass(frozen=True, slots=True)
class _Query:
    """A log's known terms: ids sorted; idf, channel, text, rarity and missing holders in the same order.

    `totals`: the log's whole information by channel; `words`: how many words of each rarity it has. Both
    count what no issue holds, too.
    """

    ids: np.ndarray
    weights: np.ndarray
    channels: np.ndarray
    texts: tuple[str, ...]
    totals: np.ndarray
    frequencies: Mapping[int, int]
    rarities: np.ndarray
    words: np.ndarray
    missing: np.ndarray


class _Shared(Sequence[tuple[int, str, float]]):
    """A candidate's weightiest shared terms; put into words when asked, for most candidates nobody asks."""

    def __init__(self, places: np.ndarray, query: _Query) -> None:
        self._places, self._query = places, query

    @cached_property
    def _terms(self) -> tuple[tuple[int, str, float], ...]:
        query = self._query
        first = self._places[np.argsort(-query.weights[self._places], kind="stable")[:SHOWN]]
        texts = [query.texts[at] for at in first.tolist()]
        return tuple(zip(query.channels[first].tolist(), texts, query.weights[first].tolist(), strict=True))

    @overload
    def __getitem__(self, at: int) -> tuple[int, str, float]: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[tuple[int, str, float], ...]: ...
    def __getitem__(self, at: int | slice) -> Any:
        return self._terms[at]

    def __iter__(self) -> Iterator[tuple[int, str, float]]:
        return iter(self._terms)

    def __len__(self) -> int:
        return min(SHOWN, len(self._places))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._terms == tuple(other)

    def __hash__(self) -> int:
        return hash(self._terms)

    def __repr__(self) -> str:
        return repr(self._terms)


def find_candidates(
    session: Session,
    terms: Terms,
    repo_ids: Sequence[int] | None = None,
    *,
    exclude: Collection[Key | int] = frozenset(),
) -> list[Candidate]:
    """The stored issues most like these terms, best first.

    Args:
        exclude: issues that take no one's place, or numbers, whatever their repository.
    """
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
    session: Session, query: _Query, repo_ids: Sequence[int] | None, exclude: Collection[Key | int]
) -> list[Key]:
    """The issues that hold the weightiest of the rare terms."""
    told = query.weights * _SEED_WEIGHTS[query.channels]
    rows = find_postings(session, _rarest(query))
    return heaviest_holders(rows, query.ids, told, limit=CANDIDATES, repo_ids=repo_ids, exclude=exclude)


def heaviest_holders(
    rows: np.ndarray,
    ids: np.ndarray,
    told: np.ndarray,
    *,
    limit: int,
    repo_ids: Sequence[int] | None = None,
    exclude: Collection[Key | int] = frozenset(),
) -> list[Key]:
    """The issues of these postings whose terms tell most in sum.

    Args:
        rows: term, repository and number, in the order of the terms, as `find_postings` gives them.
        ids: all terms, sorted; `told` is what each of them tells.
        exclude: issues that are left out, or numbers, whatever their repository.
    """
    if repo_ids is not None:
        rows = rows[(rows[:, 1, None] == list(repo_ids)).any(axis=1)]
    if numbers := [item for item in exclude if isinstance(item, int)]:
        rows = rows[~np.isin(rows[:, 2], numbers)]
    if keys_left_out := [key[0] << _NUMBER_BITS | key[1] for key in exclude if not isinstance(key, int)]:
        rows = rows[~np.isin(rows[:, 1] << _NUMBER_BITS | rows[:, 2], keys_left_out)]
    keys, holder = np.unique(rows[:, 1] << _NUMBER_BITS | rows[:, 2], return_inverse=True)
    # Each sum is taken in the order of the terms, so that it is the same to the last bit on both engines.
    sums = np.bincount(holder, weights=told[np.searchsorted(ids, rows[:, 0])], minlength=len(keys))
    best = keys[np.lexsort((keys, -sums))[:limit]]
    return [(key >> _NUMBER_BITS, key & _NUMBER_MASK) for key in best.tolist()]


def _weigh(session: Session, terms: Terms, size: int) -> _Query:
    asked = sorted((term_id(*term), *term) for term in terms)
    frequencies = find_frequencies(session, [key for key, _, _ in asked])
    ids = np.array([key for key, _, _ in asked], dtype=np.int64)
    channels = np.array([channel for _, channel, _ in asked], dtype=np.int8)
    held = np.array([frequencies.get(key, 0) for key, _, _ in asked], dtype=np.int64)
    dfs, whole = weighed(ids, held, size)
    weights = information(dfs, whole)
    rarities = np.where(dfs <= RARE_DF, _RARE, np.where(dfs <= SCARCE_DF, _SCARCE, _COMMON))
    rarities[channels != TEXT] = _COMMON
    known = held > 0
    return _Query(
        ids[known],
        weights[known],
        channels[known],
        tuple(text for key, _, text in asked if key in frequencies),
        # A term never seen still belongs to the query: what no issue holds, no issue can cover.
        np.bincount(channels, weights, _WIDTH),
        frequencies,
        rarities[known],
        np.bincount(rarities, minlength=_KINDS),
        (dfs - held)[known],
    )


def _rarest(query: _Query) -> list[int]:
    """The rarest terms of each channel, as many as the budget of postings allows."""
    chosen: list[int] = []
    for channel, limit in RAREST.items():
        ids = query.ids[query.channels == channel].tolist()
        chosen += sorted(ids, key=query.frequencies.__getitem__)[:limit]
    chosen.sort(key=query.frequencies.__getitem__)
    return affordable(chosen, query.frequencies, POSTINGS_MAX)


def _score(profiles: Mapping[Key, Profile], query: _Query) -> list[Candidate]:
    """What each profile shares with the query; all of them in one pass."""
    if not profiles:
        return []
    keys, held = list(profiles), list(profiles.values())
    here, at = _places(np.concatenate([profile.ids for profile in held]), query.ids)
    ends = np.cumsum([len(profile.ids) for profile in held])
    of = np.searchsorted(ends, here, side="right")
    counts = np.concatenate([profile.counts for profile in held])[here].astype(float)
    lengths = np.array([profile.length for profile in held])
    length = 1 - B + B * lengths[of] / MEAN_TERMS
    weights = query.weights[at]
    cell = of * _WIDTH + query.channels[at]
    size = len(keys) * _WIDTH
    gains = np.bincount(cell, weights * counts * (K1 + 1) / (counts + K1 * length), size)
    covered = np.bincount(cell, weights, size)
    told = np.bincount(of * _KINDS + query.rarities[at], minlength=len(keys) * _KINDS)
    words = _share(told.reshape(-1, _KINDS), query.words, NO_SUCH_WORDS).tolist()
    shares = _share(covered.reshape(-1, _WIDTH), query.totals, 0.0).tolist()
    scores = gains.reshape(-1, _WIDTH).tolist()
    crowds = _crowds(at, of, query, len(keys))
    starts = np.searchsorted(of, np.arange(len(keys) + 1))  # `of` ascends, so does each profile's run
    return [
        Candidate(
            key,
            {channel: scores[i][channel] for channel in CHANNELS},
            {channel: shares[i][channel] for channel in CHANNELS},
            _Shared(at[starts[i] : starts[i + 1]], query),
            words[i][_RARE],
            words[i][_SCARCE],
            crowds[i],
        )
        for i, key in enumerate(keys)
    ]


def _places(ids: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where in `ids` there is one of `known`, which is sorted, and where in `known` that one stands."""
    # One in twelve is: to look all of them up takes longer than to leave most out by their last bits.
    ends = np.zeros(_LAST_BITS + 1, dtype=bool)
    ends[known & _LAST_BITS] = True
    here = np.flatnonzero(ends[ids & _LAST_BITS])
    at = np.minimum(np.searchsorted(known, ids[here]), len(known) - 1)
    same = known[at] == ids[here]
    return here[same], at[same]


def _crowds(at: np.ndarray, of: np.ndarray, query: _Query, size: int) -> list[float]:
    """For each profile how many missing issues may share its part of the error: those of its rarest term."""
    told = query.channels[at] != TEXT
    if not told.any() or not query.missing.any():
        return [0.0] * size
    least = np.full(size, np.inf)
    np.minimum.at(least, of[told], query.missing[at[told]])
    least[np.isinf(least)] = 0.0
    crowds: list[float] = least.tolist()
    return crowds


def _share(parts: np.ndarray, whole: np.ndarray, otherwise: float) -> np.ndarray:
    """Each column's share of its whole; `otherwise` where there is none."""
    told: np.ndarray = np.full(parts.shape, otherwise)
    np.divide(parts, whole, out=told, where=whole > 0)
    return told
