"""Rank candidates: features, calibrated probability of the same failure, and band.

In: candidates with their coverage of the query, and the agreement of facts for the first ones. Out: `Scored`
candidates, best first. The weights are data (`weights.json`), learned by `app.train.log_ranking` from
labelled logs and stored with the date and size of the fit; nothing is fitted here.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from operator import mul
from typing import Any, Literal

from app.match.search.agreement import UNKNOWN, Agreement
from app.match.search.log_query import PARTS, LogQuery
from app.match.search.log_search import Candidate
from app.store.derived.search_index import Key

Band = Literal["same", "likely", "related"]

AGREEMENT_FEATURES = (
    "same_signature",
    "same_family",
    "same_architecture",
    "same_backend",
    "near_version",
    "same_message",
    "same_frame",
    "same_test",
)
"""Agreement of the log's facts with the issue's, one feature for each kind of fact."""

ORDER_FEATURES = (*PARTS, "rare_words", "scarce_words", *AGREEMENT_FEATURES)
"""Features of the linear ranking: coverage of each part of the query, coverage of rare and scarce words, and
agreement of facts (0 while unknown)."""

REFINED = 10
"""Number of top candidates whose facts are loaded, to rank them again by agreement."""

FEATURES = (
    "specific",
    "specific_cause",
    "specific_long",
    "common_frames",
    "common_share",
    "everything",
    "rare_words",
    "lead",
    "same_signature",
    "other_names",
    "foreign_test",
)
"""Features of the probability. `common`: unrelated failures share the root cause's message; `specific`: they
do not; `cause`: coverage of the message; `long`: its coverage above `HIGH_COVERAGE`, times the information
covered; `share`: coverage of the whole query; `everything`: the same above `HIGH_COVERAGE`; `lead`: score
margin of the first candidate over the second; `other_names`: share of the message's names that the issue
lacks; `foreign_test`: the issue is about a test, the log is not. Few features, as more of them overfit."""

AGAINST = frozenset({"other_names", "foreign_test"})
"""Features with weights constrained to be <= 0; the weights of all others are constrained to be >= 0."""

HIGH_COVERAGE = 0.7
FULL_CREDIT_FROM = 0.6
"""Coverage of the message, counting terms that no issue holds, up to which `specific_long` is reduced."""
LONG_NATS = 100.0
"""Information of a long and rare message, which counts as length 1; `LENGTH_MAX` is the limit."""
LENGTH_MAX = 1.2
CAUSE_COVERAGE_MIN = 0.5
"""With less coverage of the message, counting terms that no issue holds, it is a different message."""
EVIDENCE_NATS = 60.0
"""Score of the message that is sufficient evidence without any corroboration."""
OTHER_NATS_MIN = 40.0
"""Minimum score of everything but the message for `likely`, if unrelated failures share the message."""
CORROBORATED_FROM = 0.4
"""Coverage of title, code, frames or the whole log that corroborates a message found in an issue."""
FULL_COVERAGE = 0.9
"""Coverage from which on the message counts as contained."""
TOPIC_FROM = 0.5
"""Match with the title, or with the issue's own error, from which on the issue is about the message."""
REFUSAL_HOLDERS_MAX = 8
"""A refusal contained in more candidates than this is ordinary misuse and identifies no failure."""
CHANCE_STEP = 0.0001
"""Distance below a band's threshold at which a probability is capped."""
LEAD_SCALE = 4.0
"""A lead counts as ln(1 + `LEAD_SCALE` * lead), with diminishing returns."""

PROSE_FEATURES = ("score", "heading_share", "lead")
"""Features for a question without a log: ln(1 + score), coverage of the question's heading, and the margin
over the next candidate, relative to the best score."""


MEANING = "meaning"
"""Key, in a candidate's scores, of the bonus from an embedding model. It affects only the order of answers to
a question; the probability ignores it and so does not depend on the model."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate with its probability (0 to 1) of being the same failure, and the band of it."""

    candidate: Candidate
    probability: float
    band: Band


@dataclass(frozen=True, slots=True)
class ProseWeights:
    """Logistic regression over `PROSE_FEATURES` for a question in words.

    `meaning`: nats added to the ranking score per standard deviation of semantic similarity.
    """

    coefficients: tuple[float, ...]
    intercept: float
    likely_from: float
    related_from: float
    meaning: float


@dataclass(frozen=True, slots=True)
class RankWeights:
    """Learned weights: linear ranking over `ORDER_FEATURES`, then logistic regression over `FEATURES`."""

    order: tuple[float, ...]
    coefficients: tuple[float, ...]
    intercept: float
    same_from: float
    likely_from: float
    related_from: float
    floor: float
    prose: ProseWeights


@lru_cache(maxsize=1)
def load_weights() -> RankWeights:
    """Load the packaged weights."""
    data: dict[str, Any] = json.loads((files(__package__) / "weights.json").read_text(encoding="utf-8"))
    return RankWeights(
        tuple(data["order"][name] for name in ORDER_FEATURES),
        tuple(data["coefficients"][name] for name in FEATURES),
        data["intercept"],
        data["same_from"],
        data["likely_from"],
        data["related_from"],
        data["floor"],
        _prose_weights(data["prose"]),
    )


def _prose_weights(data: dict[str, Any]) -> ProseWeights:
    coefficients = tuple(data["coefficients"][name] for name in PROSE_FEATURES)
    return ProseWeights(
        coefficients, data["intercept"], data["likely_from"], data["related_from"], data["meaning"]
    )


def order_features(candidate: Candidate, agreement: Agreement = UNKNOWN) -> tuple[float, ...]:
    """Return the values of `ORDER_FEATURES`: coverage from 0 to 1, agreement from -1 to 1."""
    return (
        *(candidate.known_shares[part] for part in PARTS),
        candidate.rare,
        candidate.scarce,
        agreement.signature,
        agreement.family,
        agreement.architecture,
        agreement.backend,
        agreement.version,
        agreement.message,
        agreement.frame,
        agreement.test,
    )


def weighted(features: Sequence[float], weights: Sequence[float]) -> float:
    """Return the weighted sum of the features."""
    total: float = sum(map(mul, weights, features))
    return total


def features_of(
    candidate: Candidate, agreement: Agreement, lead: float, *, is_common: bool
) -> tuple[float, ...]:
    """Return the values of `FEATURES`.

    Args:
        lead: ranking score minus that of the second candidate; 0 for all but the first.
        is_common: the root cause's message is empty or shared by unrelated failures.
    """
    specific, common = (0.0, 1.0) if is_common else (1.0, 0.0)
    cause = candidate.shares["cause"]
    length = min(math.log1p(candidate.scores["cause"]) / math.log(LONG_NATS), LENGTH_MAX)
    return (
        specific,
        specific * cause,
        specific * _excess(candidate.known_shares["cause"]) * min(1.0, cause / FULL_CREDIT_FROM) * length,
        common * candidate.known_shares["frames"],
        common * candidate.share,
        _excess(candidate.share),
        candidate.rare,
        math.log1p(LEAD_SCALE * max(lead, 0.0)),
        agreement.signature,
        specific * (1 - candidate.names),
        max(0.0, -agreement.test),
    )


def _excess(share: float) -> float:
    """Rescale coverage above `HIGH_COVERAGE` to 0 to 1."""
    return max(0.0, share - HIGH_COVERAGE) / (1 - HIGH_COVERAGE)


def order_candidates(candidates: Iterable[Candidate], weights: RankWeights | None = None) -> list[Candidate]:
    """Sort candidates by ranking score without facts, best first, the newest first among equals."""
    used = weights or load_weights()
    newest = sorted(candidates, key=lambda item: (item.key[0], -item.key[1]))
    return sorted(newest, key=lambda item: -weighted(order_features(item), used.order))


def rank_candidates(
    candidates: Iterable[Candidate],
    agreements: Mapping[Key, Agreement],
    asked: LogQuery,
    weights: RankWeights | None = None,
) -> list[Scored]:
    """Rank candidates, best first, with probability and band; probabilities never increase down the list.

    Args:
        agreements: of the first `REFINED` candidates in the order of `order_candidates`; may be incomplete.
        asked: the query built from the log.
    """
    used = weights or load_weights()
    ordered = order_candidates(candidates, used)
    is_usage = asked.is_refused and sum(map(_contains_message, ordered)) > REFUSAL_HOLDERS_MAX
    first, rest = ordered[:REFINED], ordered[REFINED:]
    sums = {
        item.key: weighted(order_features(item, agreements.get(item.key, UNKNOWN)), used.order)
        for item in first
    }
    first.sort(key=lambda item: -sums[item.key])
    top = [sums[item.key] for item in first[:2]]
    lead = top[0] - sum(top[1:]) if top else 0.0
    if first:  # a full database would hold close competitors, too
        lead /= math.sqrt(1 + first[0].crowd)
    scored: list[Scored] = []
    ceiling = 1.0
    for candidate in (*first, *rest):
        agreement = agreements.get(candidate.key, UNKNOWN)
        features = features_of(candidate, agreement, 0.0 if scored else lead, is_common=asked.is_common)
        chance = min(ceiling, _logistic(features, used.coefficients, used.intercept))
        if is_usage or is_weak(candidate, agreement, asked):
            chance = min(chance, used.likely_from - CHANCE_STEP)
        scored.append(Scored(candidate, chance, band_of(chance, used)))
        ceiling = chance
    return scored


def is_weak(candidate: Candidate, agreement: Agreement, asked: LogQuery) -> bool:
    """True if the evidence for a candidate is too weak for `likely`, whatever its probability.

    Weak are: a different name where the name matters; a common message without most of the rest of the log
    (without any message: nearly all of the log); a refused request unless the issue is about the refusal;
    less than half of the message; and a message that the issue contains without further corroboration.
    """
    if agreement.names < 0 or (asked.is_named and candidate.names < 1):
        return True
    if asked.is_common:
        beside = sum(candidate.scores[part] for part in ("chain", "frames", "near", "context"))
        least = FULL_COVERAGE if asked.is_empty else HIGH_COVERAGE
        return candidate.share < least or beside < OTHER_NATS_MIN
    if asked.is_refused:
        about = max(agreement.message, agreement.signature, candidate.shares["title"])
        return not _contains_message(candidate) or about < TOPIC_FROM
    if candidate.shares["cause"] < CAUSE_COVERAGE_MIN:
        return True
    return agreement.message <= 0 and agreement.signature <= 0 and not _is_corroborated(candidate)


def _contains_message(candidate: Candidate) -> bool:
    return candidate.shares["cause"] >= FULL_COVERAGE


def _is_corroborated(candidate: Candidate) -> bool:
    """True if the message is long, or if title, code, frames or most of the log match, too."""
    beside = (candidate.share, *(candidate.shares[part] for part in ("title", "near", "frames")))
    return candidate.scores["cause"] >= EVIDENCE_NATS or max(beside) >= CORROBORATED_FROM


def rank_prose(candidates: Sequence[Candidate], weights: RankWeights | None = None) -> list[Scored]:
    """Rank candidates for a question in words; none is ever `same`."""
    used = (weights or load_weights()).prose
    ranked = sorted(candidates, key=lambda item: (-sum(item.scores.values()), item.key))
    scored: list[Scored] = []
    ceiling = 1.0
    for position, candidate in enumerate(ranked):
        chance = min(ceiling, _logistic(prose_features(ranked, position), used.coefficients, used.intercept))
        scored.append(Scored(candidate, chance, "likely" if chance >= used.likely_from else "related"))
        ceiling = chance
    return scored


def prose_features(ranked: Sequence[Candidate], position: int) -> tuple[float, ...]:
    """Return the values of `PROSE_FEATURES` for the candidate at a position of the ranking."""
    mine, best = _word_score(ranked[position]), _word_score(ranked[0])
    behind = _word_score(ranked[position + 1]) if position + 1 < len(ranked) else 0.0
    share = ranked[position].shares.get("title", 0.0)
    return math.log1p(mine), share, (mine - behind) / best if best else 0.0


def _word_score(candidate: Candidate) -> float:
    """Return a candidate's score without the bonus for semantic similarity."""
    return sum(value for name, value in candidate.scores.items() if name != MEANING)


def _logistic(features: Sequence[float], coefficients: Sequence[float], intercept: float) -> float:
    value = intercept + weighted(features, coefficients)
    return 1 / (1 + math.exp(-max(-40.0, min(40.0, value))))


def band_of(probability: float, weights: RankWeights) -> Band:
    """Return the band of a probability."""
    if probability >= weights.same_from:
        return "same"
    return "likely" if probability >= weights.likely_from else "related"
