"""Search box: the stored issues that contain all the given words, ranked by BM25.

In: a few words. Out: the issues that contain every distinctive word, with scores. A word in most issues is
not required; a word in no issue is reported and ignored. Words of error lines, adjacent words and title words
count more. Above `PROFILES_MAX` results, term counts are ignored and idf is summed instead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from sqlalchemy.orm import Session

from app.match.search.bm25 import Query, find_overlap, weigh
from app.match.search.log_search import FIELD
from app.match.search.terms import ERROR, TEXT, words_of
from app.store.derived.facts import find_titles
from app.store.derived.search_index import (
    count_indexed,
    find_frequencies,
    find_postings,
    find_profiles,
    term_id,
)

WORDS_MAX = 12
COMMON_SHARE = 0.5
"""A word in a larger share of the issues than this is not required."""
PROFILES_MAX = 600
"""Maximum number of results whose profiles are read (about 10 µs each) for term counts."""
CHANNEL_WEIGHT = {TEXT: 1.0, ERROR: 1.5}
TITLE_WEIGHT = 2.0


@dataclass(frozen=True, slots=True)
class FoundByWords:
    """Issue numbers with their scores; `unknown` lists the words that occur in no issue."""

    scores: Mapping[int, float]
    words: tuple[str, ...]
    unknown: tuple[str, ...]


def search_words(session: Session, repo_id: int, text: str) -> FoundByWords:
    """Return the issues of a repository that contain all the distinctive words of a text."""
    words = tuple(dict.fromkeys(words_of(text)))[:WORDS_MAX]
    size = count_indexed(session)
    frequencies = find_frequencies(session, [term_id(TEXT, word) for word in words])
    known = [word for word in words if term_id(TEXT, word) in frequencies]
    unknown = tuple(word for word in words if word not in known)
    rare = [w for w in known if frequencies[term_id(TEXT, w)] <= COMMON_SHARE * size] or known
    found = _holding(session, repo_id, [term_id(TEXT, word) for word in rare])
    texts = [*rare, *_bigrams(words_of(text)[: 2 * WORDS_MAX])]
    factors = {(channel, one): (factor, one) for channel, factor in CHANNEL_WEIGHT.items() for one in texts}
    query = weigh(session, factors).known()
    return FoundByWords(_scored(session, repo_id, found, query), words, unknown)


def _bigrams(words: Sequence[str]) -> list[str]:
    return [f"{one} {two}" for one, two in pairwise(words)]


def _holding(session: Session, repo_id: int, ids: Sequence[int]) -> set[int]:
    """Return the issues that contain every one of these terms; none if there are no terms."""
    holders: dict[int, set[int]] = {key: set() for key in ids}
    for key, repo, number in find_postings(session, ids).tolist():
        if repo == repo_id:
            holders[key].add(number)
    return set.intersection(*holders.values()) if holders else set()


def _scored(session: Session, repo_id: int, found: set[int], query: Query) -> dict[int, float]:
    weights = dict(zip(query.ids.tolist(), query.weights.tolist(), strict=True))
    if len(found) > PROFILES_MAX:
        scores = dict.fromkeys(found, 0.0)
        for key, repo, number in find_postings(session, list(weights)).tolist():
            if repo == repo_id and number in scores:
                scores[number] += weights[key]
        return {number: round(score, 6) for number, score in scores.items()}
    profiles = find_profiles(session, [(repo_id, number) for number in sorted(found)])
    titles = find_titles(session, repo_id, sorted(found))
    overlap = find_overlap(list(profiles.values()), query.ids)
    lengths = np.array([profile.length for profile in profiles.values()])
    factors = FIELD.saturation(overlap.counts, lengths[overlap.of])
    sums = np.bincount(overlap.of, query.weights[overlap.at] * factors, len(profiles)).tolist()
    return {
        number: round(score + _in_title(titles.get(number, ""), weights), 6)
        for (_, number), score in zip(profiles, sums, strict=True)
    }


def _in_title(title: str, weights: Mapping[int, float]) -> float:
    words = words_of(title)
    terms = {term_id(TEXT, text) for text in (*words, *_bigrams(words))}
    return TITLE_WEIGHT * sum(weights[key] for key in sorted(terms & weights.keys()))
