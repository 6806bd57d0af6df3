"""BM25 over the search index (Robertson and Zaragoza 2009): term weights, posting budgets, scores.

In a small database every term looks rare, even in lines that hundreds of servers print. So document
frequencies are smoothed with those of a full corpus: fully in an empty database, not at all from `ISSUES`
stored issues on. The background counts are data (`background.npz`: term hashes and numbers, no words), made
by `app.train.background`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import as_file, files
from itertools import compress

import numpy as np
from sqlalchemy.orm import Session

from app.store.derived.search_index import Key, Profile, count_indexed, find_frequencies, term_id

NAME = "background.npz"
ISSUES = 15_000
"""Stored issues from which on the background is not used."""
HASH_SHIFT = 32
"""The background keeps the upper 32 bits of a term id; collisions among its 60,000 terms are very rare."""
LEVELS_PER_OCTAVE = 8
"""Resolution of the logarithmic one-byte counts: an error of at most 5 %."""
MEAN_TERMS = 250
"""Mean issue length in terms; fixed, so that scores do not drift as the corpus grows."""
_NUMBER_BITS = 40
_NUMBER_MASK = (1 << _NUMBER_BITS) - 1
"""An issue's key packed into one integer: repository id in the high bits, issue number in the low ones."""


@dataclass(frozen=True, slots=True)
class Field:
    """BM25 parameters of one field.

    Attributes:
        k1: term frequency saturation; the lower, the sooner repeats stop counting.
        b: length normalisation, from 0 to 1.
        mean: mean field length in terms.
    """

    k1: float
    b: float
    mean: float = MEAN_TERMS

    def saturation(self, counts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Return the factor on each term's weight, given its count and the field's length in terms."""
        stretch = 1 - self.b + self.b * lengths / self.mean
        factors: np.ndarray = counts * (self.k1 + 1) / (counts + self.k1 * stretch)
        return factors


@dataclass(frozen=True, slots=True)
class Query:
    """The terms of a query, as parallel arrays sorted by term id.

    Attributes:
        weights: weight of each term, in nats.
        texts: display text of each term.
        held: document frequency in the stored issues.
        dfs: the same, smoothed with the background.
    """

    ids: np.ndarray
    channels: np.ndarray
    weights: np.ndarray
    texts: tuple[str, ...]
    held: np.ndarray
    dfs: np.ndarray

    def known(self) -> Query:
        """Return the query with only the terms that occur in some stored issue."""
        at = self.held > 0
        texts = tuple(compress(self.texts, at.tolist()))
        return Query(self.ids[at], self.channels[at], self.weights[at], texts, self.held[at], self.dfs[at])

    def frequencies(self) -> dict[int, int]:
        """Return the document frequency of each term, by id."""
        return dict(zip(self.ids.tolist(), self.held.tolist(), strict=True))

    def heaviest(self, places: np.ndarray) -> list[tuple[int, str, float]]:
        """Return channel, text and weight of the terms at these positions, the heaviest first."""
        places = places[np.argsort(-self.weights[places], kind="stable")]
        columns = self.channels[places].tolist(), places.tolist(), self.weights[places].tolist()
        return [(channel, self.texts[at], weight) for channel, at, weight in zip(*columns, strict=True)]


@dataclass(frozen=True, slots=True)
class Overlap:
    """Occurrences of query terms in profiles: index of the profile (`of`), of the term (`at`), its count."""

    of: np.ndarray
    at: np.ndarray
    counts: np.ndarray


@lru_cache(maxsize=1)
def load_background() -> tuple[Mapping[int, float], int]:
    """Load, on the first search of a small database, the packaged document frequencies.

    Returns:
        The document frequency by the upper half of the term id, and the number of issues counted.
    """
    with as_file(files(__package__) / NAME) as path, np.load(path, allow_pickle=False) as stored:
        counts = np.round(2 ** (stored["levels"] / LEVELS_PER_OCTAVE)).tolist()
        return dict(zip(stored["halves"].tolist(), counts, strict=True)), int(stored["issues"])


def with_background(ids: np.ndarray, held: np.ndarray, size: int) -> tuple[np.ndarray, float]:
    """Return smoothed document frequencies, and the corpus size that they refer to.

    Args:
        ids: term ids.
        held: document frequency of each in the stored issues.
        size: number of stored issues.
    """
    if size >= ISSUES:
        return held, size
    missing = 1 - size / ISSUES
    known, issues = load_background()
    counts = np.array([known.get(key >> HASH_SHIFT, 0.0) for key in ids.tolist()])
    return held + missing * counts, size + missing * issues


def weigh(session: Session, terms: Mapping[tuple[int, str], tuple[float, str]]) -> Query:
    """Weight the terms of a query by idf, including terms that no stored issue holds.

    Args:
        session: database session.
        terms: (channel, term) to a weight factor and the display text.
    """
    asked = sorted((term_id(*term), term[0], *value) for term, value in terms.items())
    size = count_indexed(session)
    frequencies = find_frequencies(session, [row[0] for row in asked])
    ids = np.array([row[0] for row in asked], dtype=np.int64)
    held = np.array([min(frequencies.get(row[0], 0), size) for row in asked], dtype=np.int64)
    dfs, issues = with_background(ids, held, size)
    return Query(
        ids,
        np.array([row[1] for row in asked], dtype=np.int8),
        information(dfs, issues) * np.array([row[2] for row in asked], dtype=float),
        tuple(row[3] for row in asked),
        held,
        dfs,
    )


def information(dfs: np.ndarray, issues: float) -> np.ndarray:
    """Return BM25's idf in nats for document frequencies in `issues` issues; 0 where df exceeds `issues`."""
    nats: np.ndarray = np.log(1 + (issues - np.minimum(dfs, issues) + 0.5) / (dfs + 0.5))
    return np.where(dfs <= issues, nats, 0.0)


def affordable(ids: Iterable[int], frequencies: Mapping[int, int], most: int) -> list[int]:
    """Return the longest prefix of the terms with at most `most` postings in total, but at least one term."""
    total = 0
    chosen: list[int] = []
    for key in ids:
        total += frequencies[key]
        if total > most and chosen:
            break
        chosen.append(key)
    return chosen


def heaviest_holders(
    rows: np.ndarray,
    ids: np.ndarray,
    gains: np.ndarray,
    *,
    limit: int,
    repo_ids: Sequence[int] | None = None,
    exclude: Collection[Key | int] = frozenset(),
) -> list[Key]:
    """Return the issues with the highest sum of term weights; ties are broken by key.

    Args:
        rows: postings (term, repository, number) sorted by term, as `find_postings` returns them.
        ids, gains: all term ids, sorted, and the weight of each.
        limit: maximum number of issues.
        repo_ids: restrict to these repositories.
        exclude: issues to leave out, as keys, or as numbers for any repository.
    """
    if repo_ids is not None:
        rows = rows[(rows[:, 1, None] == list(repo_ids)).any(axis=1)]
    issues = rows[:, 1] << _NUMBER_BITS | rows[:, 2]
    if exclude:
        numbers = [item for item in exclude if isinstance(item, int)]
        left_out = [key[0] << _NUMBER_BITS | key[1] for key in exclude if not isinstance(key, int)]
        wanted = ~(np.isin(rows[:, 2], numbers) | np.isin(issues, left_out))
        rows, issues = rows[wanted], issues[wanted]
    keys, sums = _sums(issues, gains[np.searchsorted(ids, rows[:, 0])])
    return _keys_of(keys[np.lexsort((keys, -sums))[:limit]])


def gains_of_holders(
    rows: np.ndarray, ids: np.ndarray, gains: np.ndarray, *, least: float
) -> dict[Key, float]:
    """Return the sum of term weights of each issue where it reaches `least`.

    Args:
        rows, ids, gains: as for `heaviest_holders`.
    """
    keys, sums = _sums(rows[:, 1] << _NUMBER_BITS | rows[:, 2], gains[np.searchsorted(ids, rows[:, 0])])
    enough = sums >= least
    return dict(zip(_keys_of(keys[enough]), sums[enough].tolist(), strict=True))


def _sums(issues: np.ndarray, gains: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct issues, sorted, and the sum of gains of each."""
    keys, holder = np.unique(issues, return_inverse=True)
    # Added in term order, so that SQLite and PostgreSQL give bitwise equal sums.
    return keys, np.bincount(holder, weights=gains, minlength=len(keys)).round(6)


def _keys_of(issues: np.ndarray) -> list[Key]:
    return [(key >> _NUMBER_BITS, key & _NUMBER_MASK) for key in issues.tolist()]


def find_overlap(profiles: Sequence[Profile], ids: np.ndarray) -> Overlap:
    """Find the query terms (`ids`, sorted) that occur in each profile, ordered by profile, then term."""
    if not profiles:
        none = np.empty(0, dtype=np.int64)
        return Overlap(none, none, none)
    all_ids = np.concatenate([profile.ids for profile in profiles])
    at = np.minimum(np.searchsorted(ids, all_ids), len(ids) - 1)
    here = np.flatnonzero(ids[at] == all_ids)
    ends = np.cumsum([len(profile.ids) for profile in profiles])
    counts = np.concatenate([profile.counts for profile in profiles])[here].astype(float)
    return Overlap(np.searchsorted(ends, here, side="right"), at[here], counts)
