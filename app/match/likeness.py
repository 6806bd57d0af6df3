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
from app.match.terms import CHANNELS, ERROR, FRAME, SIGNATURE, TEXT

Band = Literal["same", "likely", "related"]

FEATURES = (
    "error_share", "frame_share", "text_share", "signature_share", "error_score", "frame_score",
    "text_score", "signature_score", "lead", "weakest_channel",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate with its chance (0 to 1) of being the same failure, and the band that chance is in."""

    candidate: Candidate
    probability: float
    band: Band


@dataclass(frozen=True, slots=True)
class Weights:
    """Learned weights: a linear ranking, then a logistic curve over all features."""

    rank: tuple[float, ...]
    coefficients: tuple[float, ...]
    intercept: float
    same_from: float
    likely_from: float
    related_from: float
    floor: float


@lru_cache(maxsize=1)
def load_weights() -> Weights:
    """The weights this version was measured with."""
    data: dict[str, Any] = json.loads((files(__package__) / "weights.json").read_text(encoding="utf-8"))
    return Weights(
        tuple(data["rank"][str(channel)] for channel in CHANNELS),
        tuple(data["coefficients"][name] for name in FEATURES),
        data["intercept"], data["same_from"], data["likely_from"], data["related_from"],
        data["floor"],
    )  # fmt: skip


def rank_score(candidate: Candidate, rank: Sequence[float]) -> float:
    """The linear sum by which candidates are put in order."""
    return sum(
        weight * candidate.scores[channel] for channel, weight in zip(CHANNELS, rank, strict=True)
    )


def features_of(candidate: Candidate, lead: float) -> tuple[float, ...]:
    """The features in the order of `FEATURES`; `lead` is the score over the next one's, in nats."""
    shares, scores = candidate.shares, candidate.scores
    told = [shares[channel] for channel in (ERROR, FRAME) if scores[channel] > 0]
    return (
        shares[ERROR], shares[FRAME], shares[TEXT], shares[SIGNATURE],
        math.log1p(scores[ERROR]), math.log1p(scores[FRAME]), math.log1p(scores[TEXT]),
        math.log1p(scores[SIGNATURE]), math.log1p(max(lead, 0.0)), min(told, default=0.0),
    )  # fmt: skip


def rank_candidates(candidates: Sequence[Candidate], weights: Weights | None = None) -> list[Scored]:
    """Candidates as matches, best first, with probability and band."""
    used = weights or load_weights()
    order = sorted(candidates, key=lambda item: -rank_score(item, used.rank))
    scored = []
    for position, candidate in enumerate(order):
        behind = rank_score(order[position + 1], used.rank) if position + 1 < len(order) else 0.0
        lead = rank_score(candidate, used.rank) - behind if position == 0 else 0.0
        chance = _probability(features_of(candidate, lead), used)
        scored.append(Scored(candidate, chance, band_of(chance, used)))
    return sorted(scored, key=lambda item: -item.probability)


def _probability(features: Sequence[float], weights: Weights) -> float:
    value = weights.intercept + sum(
        coefficient * feature for coefficient, feature in zip(weights.coefficients, features, strict=True)
    )
    return 1 / (1 + math.exp(-max(-40.0, min(40.0, value))))


def band_of(probability: float, weights: Weights) -> Band:
    """Which band a probability is in."""
    if probability >= weights.same_from:
        return "same"
    return "likely" if probability >= weights.likely_from else "related"
