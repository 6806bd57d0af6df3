"""How common a term is where the stored issues are too few to tell.

In: terms with the number of stored issues that hold them, and how many are stored. Out: both as a base of
usual size would tell them. A base of eighty cards takes every word for rare, and so a line that hundreds of
servers print for the mark of one failure. Counts of a full corpus stand in for the issues that are missing
there: all of them in an empty base, none where as many are stored, so that a full base is weighed by itself
alone. The counts are data (`background.npz`: hashes of terms and numbers, no words), made by
`app.train.background`.

What a search may read of the index, and how much each term tells. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import as_file, files

import numpy as np

NAME = "background.npz"
ISSUES = 15_000
"""From so many stored issues on a base is weighed by itself."""
HASH_SHIFT = 32
"""Of a term's id the upper half is kept: of 60,000 terms hardly two share it."""
LEVELS_PER_OCTAVE = 8
"""Counts are kept as logarithms in a byte, right to within 5 %."""


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
    """The counts this version was measured with; read when first a small base is asked."""
    with as_file(files(__package__) / NAME) as path, np.load(path, allow_pickle=False) as stored:
        return Background(stored["halves"], count_of(stored["levels"]), int(stored["issues"]))


def weighed(ids: np.ndarray, held: np.ndarray, size: int) -> tuple[np.ndarray, float]:
    """How many issues hold each term, and of how many.

    Args:
        ids: of the terms.
        held: how many stored issues hold each.
        size: how many issues are stored.

    Returns:
        The same, with the counts of a full corpus in the place of the issues that are missing.
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


def information(dfs: np.ndarray, issues: float) -> np.ndarray:
    """What terms tell that so many of `issues` issues hold, in nats (the idf of BM25); nothing if more do."""
    told: np.ndarray = np.log(1 + (issues - np.minimum(dfs, issues) + 0.5) / (dfs + 0.5))
    return np.where(dfs <= issues, told, 0.0)
