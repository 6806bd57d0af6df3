"""How likely two failures are the same: a candidate's features, a probability, a band.

In: candidates with their shares of the query. Out: `Scored` candidates, best first. The weights are
data (`weights.json`), learned by `app.train.likeness` from labelled logs and written with the date
and the figures of the fit; nothing is fitted here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal

from app.match.candidates import Candidate
from app.match.terms import CHANNELS, ERROR, FRAME, TEXT

Band = Literal["same", "likely", "related"]

RANK_FEATURES = (
    "text_score", "text_share", "error_score", "error_share", "frame_score", "frame_share",
    "signature_score", "signature_share",
)  # fmt: skip
"""What puts candidates in order: for each channel how much is shared, and how much of the query that is."""

FEATURES = (*RANK_FEATURES, "lead", "weakest_channel")
"""What the chance is told by. `lead`: how far the first is ahead of the next; `weakest_channel`: a frame
or error that is shared in part only."""

PROSE_FEATURES = ("text_score", "text_share", "lead")
"""The same for a question without a log; here `lead` is a share of the first one's score."""


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
class Weights:
    """Learned weights: a linear order, then a logistic curve over all features."""

    rank: tuple[float, ...]
    coefficients: tuple[float, ...]
    intercept: float
    same_from: float
    likely_from: float
    related_from: float
    floor: float
    prose: ProseWeights


@lru_cache(maxsize=1)
def load_weights() -> Weights:
    """The weights this version was measured with."""
    data: dict[str, Any] = json.loads((files(__package__) / "weights.json").read_text(encoding="utf-8"))
    return Weights(
        tuple(data["rank"][name] for name in RANK_FEATURES),
        tuple(data["coefficients"][name] for name in FEATURES),
        data["intercept"], data["same_from"], data["likely_from"], data["related_from"],
        data["floor"], _prose_weights(data["prose"]),
    )  # fmt: skip


def _prose_weights(data: dict[str, Any]) -> ProseWeights:
    coefficients = tuple(data["coefficients"][name] for name in PROSE_FEATURES)
    return ProseWeights(coefficients, data["intercept"], data["likely_from"], data["related_from"])


def rank_features(candidate: Candidate) -> tuple[float, ...]:
    """The features in the order of `RANK_FEATURES`; scores as logarithms, shares from 0 to 1."""
    return tuple(
        value
        for channel in CHANNELS
        for value in (math.log1p(candidate.scores[channel]), candidate.shares[channel])
    )


def rank_score(candidate: Candidate, rank: Sequence[float]) -> float:
    """The linear sum by which candidates are put in order."""
    return sum(weight * value for weight, value in zip(rank, rank_features(candidate), strict=True))


def features_of(candidate: Candidate, lead: float) -> tuple[float, ...]:
    """The features in the order of `FEATURES`; `lead` is the rank score over the next one's."""
    told = [candidate.shares[channel] for channel in (ERROR, FRAME) if candidate.scores[channel] > 0]
    return (*rank_features(candidate), max(lead, 0.0), min(told, default=0.0))


def rank_candidates(candidates: Sequence[Candidate], weights: Weights | None = None) -> list[Scored]:
    """Candidates as matches, best first, with probability and band; a lower one is never more probable."""
    used = weights or load_weights()
    ranked = sorted(((rank_score(item, used.rank), item) for item in candidates), key=lambda one: -one[0])
    scored: list[Scored] = []
    ceiling = 1.0
    behind = ranked[1][0] if len(ranked) > 1 else 0.0
    for position, (score, candidate) in enumerate(ranked):
        lead = score - behind if position == 0 else 0.0
        chance = min(ceiling, _probability(features_of(candidate, lead), used))
        scored.append(Scored(candidate, chance, band_of(chance, used)))
        ceiling = chance
    return scored


def rank_prose(candidates: Sequence[Candidate], weights: Weights | None = None) -> list[Scored]:
    """Candidates for a question in words, by what they share of its text; none is ever `same`."""
    used = (weights or load_weights()).prose
    ranked = sorted(candidates, key=lambda item: -item.scores[TEXT])
    scored: list[Scored] = []
    ceiling = 1.0
    for position, candidate in enumerate(ranked):
        chance = min(ceiling, _logistic(prose_features(ranked, position), used.coefficients, used.intercept))
        scored.append(Scored(candidate, chance, "likely" if chance >= used.likely_from else "related"))
        ceiling = chance
    return scored


def prose_features(ranked: Sequence[Candidate], position: int) -> tuple[float, ...]:
    """The features of a ranked candidate in the order of `PROSE_FEATURES`."""
    mine = ranked[position].scores[TEXT]
    behind = ranked[position + 1].scores[TEXT] if position + 1 < len(ranked) else 0.0
    best = ranked[0].scores[TEXT]
    return math.log1p(mine), ranked[position].shares[TEXT], (mine - behind) / best if best else 0.0


def _probability(features: Sequence[float], weights: Weights) -> float:
    return _logistic(features, weights.coefficients, weights.intercept)


def _logistic(features: Sequence[float], coefficients: Sequence[float], intercept: float) -> float:
    value = intercept + sum(one * feature for one, feature in zip(coefficients, features, strict=True))
    return 1 / (1 + math.exp(-max(-40.0, min(40.0, value))))


def band_of(probability: float, weights: Weights) -> Band:
    """Which band a probability is in."""
    if probability >= weights.same_from:
        return "same"
    return "likely" if probability >= weights.likely_from else "related"
