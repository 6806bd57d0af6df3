"""Which stored issues a question in words asks about.

In: a question and its heading. Out: candidates with what they share of it. Each word of the question may be
met by itself, by another form of it, or less so by a word that stands for the same. Titles count most: a
title says what an issue is about, while its body holds all words of a machine. Both are ranked by BM25 and
summed, each field with a weight and a length of its own; facts that agree add what they weigh. An issue that
meets few of the words is worth less than the sum. With a vector of the question, those of the candidates gain
that are nearer in meaning than most. The figures were chosen on the benchmark's questions that are not held
out, and on titles of issues that people call the same. Which words are forms of each other, and which
say the same, is learned from the corpus (`related_words.json`, made by `app.train.related_words`); small
words and names of one issue are not in it.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
from sqlalchemy.orm import Session

from app.match.search.bm25 import Field, Query, affordable, find_overlap, heaviest_holders, weigh
from app.match.search.log_search import Candidate
from app.match.search.ranking import MEANING, load_weights
from app.match.search.terms import HEADING, TEXT, Heading, words_of
from app.store.derived.issue_vectors import TextVector, find_vectors
from app.store.derived.search_index import Key, Profile, find_postings, find_profiles, term_id

WORD_WEIGHT, MEANING_WEIGHT, FACT_WEIGHT, TEXT_WEIGHT = 2.0, 1.5, 0.8, 1.0
RELATED_WEIGHT = 0.5
"""What a word that stands for the same counts, times how near it is."""
COVERAGE_POWER = 0.5
"""How much it counts that an issue meets all words of the question, and not one of them often."""
HEADING_FIELD = Field(k1=1.2, b=0.75, mean=11)
TEXT_FIELD = Field(k1=0.9, b=0.5)
POSTINGS_MAX = {HEADING: 8_000, TEXT: 4_000}
"""Rows read to find candidates, of each channel."""
CANDIDATES = 250
LEAST_WHOLE = 40.0
"""Nats that a heading is taken to weigh at least: a word or two cover little, wherever they are found."""
WORDS_MAX = 60
"""Words of a question that are looked up; a longer text is no question."""
SHARED_MAX = 12


@dataclass(frozen=True, slots=True)
class Way:
    """One term by which a part of the question may be met: the part's number, and what the term counts.

    `is_own`: it is that part, and not one that stands for it.
    """

    part: int
    weight: float
    term_text: str
    is_own: bool = True


@dataclass(frozen=True, slots=True)
class Ways:
    """All ways to meet a question, those of one part together; the first `words` parts are its words.

    `meanings`: for each part that is what words mean, the parts of these words.
    """

    terms: Mapping[tuple[int, str], Way]
    words: int
    parts: int
    meanings: Mapping[int, Sequence[int]]


def find_answers(
    session: Session,
    text: str,
    heading: Heading,
    repo_ids: Sequence[int] | None = None,
    *,
    exclude: Collection[Key | int] = frozenset(),
    vector: TextVector | None = None,
    meaning_weight: float | None = None,
) -> list[Candidate]:
    """The stored issues that a question is most likely about, best first.

    Args:
        session: of the store.
        text: the question.
        heading: what `read_heading` made of it.
        repo_ids: search these repositories only.
        exclude: issues that take no one's place, or numbers, whatever their repository.
        vector: of the question; without it no vector is read.
        meaning_weight: nats for a standard deviation of nearness; the learned ones if not given.
    """
    ways = find_ways(text, heading)
    if not ways.terms:
        return []
    query = weigh(session, {term: (way.weight, way.term_text) for term, way in ways.terms.items()})
    query, parts, own = _as_parts(query, ways)
    at = query.held > 0
    known, parts = query.known(), parts[at]
    if not len(known.ids):
        return []
    frequencies = known.frequencies()
    chosen = [
        key
        for channel, most in POSTINGS_MAX.items()
        for key in affordable(_heaviest_first(known, channel), frequencies, most)
    ]
    rows = find_postings(session, chosen)
    keys = heaviest_holders(
        rows, known.ids, known.weights, limit=CANDIDATES, repo_ids=repo_ids, exclude=exclude
    )
    found = _score(find_profiles(session, keys), known, parts, own, ways)
    if vector is not None:
        nearness = find_nearness(session, [item.key for item in found], vector)
        weight = load_weights().prose.meaning if meaning_weight is None else meaning_weight
        found = [with_meaning(item, weight * nearness.get(item.key, 0.0)) for item in found]
    return sorted(found, key=lambda item: (-sum(item.scores.values()), item.key))


def find_nearness(session: Session, keys: Sequence[Key], question: TextVector) -> dict[Key, float]:
    """By how many standard deviations issues are nearer to the question than these are on the whole.

    So it means the same for models whose likenesses are all high, or all low. Those that are less near than
    the mean, or have no vector of the question's model, are left out.
    """
    own = np.frombuffer(question.vector, dtype=np.int8).astype(np.float32)
    vectors = find_vectors(session, keys, question.model)
    vectors = {key: vector for key, vector in vectors.items() if len(vector) == len(own)}
    if not vectors:
        return {}
    matrix = np.array(list(vectors.values()), dtype=np.float32)
    lengths = np.maximum(np.linalg.norm(matrix, axis=1) * np.linalg.norm(own), 1e-9)
    cosines = matrix @ own / lengths
    spread = (cosines - cosines.mean()) / max(float(cosines.std()), 1e-6)
    return {key: float(value) for key, value in zip(vectors, spread, strict=True) if value > 0}


def with_meaning(candidate: Candidate, nats: float) -> Candidate:
    """The candidate with what its meaning counts beside its words."""
    return replace(candidate, scores={**candidate.scores, MEANING: nats})


def find_ways(text: str, heading: Heading) -> Ways:
    """The terms that meet a question, each for the first part that it meets."""
    found: dict[tuple[int, str], Way] = {}
    known = load_related_words()
    words = list(heading.words.items())
    for part, (stem, word) in enumerate(words):
        found.setdefault((HEADING, stem), Way(part, WORD_WEIGHT, word))
        for form in (*words_of(word), *known.forms.get(stem, ())):
            found.setdefault((TEXT, form), Way(part, TEXT_WEIGHT, word))
    for part, (stem, word) in enumerate(words):
        for other, near in known.related.get(stem, {}).items():
            weight = RELATED_WEIGHT * near
            found.setdefault((HEADING, other), Way(part, WORD_WEIGHT * weight, word, is_own=False))
            for form in known.forms.get(other, ()):
                found.setdefault((TEXT, form), Way(part, TEXT_WEIGHT * weight, word, is_own=False))
    rest = [
        *(((TEXT, word), TEXT_WEIGHT, word) for word in words_of(text)[:WORDS_MAX]),
        # `first token` of `symptom.first_token`
        *(
            ((HEADING, rule), MEANING_WEIGHT, rule.partition(".")[2].replace("_", " "))
            for rule in heading.meanings
        ),
        *(((HEADING, fact), FACT_WEIGHT, "") for fact in heading.facts),
    ]
    for part, (term, weight, term_text) in enumerate(rest, len(words)):
        found.setdefault(term, Way(part, weight, term_text))
    place = {stem: at for at, stem in enumerate(heading.words)}
    meanings = {}
    for rule, stems in heading.meanings.items():
        if (HEADING, rule) in found:
            meanings[found[HEADING, rule].part] = [place[stem] for stem in stems if stem in place]
    return Ways(found, len(words), len(words) + len(rest), meanings)


def _as_parts(query: Query, ways: Ways) -> tuple[Query, np.ndarray, np.ndarray]:
    """The query with no word weighing more than the one it stands for.

    Returns:
        The query, the part of each of its terms, and what each part weighs in a heading.
    """
    by_id = {term_id(*term): way for term, way in ways.terms.items()}
    found = [by_id[key] for key in query.ids.tolist()]
    parts = np.array([way.part for way in found], dtype=np.int64)
    factors = np.array([way.weight for way in found])
    in_heading = query.channels == HEADING
    most = np.full((2, ways.parts), np.inf)
    is_own = np.array([way.is_own for way in found])
    information = query.weights / factors
    # Of several forms the most common one says what all of them mean.
    np.minimum.at(most, (in_heading.astype(int)[is_own], parts[is_own]), information[is_own])
    weights = np.minimum(information, most[in_heading.astype(int), parts]) * factors
    own = np.where(np.isinf(most[1]), 0.0, most[1])
    return replace(query, weights=weights), parts, own


def _heaviest_first(known: Query, channel: int) -> list[int]:
    """The ids of a channel's terms, the heaviest first."""
    of = known.channels == channel
    ids: list[int] = known.ids[of][np.argsort(-known.weights[of], kind="stable")].tolist()
    return ids


def _score(
    profiles: Mapping[Key, Profile], known: Query, parts: np.ndarray, own: np.ndarray, ways: Ways
) -> list[Candidate]:
    """What each issue shares of the question, in its heading and in its text: of each part its best way."""
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
    scores = np.zeros((2, size, len(own)))
    np.maximum.at(scores, (in_heading.astype(int), of, parts[at]), weights * factors)
    matched = np.zeros((size, len(own)))
    np.maximum.at(matched, (of[in_heading], parts[at][in_heading]), weights[in_heading])
    words = ways.words
    is_met = scores.sum(axis=0)[:, :words] > 0
    for meaning, of_words in ways.meanings.items():
        # "TP" in a title is worth as much as the words "tensor parallel" that the question has for it.
        meant = scores[1, :, meaning] * WORD_WEIGHT / MEANING_WEIGHT
        scores[1, :, meaning] += np.maximum(meant - scores[1][:, of_words].sum(axis=1), 0.0)
        is_met[:, of_words] |= (meant > 0)[:, None]
    met = is_met @ own[:words] / max(own[:words].sum(), 1e-9)
    by_text, by_heading = scores.sum(axis=2) * met**COVERAGE_POWER
    whole = max(LEAST_WHOLE, WORD_WEIGHT * float(own[:words].sum()))
    starts = np.searchsorted(of, np.arange(size + 1))
    return [
        Candidate(
            key,
            {"title": float(by_heading[i]), "context": float(by_text[i])},
            {"title": float(matched[i, :words].sum()) / whole},
            {},
            0.0,
            _shared(known, at[starts[i] : starts[i + 1]]),
        )
        for i, key in enumerate(profiles)
    ]


def _shared(known: Query, places: np.ndarray) -> tuple[tuple[int, str, float], ...]:
    """The weightiest shared words, each once."""
    found: dict[str, tuple[int, str, float]] = {}
    for _, term_text, weight in known.heaviest(places):
        if term_text:
            found.setdefault(term_text, (TEXT, term_text, weight))
    return tuple(found.values())[:SHARED_MAX]


NAME = "related_words.json"


@dataclass(frozen=True, slots=True)
class RelatedWords:
    """By stem: the forms of its word, the most common first; and related stems with how near, 0 to 1."""

    forms: Mapping[str, Sequence[str]]
    related: Mapping[str, Mapping[str, float]]


@lru_cache(maxsize=1)
def load_related_words() -> RelatedWords:
    """The words this version was measured with; read when a question is first asked."""
    data: dict[str, Any] = json.loads((files(__package__) / NAME).read_text(encoding="utf-8"))
    return RelatedWords(
        {stem: forms.split() for stem, forms in data["forms"].items()},
        {
            stem: {other: int(percent) / 100 for other, percent in (item.split(":") for item in row.split())}
            for stem, row in data["related"].items()
        },
    )
