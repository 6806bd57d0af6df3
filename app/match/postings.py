"""What a search may read of the index, and how much each term tells. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np


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
