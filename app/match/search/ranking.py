"""How likely two failures are the same: a candidate's features, a probability, a band.

In: candidates with their shares of the query, and how far the facts of the first agree with the log's. Out:
`Scored` candidates, best first. The weights are data (`weights.json`), learned by `app.train.log_ranking`
from
labelled logs and written with the date and the figures of the fit; nothing is fitted here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal

from app.match.search.agreement import UNKNOWN, Agreement
from app.match.search.log_search import Candidate
from app.match.search.terms import CHANNELS, ERROR, FRAME, HEADING, TEXT
from app.store.derived.search_index import Key

Band = Literal["same", "likely", "related"]

ORDER_FEATURES = (
    "text_score",
    "text_share",
    "error_score",
    "error_share",
    "frame_score",
    "frame_share",
    "signature_score",
    "signature_share",
    "rare_words",
    "scarce_words",
)
"""What puts candidates in order: for each channel how much is shared, and how much of the query that is; and
the shares of words that few issues hold."""

AGREEMENT_FEATURES = ("same_signature", "same_family", "same_architecture", "same_backend", "near_version")
"""What the facts of the log and of an issue say beside the words."""

REFINE_FEATURES = (*ORDER_FEATURES, *AGREEMENT_FEATURES)
"""What puts the first `REFINED` in order."""

REFINED = 10
"""So many of the first candidates are compared by their facts too, which must be read for that."""

FEATURES = (
    "frame_share",
    "frames_nearly_all",
    "error_and_frames",
    "text_and_frames",
    "rare_words",
    "scarce_words",
    "lead",
    "same_signature",
    "same_family",
    "same_architecture",
    "same_backend",
)
"""What the chance is told by. `frames_nearly_all`: the frame share above `NEARLY_ALL`; `error_and_frames`,
`text_and_frames`: products of two shares; `lead`: how far the first is ahead of the next. Few, since more of
them fit the logs that were learned from better and all others worse."""

NEARLY_ALL = 0.8
LEAD_SCALE = 4.0
"""A lead counts as ln(1 + `LEAD_SCALE` * lead): the first steps tell the most."""

PROSE_FEATURES = ("score", "heading_share", "lead")
"""The same for a question without a log: all that is shared, the share of the question's heading that is, and
how far one is ahead of the next, as a share of the first one's score."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate with its chance (0 to 1) of being the same failure, and the band that chance is in."""

    candidate: Candidate
    probability: float
    band: Band


@dataclass(frozen=True, slots=True)
class ProseWeights:
    """The chance of a match for a question in words: a logistic curve over `PROSE_FEATURES`."""

    coefficients: tuple[float, ...]
    intercept: float
    likely_from: float
    related_from: float


@dataclass(frozen=True, slots=True)
class RankWeights:
    """Learned weights: a linear order, a finer one for the first, then a logistic curve over `FEATURES`."""

    order: tuple[float, ...]
    refine: tuple[float, ...]
    coefficients: tuple[float, ...]
    intercept: float
    same_from: float
    likely_from: float
    related_from: float
    floor: float
    prose: ProseWeights


@lru_cache(maxsize=1)
def load_weights() -> RankWeights:
    """The weights this version was measured with."""
    data: dict[str, Any] = json.loads((files(__package__) / "weights.json").read_text(encoding="utf-8"))
    return RankWeights(
        tuple(data["order"][name] for name in ORDER_FEATURES),
        tuple(data["refine"][name] for name in REFINE_FEATURES),
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
    return ProseWeights(coefficients, data["intercept"], data["likely_from"], data["related_from"])


def order_features(candidate: Candidate) -> tuple[float, ...]:
    """The features in the order of `ORDER_FEATURES`; scores as logarithms, shares from 0 to 1."""
    told = tuple(
        value
        for channel in CHANNELS
        for value in (math.log1p(candidate.scores[channel]), candidate.shares[channel])
    )
    return (*told, candidate.rare, candidate.scarce)


def refine_features(candidate: Candidate, agreement: Agreement) -> tuple[float, ...]:
    """The features in the order of `REFINE_FEATURES`."""
    return (
        *order_features(candidate),
        agreement.signature,
        agreement.family,
        agreement.architecture,
        agreement.backend,
        agreement.version,
    )


def weighted(features: Sequence[float], weights: Sequence[float]) -> float:
    """The linear sum by which candidates are put in order."""
    return sum(weight * value for weight, value in zip(weights, features, strict=True))


def features_of(candidate: Candidate, agreement: Agreement, lead: float) -> tuple[float, ...]:
    """The features in the order of `FEATURES`; `lead`: its linear sum less that of the next."""
    text, error, frame = (candidate.shares[channel] for channel in (TEXT, ERROR, FRAME))
    return (
        frame,
        max(0.0, frame - NEARLY_ALL),
        error * frame,
        text * frame,
        candidate.rare,
        candidate.scarce,
        math.log1p(LEAD_SCALE * max(lead, 0.0)),
        agreement.signature,
        agreement.family,
        agreement.architecture,
        agreement.backend,
    )


def order_candidates(candidates: Iterable[Candidate], weights: RankWeights | None = None) -> list[Candidate]:
    """Candidates by what they share of the query, best first; equals by their keys."""
    used = weights or load_weights()
    return sorted(candidates, key=lambda item: (-weighted(order_features(item), used.order), item.key))


def rank_candidates(
    candidates: Iterable[Candidate],
    agreements: Mapping[Key, Agreement],
    weights: RankWeights | None = None,
) -> list[Scored]:
    """Candidates as matches, best first, with probability and band; a lower one is never more probable.

    Args:
        agreements: of the first `REFINED` in the order of `order_candidates`; one that is missing is unknown.
    """
    used = weights or load_weights()
    ordered = order_candidates(candidates, used)
    sums = [
        weighted(refine_features(item, agreements.get(item.key, UNKNOWN)), used.refine)
        for item in ordered[:REFINED]
    ]
    places = sorted(range(len(sums)), key=lambda at: -sums[at])
    ranked = [ordered[at] for at in places] + ordered[REFINED:]
    lead = sums[places[0]] - sums[places[1]] if len(places) > 1 else sum(sums)
    if ranked:  # of a small base those are missing who would be near as well
        lead /= math.sqrt(1 + ranked[0].crowd)
    scored: list[Scored] = []
    ceiling = 1.0
    for candidate in ranked:
        features = features_of(candidate, agreements.get(candidate.key, UNKNOWN), 0.0 if scored else lead)
        chance = min(ceiling, _logistic(features, used.coefficients, used.intercept))
        scored.append(Scored(candidate, chance, band_of(chance, used)))
        ceiling = chance
    return scored


def rank_prose(candidates: Sequence[Candidate], weights: RankWeights | None = None) -> list[Scored]:
    """Candidates for a question in words, by what they share of it; none is ever `same`."""
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
    """The features of a ranked candidate in the order of `PROSE_FEATURES`."""
    mine, best = sum(ranked[position].scores.values()), sum(ranked[0].scores.values())
    behind = sum(ranked[position + 1].scores.values()) if position + 1 < len(ranked) else 0.0
    share = ranked[position].shares.get(HEADING, 0.0)
    return math.log1p(mine), share, (mine - behind) / best if best else 0.0


def _logistic(features: Sequence[float], coefficients: Sequence[float], intercept: float) -> float:
    value = intercept + weighted(features, coefficients)
    return 1 / (1 + math.exp(-max(-40.0, min(40.0, value))))


def band_of(probability: float, weights: RankWeights) -> Band:
    """Which band a probability is in."""
    if probability >= weights.same_from:
        return "same"
    return "likely" if probability >= weights.likely_from else "related"
