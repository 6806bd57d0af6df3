"""Score a pair of issues: features, symmetric probability of the same failure, and band.

The weights (`pair_weights.json`) were learned by `app.train.pair_score` from judged pairs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from operator import mul
from typing import Any, Literal

from app.match.pairs.features import MESSAGE, NAMES, TITLE, TITLE_WORDS, WORDS, Bag, PairFeatures
from app.match.pairs.one_failure import are_disjoint, dot, is_one_failure
from app.match.search.ranking import Band

PAIR_FEATURES = (
    "claim",
    "claim_near",
    "claim_common_far",
    "words",
    "names",
    "title_in_text",
    "era",
    "conditions",
    "title_conditions",
    "title_conditions_unmet",
    "backends",
    "other_family",
    "other_platform",
    "other_type",
)
"""claim: best similarity of title or error message; `_near`: decays with the days between; `_common_far`:
common message, months apart. words, names: similarity of the whole texts. era: ln(1 + days between them)."""

AGAINST = frozenset(
    {"claim_common_far", "era", "title_conditions_unmet", "other_family", "other_platform", "other_type"}
)
"""Features with weights constrained to be <= 0; the weights of all others are constrained to be >= 0."""

NEAR_DAYS = 45
FAR_DAYS = 365
UNKNOWN_DAYS = 90
"""Days assumed between two issues if one has no date."""
COMMON_FROM = 2.0
"""Commonness of a message (ln(1 + number of issues)) from which on its similarity counts less."""
MAX_UNMET = 3
SHARED_LEAST = 0.4
"""Minimum sum of the text similarities for any band: the same week and vLLM feature are not enough."""
SCORE_STEP = 0.0001
"""The resolution of scores."""
EQUAL_FROM = 0.995
"""Similarity that is shown as "the same"."""
LOG_FROM = 0.3
"""Similarity of messages from which on a pair counts as similar in its logs."""

RULES = "4"
"""Changed with the rules of this package and of `generic.toml`, together with the reader's `RULES_VERSION`:
then stored issues are read again, and their links made again."""

Channel = Literal["log", "prose", "both"]


@dataclass(frozen=True, slots=True)
class PairScore:
    """Score, band and explanation of a pair; `values` are in the order of `PAIR_FEATURES`."""

    score: float
    band: Band | None
    channel: Channel
    values: Sequence[float]
    pair: tuple[PairFeatures, PairFeatures] = field(compare=False, repr=False)

    @property
    def reason(self) -> str:
        """The evidence for and against the pair, in words."""
        return _reason(dict(zip(PAIR_FEATURES, self.values, strict=True)), *self.pair)


@dataclass(frozen=True, slots=True)
class PairWeights:
    """Logistic regression over `PAIR_FEATURES`, and the thresholds of the bands."""

    coefficients: tuple[float, ...]
    intercept: float
    same_from: float
    likely_from: float
    related_from: float
    version: str


@lru_cache(maxsize=1)
def load_pair_weights() -> PairWeights:
    """Load the packaged weights."""
    data: dict[str, Any] = json.loads((files(__package__) / "pair_weights.json").read_text(encoding="utf-8"))
    return PairWeights(
        tuple(data["coefficients"][name] for name in PAIR_FEATURES),
        data["intercept"],
        data["same_from"],
        data["likely_from"],
        data["related_from"],
        data["version"],
    )


def links_version() -> str:
    """Return the version of weights and rules; links made under another one are made again."""
    return f"{load_pair_weights().version}.{RULES}"


def score_pair(one: PairFeatures, two: PairFeatures) -> PairScore:
    """Score two issues; those that are not one failure by `one_failure.py` are at most `related`."""
    texts = compare_texts(one, two)
    values = _pair_features(one, two, texts)
    chance = chance_of(values)
    most = round(load_pair_weights().likely_from - SCORE_STEP, 4)
    if chance > most and not is_one_failure(one, two):
        chance = most
    channel: Channel = "prose" if texts.messages < LOG_FROM else "both" if texts.words >= LOG_FROM else "log"
    band = band_of_score(chance) if texts.shared >= SHARED_LEAST else None
    return PairScore(chance, band, channel, values, (one, two))


def are_alike(one: PairFeatures, two: PairFeatures) -> bool:
    """True if two issues have enough text in common to reach a band."""
    return compare_texts(one, two).shared >= SHARED_LEAST


def chance_of(values: Sequence[float]) -> float:
    """Return the score of a pair with these values of `PAIR_FEATURES`."""
    weights = load_pair_weights()
    nats = weights.intercept + sum(map(mul, weights.coefficients, values))
    return round(1 / (1 + math.exp(-max(-40.0, min(40.0, nats)))), 4)


def pair_features(one: PairFeatures, two: PairFeatures) -> tuple[float, ...]:
    """Return the values of `PAIR_FEATURES`."""
    return _pair_features(one, two, compare_texts(one, two))


def _pair_features(one: PairFeatures, two: PairFeatures, texts: TextSimilarity) -> tuple[float, ...]:
    days = abs(one.day - two.day) if one.day and two.day else UNKNOWN_DAYS
    commonness = max(one.commonness, two.commonness)
    values = (
        texts.claim,
        texts.claim * math.exp(-days / NEAR_DAYS),
        texts.claim * max(0.0, commonness - COMMON_FROM) * min(1.0, days / FAR_DAYS),
        texts.words,
        texts.names,
        texts.title_in_text,
        math.log1p(days),
        *_set_features(one, two),
    )
    return tuple(round(value, 9) for value in values)


@dataclass(frozen=True, slots=True)
class TextSimilarity:
    """Similarity of the texts of two issues, from 0 to 1; `claim` is the best of titles and messages."""

    claim: float
    messages: float
    words: float
    names: float
    title_in_text: float

    @property
    def shared(self) -> float:
        """The sum of the similarities; `claim` includes that of the messages."""
        return self.claim + self.words + self.names + self.title_in_text


def compare_texts(one: PairFeatures, two: PairFeatures) -> TextSimilarity:
    """Compare titles, messages, words and names of two issues."""
    mine, theirs = one.bags, two.bags
    pairs = ((MESSAGE, MESSAGE), (TITLE, TITLE), (TITLE, MESSAGE), (MESSAGE, TITLE))
    messages, *claims = (dot(mine[a], theirs[b]) for a, b in pairs)
    names = _weight_of(mine[NAMES], theirs[NAMES])
    all_names = sum(mine[NAMES].values()) + sum(theirs[NAMES].values()) - names
    titles = _weight_of(mine[TITLE_WORDS], theirs[WORDS]) + _weight_of(theirs[TITLE_WORDS], mine[WORDS])
    found = (max(messages, *claims), messages, dot(mine[WORDS], theirs[WORDS]), names / (all_names or 1.0))
    return TextSimilarity(*(round(value, 9) for value in (*found, titles / 2)))


def _weight_of(one: Bag, two: Bag) -> float:
    """Return the weight of the terms of `one` that `two` contains."""
    return sum(one[key] for key in one.keys() & two.keys())


def _set_features(one: PairFeatures, two: PairFeatures) -> tuple[float, ...]:
    unmet = len(one.title_conditions - two.conditions) + len(two.title_conditions - one.conditions)
    return (
        _jaccard(one.conditions, two.conditions),
        _jaccard(one.title_conditions, two.title_conditions),
        float(min(MAX_UNMET, unmet)),
        _jaccard(one.backends, two.backends),
        float(are_disjoint(one.families, two.families)),
        float(are_disjoint(one.platforms, two.platforms)),
        float(are_disjoint(one.types, two.types)),
    )


def _jaccard(one: frozenset[str], two: frozenset[str]) -> float:
    return len(one & two) / len(one | two) if one | two else 0.0


def band_of_score(chance: float) -> Band | None:
    """Return the band of a score; None below `related`."""
    weights = load_pair_weights()
    if chance >= weights.same_from:
        return "same"
    if chance >= weights.likely_from:
        return "likely"
    return "related" if chance >= weights.related_from else None


def _similarity_text(share: float) -> str:
    return f"alike ({share:.2f})" if share < EQUAL_FROM else "the same"


def _reason(values: Mapping[str, float], one: PairFeatures, two: PairFeatures) -> str:
    shared = [name.partition(".")[2].replace("_", " ") for name in sorted(one.conditions & two.conditions)]
    families = sorted(name.partition(".")[2].replace("_", "-") for name in one.families & two.families)
    parts = [
        f"titles or error messages {_similarity_text(values['claim'])}"
        if values["claim"] >= LOG_FROM
        else "",
        f"texts {_similarity_text(values['words'])}" if values["words"] >= LOG_FROM / 2 else "",
        f"both with {', '.join(shared[:3])}" if shared else "",
        f"both {', '.join(families[:2])}" if families else "",
        f"{round(math.expm1(values['era']))} days apart",
        "other models" if values["other_family"] else "",
        "another platform" if values["other_platform"] else "",
        "another class of error" if values["other_type"] else "",
        "a message that many failures share" if values["claim_common_far"] else "",
    ]
    return "; ".join(part for part in parts if part)
