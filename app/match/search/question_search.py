"""Which stored issues a question in words asks about.

In: a question and its heading. Out: candidates with what they share of it. Titles count most: a title says
what an issue is about, while its body holds all words of a machine. Both are ranked by BM25 and summed, each
field with a weight and a length of its own; facts that agree add what they tell. The figures were chosen on
the benchmark's questions that are not held out, and on titles of issues that mention each other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from sqlalchemy.orm import Session

from app.match.search.bm25 import Field, Query, affordable, find_overlap, heaviest_holders, weigh
from app.match.search.log_search import Candidate
from app.match.search.terms import HEADING, TEXT, Heading, words_of
from app.store.derived.search_index import Key, Profile, find_postings, find_profiles

WORD_WEIGHT, MEANING_WEIGHT, FACT_WEIGHT, TEXT_WEIGHT = 2.0, 1.0, 0.8, 0.7
HEADING_FIELD = Field(k1=1.2, b=0.75, mean=11)
TEXT_FIELD = Field(k1=0.9, b=0.5)
POSTINGS_MAX = {HEADING: 3_000, TEXT: 1_000}
"""Rows read to find candidates, of each channel."""
CANDIDATES = 100
LEAST_WHOLE = 40.0
"""Nats that a heading is taken to tell at least: a word or two cover little, wherever they are found."""
WORDS_MAX = 60
"""Words of a question that are looked up; a longer text is no question."""
SHARED_MAX = 12


def find_answers(
    session: Session,
    text: str,
    heading: Heading,
    repo_ids: Sequence[int] | None = None,
    *,
    exclude: Collection[Key | int] = frozenset(),
) -> list[Candidate]:
    """The stored issues that a question is most likely about, best first.

    Args:
        session: of the store.
        text: the question.
        heading: what `read_heading` made of it.
        repo_ids: search these repositories only.
        exclude: issues that take no one's place, or numbers, whatever their repository.
    """
    query = weigh(session, _terms(text, heading))
    known = query.known()
    if not len(known.ids):
        return []
    frequencies = known.frequencies()
    chosen = [
        key
        for channel, most in POSTINGS_MAX.items()
        for key in affordable(known.rarest(channel), frequencies, most)
    ]
    rows = find_postings(session, chosen)
    keys = heaviest_holders(
        rows, known.ids, known.weights, limit=CANDIDATES, repo_ids=repo_ids, exclude=exclude
    )
    whole = max(LEAST_WHOLE, float(query.weights[query.channels == HEADING].sum()))
    found = _score(find_profiles(session, keys), known, whole)
    return sorted(found, key=lambda item: (-sum(item.scores.values()), item.key))


def _terms(text: str, heading: Heading) -> dict[tuple[int, str], tuple[float, str]]:
    """The question's terms with their factors, and the words to show for them."""
    terms = {(TEXT, word): (TEXT_WEIGHT, word) for word in words_of(text)[:WORDS_MAX]}
    terms |= {(HEADING, term): (WORD_WEIGHT, word) for term, word in heading.words.items()}
    for rule in heading.meanings:  # `first token` of `symptom.first_token`
        terms[HEADING, rule] = MEANING_WEIGHT, rule.partition(".")[2].replace("_", " ")
    return terms | {(HEADING, fact): (FACT_WEIGHT, "") for fact in heading.facts}


def _score(profiles: Mapping[Key, Profile], known: Query, whole: float) -> list[Candidate]:
    """What each issue shares of the question, in its heading and in its text."""
    size = len(profiles)
    overlap = find_overlap(list(profiles.values()), known.ids)
    of, at = overlap.of, overlap.at
    lengths = np.array([profile.length for profile in profiles.values()])
    headings = np.array([len(profile.ids) for profile in profiles.values()]) - lengths
    in_heading = known.channels[at] == HEADING
    weights = known.weights[at]
    factors = np.where(
        in_heading,
        HEADING_FIELD.saturation(np.ones(len(at)), headings[of]),
        TEXT_FIELD.saturation(overlap.counts, lengths[of]),
    )
    by_heading = np.bincount(of, weights * factors * in_heading, size).tolist()
    by_text = np.bincount(of, weights * factors * ~in_heading, size).tolist()
    covered = np.bincount(of, weights * in_heading, size).tolist()
    starts = np.searchsorted(of, np.arange(size + 1))
    return [
        Candidate(
            key,
            {"title": by_heading[i], "context": by_text[i]},
            {"title": covered[i] / whole},
            {},
            0.0,
            _shared(known, at[starts[i] : starts[i + 1]]),
        )
        for i, key in enumerate(profiles)
    ]


def _shared(known: Query, places: np.ndarray) -> tuple[tuple[int, str, float], ...]:
    """The weightiest shared words, each once."""
    found: dict[str, tuple[int, str, float]] = {}
    for _, shown, weight in known.heaviest(places):
        if shown:
            found.setdefault(shown, (TEXT, shown, weight))
    return tuple(found.values())[:SHARED_MAX]
