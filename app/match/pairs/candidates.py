"""Find candidate duplicates of an issue: the stored issues that share its distinctive terms.

In: seed terms of an issue's title and texts. Out: issues of its repository, most promising first, and issues
of other repositories that share error terms. The cost is bounded by `TERMS` and `POSTINGS_MAX`, not by the
size of the corpus.
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
"""Limit for other repositories, which are compared by error terms only."""
ERROR_CHANNELS = frozenset({ERROR, FRAME, SIGNATURE})
POSTINGS_MAX = 1_500
"""Posting rows read for each issue; more rows hardly improve recall on the judged pairs."""
TERMS = {TEXT: 50, ERROR: 40, FRAME: 20, SIGNATURE: 4}
"""Maximum number of seed terms per channel, in addition to all terms of the title."""
SEED_WEIGHT = {TEXT: 0.5, ERROR: 1.0, FRAME: 0.7, SIGNATURE: 1.5}
TITLE_WEIGHT = 1.0
"""Weight of a title word, above that of a body word."""
REFERENCE_ISSUES = 16_000
"""Fixed corpus size for idf, which avoids counting the stored issues."""
OWN_DF = 1
"""Document frequency of a term that occurs only in the issue itself."""

_NO_ERRORS = CauseChain(None)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Keys of candidates, most promising first: in the same repository, and in others."""

    here: tuple[Key, ...] = ()
    across: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True)
class Seeds:
    """Ids of the terms used to find an issue's neighbours.

    Attributes:
        weights: factor on the idf of each term; `errors`: ids of the terms of the issue's errors.
    """

    weights: Mapping[int, float]
    errors: np.ndarray


def find_neighbours(session: Session, repo_id: int, issues: Mapping[int, Seeds]) -> dict[int, Neighbours]:
    """Return the neighbours of each of these indexed issues."""
    wanted: set[int] = set().union(*(seeds.weights for seeds in issues.values()))
    stored = find_frequencies(session, sorted(wanted))
    frequencies = {key: df for key, df in stored.items() if df > OWN_DF}
    chosen: dict[int, list[int]] = {}
    for number, seeds in issues.items():
        known = seeds.weights.keys() & frequencies.keys()
        rarest = sorted(known, key=lambda key: (frequencies[key], key))
        chosen[number] = sorted(affordable(rarest, frequencies, POSTINGS_MAX))
    # Issues of one batch share terms: the postings of each term are read once.
    rows = find_postings(session, sorted(set().union(*chosen.values())))
    found: dict[int, Neighbours] = {}
    for number, keys in chosen.items():
        ids = np.array(keys, dtype=np.int64)
        gains = np.array(
            [issues[number].weights[key] * math.log1p(REFERENCE_ISSUES / frequencies[key]) for key in keys],
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
    """Choose the title's terms and, for each channel, the heaviest terms by the learned weights."""
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
