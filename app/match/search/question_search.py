"""Find the stored issues that match a question in words.

In: a question and its heading. Out: ranked candidates. Title and body are scored with BM25 as separate
fields, the title with more weight, as a body holds whole logs; matching facts add their weight. The sum is
scaled by the coverage of the question's words. With a vector of the question, candidates that are
semantically nearer than average get a bonus. The parameters were tuned on the benchmark's questions that are
not held out, and on titles of issues that people judged the same.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from sqlalchemy.orm import Session

from app.match.search.bm25 import Field, Query, affordable, find_overlap, heaviest_holders, weigh
from app.match.search.log_search import Candidate
from app.match.search.ranking import MEANING, load_weights
from app.match.search.terms import HEADING, TEXT, Heading, words_of
from app.store.derived.model_outputs import TextVector, find_vectors
from app.store.derived.search_index import Key, Profile, find_postings, find_profiles, term_id

WORD_WEIGHT, MEANING_WEIGHT, FACT_WEIGHT, TEXT_WEIGHT = 2.0, 1.5, 0.8, 1.0
COVERAGE_POWER = 0.5
"""Exponent of the coverage factor; the higher, the more it counts to match all words of the question."""
HEADING_FIELD = Field(k1=1.2, b=0.75, mean=11)
TEXT_FIELD = Field(k1=0.9, b=0.5)
POSTINGS_MAX = {HEADING: 8_000, TEXT: 4_000}
"""Posting rows read to find candidates, by channel."""
CANDIDATES = 250
HEADING_NATS_MIN = 40.0
"""Minimum denominator of heading coverage, in nats: a question of one or two words is weak evidence."""
WORDS_MAX = 60
"""Words of a question that are looked up in `TEXT`."""
SHARED_MAX = 12


@dataclass(frozen=True, slots=True)
class QuestionTerm:
    """A term that matches one part of the question: the part's number and the term's weight factor."""

    part: int
    weight: float
    term_text: str


@dataclass(frozen=True, slots=True)
class QuestionParts:
    """The terms of a question by part; the first `words` parts are words, which match in headings and texts.

    `meanings`: for each part that is a concept, the parts of the words that express it.
    """

    terms: Mapping[tuple[int, str], QuestionTerm]
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
) -> list[Candidate]:
    """Return the stored issues that best match a question, best first.

    Args:
        session: database session.
        text: the question.
        heading: the question's heading terms.
        repo_ids: restrict to these repositories.
        exclude: issues to leave out before the limit applies, as keys, or as numbers for any repository.
        vector: embedding of the question; without it no vectors are read.
    """
    asked = parts_of_question(text, heading)
    if not asked.terms:
        return []
    query = weigh(session, {key: (term.weight, term.term_text) for key, term in asked.terms.items()})
    known = query.known()
    if not len(known.ids):
        return []
    part_of = {term_id(*key): term.part for key, term in asked.terms.items()}
    parts = np.array([part_of[key] for key in query.ids.tolist()], dtype=np.int64)
    in_heading = query.channels == HEADING
    whole = np.bincount(parts[in_heading], query.weights[in_heading], asked.parts)
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
    found = _score(find_profiles(session, keys), known, parts[query.held > 0], whole, asked)
    if vector is not None:
        nearness = find_nearness(session, [item.key for item in found], vector)
        weight = load_weights().prose.meaning
        found = [
            replace(item, scores={**item.scores, MEANING: weight * nearness.get(item.key, 0.0)})
            for item in found
        ]
    return sorted(found, key=lambda item: (-sum(item.scores.values()), item.key))


def find_nearness(session: Session, keys: Sequence[Key], question: TextVector) -> dict[Key, float]:
    """Return the z-score of each issue's cosine similarity to the question, among these issues.

    Standardised so that embedding models with different ranges of similarity are comparable. Issues below the
    mean, or without a vector of the question's model, are left out.
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


def parts_of_question(text: str, heading: Heading) -> QuestionParts:
    """Return the terms of a question, each assigned to the first part that it matches."""
    found: dict[tuple[int, str], QuestionTerm] = {}
    for part, (stem, word) in enumerate(heading.words.items()):
        found.setdefault((HEADING, stem), QuestionTerm(part, WORD_WEIGHT, word))
        for form in words_of(word):
            found.setdefault((TEXT, form), QuestionTerm(part, TEXT_WEIGHT, word))
    words = len(heading.words)
    rest = [
        *(((TEXT, word), TEXT_WEIGHT, word) for word in words_of(text)[:WORDS_MAX]),
        # `first token` of `symptom.first_token`
        *(
            ((HEADING, rule), MEANING_WEIGHT, rule.partition(".")[2].replace("_", " "))
            for rule in heading.meanings
        ),
        *(((HEADING, fact), FACT_WEIGHT, "") for fact in heading.facts),
    ]
    for part, (term, weight, term_text) in enumerate(rest, words):
        found.setdefault(term, QuestionTerm(part, weight, term_text))
    place = {stem: at for at, stem in enumerate(heading.words)}
    meanings = {}
    for rule, stems in heading.meanings.items():
        if (HEADING, rule) in found:
            meanings[found[HEADING, rule].part] = [place[stem] for stem in stems if stem in place]
    return QuestionParts(found, words, words + len(rest), meanings)


def _heaviest_first(known: Query, channel: int) -> list[int]:
    """Return the ids of a channel's terms, the heaviest first."""
    of = known.channels == channel
    ids: list[int] = known.ids[of][np.argsort(-known.weights[of], kind="stable")].tolist()
    return ids


def _score(
    profiles: Mapping[Key, Profile],
    known: Query,
    parts: np.ndarray,
    whole: np.ndarray,
    asked: QuestionParts,
) -> list[Candidate]:
    """Score each issue's heading and text against the question; each part counts by its best term.

    Args:
        parts: the part of each known term; `whole`: the weight of each part in a heading.
    """
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
    scores = np.zeros((2, size, asked.parts))
    np.maximum.at(scores, (in_heading.astype(int), of, parts[at]), weights * factors)
    matched = np.zeros((size, asked.parts))
    np.maximum.at(matched, (of[in_heading], parts[at][in_heading]), weights[in_heading])
    words = asked.words
    is_met = scores.sum(axis=0)[:, :words] > 0
    for meaning, of_words in asked.meanings.items():
        # "TP" in a title counts as much as the question's own words "tensor parallel".
        meant = scores[1, :, meaning] * WORD_WEIGHT / MEANING_WEIGHT
        scores[1, :, meaning] += np.maximum(meant - scores[1][:, of_words].sum(axis=1), 0.0)
        is_met[:, of_words] |= (meant > 0)[:, None]
    met = is_met @ whole[:words] / max(whole[:words].sum(), 1e-9)
    by_text, by_heading = scores.sum(axis=2) * met**COVERAGE_POWER
    nats = max(HEADING_NATS_MIN, float(whole[:words].sum()))
    starts = np.searchsorted(of, np.arange(size + 1))
    return [
        Candidate(
            key,
            {"title": float(by_heading[i]), "context": float(by_text[i])},
            {"title": float(matched[i, :words].sum()) / nats},
            {},
            0.0,
            _shared(known, at[starts[i] : starts[i + 1]]),
        )
        for i, key in enumerate(profiles)
    ]


def _shared(known: Query, places: np.ndarray) -> tuple[tuple[int, str, float], ...]:
    """Return the heaviest shared words, without duplicates."""
    found: dict[str, tuple[int, str, float]] = {}
    for _, term_text, weight in known.heaviest(places):
        if term_text:
            found.setdefault(term_text, (TEXT, term_text, weight))
    return tuple(found.values())[:SHARED_MAX]
