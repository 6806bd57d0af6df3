"""Which stored issues are worth weighing against an issue: those that share its distinctive terms.

In: the terms chosen of an issue's title and texts. Out: issues of its repository, most promising first; and
those of other repositories that share words of its error. `TERMS` and `POSTINGS_MAX` bound the cost, not
the corpus.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from heapq import nsmallest

import numpy as np
from sqlalchemy.orm import Session

from app.extract.log.root_cause import CauseChain
from app.match.pairs.features import load_word_weights, stem
from app.match.search.bm25 import affordable, heaviest_holders
from app.match.search.terms import ERROR, FRAME, SIGNATURE, TEXT, Terms, bare_title, terms_of
from app.store.derived.search_index import Key, find_frequencies, find_postings, term_id

NEIGHBOURS = 80
NEIGHBOURS_ACROSS = 20
"""Of other repositories: these share an error, which is rare; words of prose carry no weight there."""
ERROR_CHANNELS = frozenset({ERROR, FRAME, SIGNATURE})
POSTINGS_MAX = 1_500
"""Rows read; so many hold the right one of nearly all judged pairs that any number holds."""
TERMS = {TEXT: 50, ERROR: 40, FRAME: 20, SIGNATURE: 4}
"""How many of a channel's terms are asked for; besides, all of the title's."""
SEED_WEIGHT = {TEXT: 0.5, ERROR: 1.0, FRAME: 0.7, SIGNATURE: 1.5}
TITLE_WEIGHT = 1.0
"""A word of the title weighs more than one of the text."""
YARDSTICK = 16_000
"""The size of corpus against which rarity is measured: to count the stored one grows with it."""
ALONE = 1
"""A term of one issue is its own."""

_NO_ERRORS = CauseChain(None)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Keys of issues worth weighing, most promising first: of the same repository, and of others."""

    here: tuple[Key, ...] = ()
    across: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True)
class Seeds:
    """The ids of the terms by which an issue's neighbours are looked for; `errors`: those of its error.

    Attributes:
        weights: what each term counts for, times its rarity.
    """

    weights: Mapping[int, float]
    errors: np.ndarray


def find_neighbours(session: Session, repo_id: int, issues: Mapping[int, Seeds]) -> dict[int, Neighbours]:
    """For each of these indexed issues those that share most with it; those of others share its error."""
    wanted: set[int] = set().union(*(seeds.weights for seeds in issues.values()))
    stored = find_frequencies(session, sorted(wanted))
    frequencies = {key: df for key, df in stored.items() if df > ALONE}
    chosen: dict[int, list[int]] = {}
    for number, seeds in issues.items():
        known = seeds.weights.keys() & frequencies.keys()
        rarest = sorted(known, key=lambda key: (frequencies[key], key))
        chosen[number] = sorted(affordable(rarest, frequencies, POSTINGS_MAX))
    # Issues that are read together share terms: each is asked for once.
    rows = find_postings(session, sorted(set().union(*chosen.values())))
    found: dict[int, Neighbours] = {}
    for number, keys in chosen.items():
        ids = np.array(keys, dtype=np.int64)
        gains = np.array(
            [issues[number].weights[key] * math.log1p(YARDSTICK / frequencies[key]) for key in keys],
            dtype=float,
        )
        starts, ends = (np.searchsorted(rows[:, 0], ids, side=side).tolist() for side in ("left", "right"))
        mine = np.concatenate([rows[:0], *(rows[start:end] for start, end in zip(starts, ends, strict=True))])
        own = mine[(mine[:, 1] == repo_id) & (mine[:, 2] != number)]
        others = mine[mine[:, 1] != repo_id]
        others = others[np.isin(others[:, 0], issues[number].errors)]
        here = heaviest_holders(own, ids, gains, limit=NEIGHBOURS)
        across = heaviest_holders(others, ids, gains, limit=NEIGHBOURS_ACROSS)
        found[number] = Neighbours(tuple(here), tuple(across))
    return found


def choose_seeds(title: str, terms: Terms) -> Seeds:
    """The title's terms, and of each channel the heaviest by the learned weights."""
    in_title = terms_of([bare_title(title)], _NO_ERRORS)
    found = {term_id(*term): TITLE_WEIGHT for term in in_title if term in terms}
    known = load_word_weights()
    ranked: dict[int, list[tuple[float, str]]] = {channel: [] for channel in TERMS}
    for channel, text in terms:
        if channel != TEXT:
            ranked[channel].append((-known.grams.get(text, known.top), text))
        elif " " not in text:
            ranked[channel].append((-known.words.get(stem(text), known.top), text))
    for channel, items in ranked.items():
        for _, text in nsmallest(TERMS[channel], items):
            found.setdefault(term_id(channel, text), SEED_WEIGHT[channel])
    errors = [term_id(*term) for term in terms if term[0] in ERROR_CHANNELS]
    return Seeds(found, np.array(errors, dtype=np.int64))
