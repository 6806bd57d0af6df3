"""Which stored issues a question in words asks about.

In: a question and its heading. Out: candidates with what they share of it. Titles count most: a title says
what an issue is about, while its body holds all words of a machine. Both are ranked by BM25 (as in
`candidates`) and summed, each field with a weight and a length of its own; facts that agree add what they
tell. The figures were chosen on the questions of `app.bench` that are not held out, and on titles of issues
that mention each other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlmodel import Session

from app.match.search.bm25 import affordable, information, weighed
from app.match.search.log_search import MEAN_TERMS, Candidate, heaviest_holders
from app.match.search.terms import CHANNELS, HEADING, TEXT, Heading, words_of
from app.store.derived.search_index import (
    Key,
    Profile,
    count_indexed,
    find_frequencies,
    find_postings,
    find_profiles,
    term_id,
)

WORD_WEIGHT, MEANING_WEIGHT, FACT_WEIGHT, TEXT_WEIGHT = 2.0, 1.0, 0.8, 0.7
K1_HEADING, B_HEADING, MEAN_HEADING_TERMS = 1.2, 0.75, 11
K1_TEXT, B_TEXT = 0.9, 0.5
POSTINGS_MAX = {HEADING: 3_000, TEXT: 1_000}
"""Rows read to find candidates, of each channel."""
CANDIDATES = 100
LEAST_WHOLE = 40.0
"""Nats that a heading is taken to tell at least: a word or two cover little, wherever they are found."""
WORDS_MAX = 60
"""Words of a question that are looked up; a longer text is no question."""
SHOWN = 12


@dataclass(frozen=True, slots=True)
class _Question:
    """Its known terms: ids sorted, with weight, channel and the words to show in the same order.

    `whole`: what the whole heading would tell, known to any issue or not.
    """

    ids: np.ndarray
    weights: np.ndarray
    in_heading: np.ndarray
    shown: tuple[str, ...]
    frequencies: Mapping[int, int]
    whole: float


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
        text: the question.
        heading: what `read_heading` made of it.
        exclude: issues that take no one's place, or numbers, whatever their repository.
    """
    asked = _weigh(session, text, heading)
    if not len(asked.ids):
        return []
    rows = find_postings(session, _affordable(asked))
    keys = heaviest_holders(
        rows, asked.ids, asked.weights, limit=CANDIDATES, repo_ids=repo_ids, exclude=exclude
    )
    profiles = find_profiles(session, keys)
    found = [_score(key, profile, asked) for key, profile in profiles.items()]
    return sorted(found, key=lambda item: (-sum(item.scores.values()), item.key))


def _weigh(session: Session, text: str, heading: Heading) -> _Question:
    """The question's known terms with what each tells, and what the whole would tell."""
    terms: dict[int, tuple[float, bool, str]] = {}
    for word in dict.fromkeys(words_of(text)[:WORDS_MAX]):
        terms[term_id(TEXT, word)] = TEXT_WEIGHT, False, word
    named = (
        (WORD_WEIGHT, heading.words.items()),
        (MEANING_WEIGHT, ((name, _in_words(name)) for name in heading.meanings)),
        (FACT_WEIGHT, ((name, "") for name in heading.facts)),
    )
    for weight, pairs in named:
        for term, shown in pairs:
            terms[term_id(HEADING, term)] = weight, True, shown
    frequencies = find_frequencies(session, list(terms))
    ids = np.array(sorted(terms), dtype=np.int64)
    size = count_indexed(session)
    held = np.array([min(frequencies.get(key, 0), size) for key in ids.tolist()], dtype=np.float64)
    dfs, whole = weighed(ids, held, size)
    weights = information(dfs, whole) * np.array([terms[key][0] for key in ids.tolist()])
    in_heading = np.array([terms[key][1] for key in ids.tolist()], dtype=bool)
    known = held > 0
    return _Question(
        ids[known],
        weights[known],
        in_heading[known],
        tuple(terms[key][2] for key in ids[known].tolist()),
        frequencies,
        max(LEAST_WHOLE, float(weights[in_heading].sum())),
    )


def _in_words(rule: str) -> str:
    """What a rule finds: `first token` of `symptom.first_token`."""
    return rule.partition(".")[2].replace("_", " ")


def _affordable(asked: _Question) -> list[int]:
    """The rarest terms of each channel, as many as its budget of postings allows."""
    chosen: list[int] = []
    for channel, most in POSTINGS_MAX.items():
        ids = asked.ids[asked.in_heading == (channel == HEADING)].tolist()
        ids.sort(key=lambda key: (asked.frequencies[key], key))
        chosen += affordable(ids, asked.frequencies, most)
    return chosen


def _score(key: Key, profile: Profile, asked: _Question) -> Candidate:
    """What an issue shares of the question, in its heading and in its text."""
    at = np.minimum(np.searchsorted(profile.ids, asked.ids), max(0, len(profile.ids) - 1))
    here = profile.ids[at] == asked.ids if len(profile.ids) else np.zeros(len(asked.ids), dtype=bool)
    heading, text = here & asked.in_heading, here & ~asked.in_heading
    size = len(profile.ids) - profile.length
    stretch = 1 - B_HEADING + B_HEADING * size / MEAN_HEADING_TERMS
    covered = float(asked.weights[heading].sum())
    counts = profile.counts[at[text]].astype(float)
    length = 1 - B_TEXT + B_TEXT * profile.length / MEAN_TERMS
    told = float(np.sum(asked.weights[text] * counts * (K1_TEXT + 1) / (counts + K1_TEXT * length)))
    scores = {HEADING: covered * (K1_HEADING + 1) / (1 + K1_HEADING * stretch), TEXT: told}
    return Candidate(
        key,
        {**dict.fromkeys(CHANNELS, 0.0), **scores},
        {**dict.fromkeys(CHANNELS, 0.0), HEADING: covered / asked.whole},
        _shared(here, asked),
    )


def _shared(here: np.ndarray, asked: _Question) -> tuple[tuple[int, str, float], ...]:
    """The weightiest shared words, each once."""
    places = np.flatnonzero(here)
    found: dict[str, tuple[int, str, float]] = {}
    for i in places[np.argsort(-asked.weights[places], kind="stable")].tolist():
        if asked.shown[i]:
            found.setdefault(asked.shown[i], (TEXT, asked.shown[i], float(asked.weights[i])))
    return tuple(found.values())[:SHOWN]
