"""BM25 over the search index (Robertson and Zaragoza 2009): weights of terms, postings to read, scores.

A small base takes every word for rare, and so a line that hundreds of servers print for the mark of one
failure. So the counts of a full corpus stand in for the issues that are missing: all of them in an empty
base, none from `ISSUES` stored issues on. These counts are data (`background.npz`: hashes of terms and
numbers, no words), made by `app.train.background`.
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
"""From so many stored issues on a base is weighed by itself."""
HASH_SHIFT = 32
"""Of a term's id the upper half is kept: of 60,000 terms hardly two share it."""
LEVELS_PER_OCTAVE = 8
"""Counts are kept as logarithms in a byte, right to within 5 %."""
MEAN_TERMS = 250
"""Terms of a usual issue; fixed, so that a score does not drift as the corpus grows."""
_LOW_BITS = 0xFFFF
"""Of a term's id: a quick look whether a query may hold it."""
_NUMBER_BITS = 40
_NUMBER_MASK = (1 << _NUMBER_BITS) - 1
"""An issue's key as one number: its repository above, its own number below."""


@dataclass(frozen=True, slots=True)
class Field:
    """How one part of an issue's text is scored.

    Attributes:
        k1: how soon a repeated term adds nothing more.
        b: how much the length counts, from 0 to 1.
        mean: how many terms a usual text has.
    """

    k1: float
    b: float
    mean: float = MEAN_TERMS

    def saturation(self, counts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """The factor by which each term's weight counts, by its count and the number of the text's terms."""
        stretch = 1 - self.b + self.b * lengths / self.mean
        factors: np.ndarray = counts * (self.k1 + 1) / (counts + self.k1 * stretch)
        return factors


@dataclass(frozen=True, slots=True)
class Query:
    """The terms of a query, as arrays in the order of their ids.

    Attributes:
        weights: what each term weighs, in nats.
        texts: each term as it is shown.
        held: how many stored issues hold it.
        dfs: the same with the background's count for missing issues.
    """

    ids: np.ndarray
    channels: np.ndarray
    weights: np.ndarray
    texts: tuple[str, ...]
    held: np.ndarray
    dfs: np.ndarray

    def known(self) -> Query:
        """Only the terms that some stored issue holds."""
        at = self.held > 0
        texts = tuple(compress(self.texts, at.tolist()))
        return Query(self.ids[at], self.channels[at], self.weights[at], texts, self.held[at], self.dfs[at])

    def rarest(self, channel: int) -> list[int]:
        """The ids of a channel's terms, the rarest first."""
        of = self.channels == channel
        ids: list[int] = self.ids[of][np.argsort(self.held[of], kind="stable")].tolist()
        return ids

    def frequencies(self) -> dict[int, int]:
        """How many stored issues hold each term, by id."""
        return dict(zip(self.ids.tolist(), self.held.tolist(), strict=True))

    def heaviest(self, places: np.ndarray) -> list[tuple[int, str, float]]:
        """Channel, text and weight of the terms at these places, the weightiest first."""
        places = places[np.argsort(-self.weights[places], kind="stable")]
        columns = self.channels[places].tolist(), places.tolist(), self.weights[places].tolist()
        return [(channel, self.texts[at], weight) for channel, at, weight in zip(*columns, strict=True)]


@dataclass(frozen=True, slots=True)
class Overlap:
    """Where a query's terms stand in profiles, one entry each: the profile's place, the term's, its count."""

    of: np.ndarray
    at: np.ndarray
    counts: np.ndarray


@dataclass(frozen=True, slots=True)
class Background:
    """Half ids, sorted, and how many of `issues` issues hold each; a term that is not listed is rare."""

    halves: np.ndarray
    counts: np.ndarray
    issues: int

    def counts_of(self, ids: np.ndarray) -> np.ndarray:
        """How many issues hold each of these terms."""
        halves = half_of(ids)
        at = np.minimum(np.searchsorted(self.halves, halves), len(self.halves) - 1)
        counts: np.ndarray = np.where(self.halves[at] == halves, self.counts[at], 0.0)
        return counts


@lru_cache(maxsize=1)
def load_background() -> Background:
    """The counts this version was measured with; read when a small base is first searched."""
    with as_file(files(__package__) / NAME) as path, np.load(path, allow_pickle=False) as stored:
        return Background(stored["halves"], count_of(stored["levels"]), int(stored["issues"]))


def with_background(ids: np.ndarray, held: np.ndarray, size: int) -> tuple[np.ndarray, float]:
    """How many issues hold each term, and of how many, with the background for the issues that are missing.

    Args:
        ids: of the terms.
        held: how many stored issues hold each.
        size: how many issues are stored.
    """
    if size >= ISSUES:
        return held, size
    missing = 1 - size / ISSUES
    background = load_background()
    return held + missing * background.counts_of(ids), size + missing * background.issues


def half_of(ids: np.ndarray) -> np.ndarray:
    """The part of each id that is kept."""
    halves: np.ndarray = (ids.astype(np.int64) >> HASH_SHIFT).astype(np.int32)
    return halves


def level_of(counts: np.ndarray) -> np.ndarray:
    """Counts as they are kept."""
    levels: np.ndarray = np.round(np.log2(counts) * LEVELS_PER_OCTAVE).astype(np.uint8)
    return levels


def count_of(levels: np.ndarray) -> np.ndarray:
    """Counts as they were kept."""
    counts: np.ndarray = np.round(2 ** (levels.astype(float) / LEVELS_PER_OCTAVE))
    return counts


def weigh(
    session: Session, terms: Mapping[tuple[int, str], tuple[float, str]], *, small_base: bool = True
) -> Query:
    """A query of terms, known to any issue or not.

    Args:
        session: of the store.
        terms: channel and term, with a factor for its weight and the text to show for it.
        small_base: let the background stand in for the issues that a small base is missing.
    """
    asked = sorted((term_id(*term), term[0], *value) for term, value in terms.items())
    size = count_indexed(session)
    frequencies = find_frequencies(session, [row[0] for row in asked])
    ids = np.array([row[0] for row in asked], dtype=np.int64)
    held = np.array([min(frequencies.get(row[0], 0), size) for row in asked], dtype=np.int64)
    dfs, issues = with_background(ids, held, size) if small_base else (held, float(size))
    return Query(
        ids,
        np.array([row[1] for row in asked], dtype=np.int8),
        information(dfs, issues) * np.array([row[2] for row in asked], dtype=float),
        tuple(row[3] for row in asked),
        held,
        dfs,
    )


def information(dfs: np.ndarray, issues: float) -> np.ndarray:
    """The weight of terms that so many of `issues` issues hold, in nats (idf of BM25); 0 if more do."""
    nats: np.ndarray = np.log(1 + (issues - np.minimum(dfs, issues) + 0.5) / (dfs + 0.5))
    return np.where(dfs <= issues, nats, 0.0)


def affordable(ids: Iterable[int], frequencies: Mapping[int, int], most: int) -> list[int]:
    """The first of these terms, up to `most` rows of postings in all; one at least, however common it is."""
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
    """The issues of these postings whose terms weigh most in sum, equals by their keys.

    Args:
        rows: term, repository and number, in the order of the terms, as `find_postings` gives them.
        ids: all terms, sorted; `gains` is what each of them weighs.
        limit: how many.
        repo_ids: of these repositories only.
        exclude: issues that are left out, or numbers, whatever their repository.
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
    """What the terms that each issue holds weigh in sum, of the issues where that is not below `least`.

    Args:
        rows, ids, gains: as for `heaviest_holders`.
    """
    keys, sums = _sums(rows[:, 1] << _NUMBER_BITS | rows[:, 2], gains[np.searchsorted(ids, rows[:, 0])])
    enough = sums >= least
    return dict(zip(_keys_of(keys[enough]), sums[enough].tolist(), strict=True))


def _sums(issues: np.ndarray, gains: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each issue once, and the sum of its gains."""
    keys, holder = np.unique(issues, return_inverse=True)
    # Each sum is taken in the order of the terms, so that it is the same to the last bit on both engines.
    return keys, np.bincount(holder, weights=gains, minlength=len(keys)).round(6)


def _keys_of(issues: np.ndarray) -> list[Key]:
    return [(key >> _NUMBER_BITS, key & _NUMBER_MASK) for key in issues.tolist()]


def find_overlap(profiles: Sequence[Profile], ids: np.ndarray) -> Overlap:
    """Where these terms, sorted by id, stand in profiles; entries ascend by profile, then by term."""
    if not profiles:
        none = np.empty(0, dtype=np.int64)
        return Overlap(none, none, none)
    all_ids = np.concatenate([profile.ids for profile in profiles])
    may_be_asked = np.zeros(_LOW_BITS + 1, dtype=bool)
    may_be_asked[ids & _LOW_BITS] = True
    here = np.flatnonzero(may_be_asked[all_ids & _LOW_BITS])  # a tenth of the time of a search for each
    at = np.minimum(np.searchsorted(ids, all_ids[here]), len(ids) - 1)
    is_asked = ids[at] == all_ids[here]
    here, at = here[is_asked], at[is_asked]
    ends = np.cumsum([len(profile.ids) for profile in profiles])
    counts = np.concatenate([profile.counts for profile in profiles])[here].astype(float)
    return Overlap(np.searchsorted(ends, here, side="right"), at, counts)
