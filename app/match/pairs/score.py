"""Score a pair of issues: features, symmetric probability of the same failure, and band.

The weights (`pair_weights.json`) were learned by `app.train.pair_score` from judged pairs.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np

from app.match.pairs.features import (
    BAGS,
    MESSAGE,
    NAMES,
    TITLE,
    TITLE_WORDS,
    WORDS,
    Bags,
    PackedFeatures,
    PairFeatures,
)
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
CLAIM_LEAST = 0.7
"""Similarity of specific titles or messages from which on two issues name the same failure."""
SCORE_STEP = 0.0001
"""The resolution of scores."""
_WORDS_AT = PAIR_FEATURES.index("words")
_MESSAGES, _OF_TEXTS = 1, [0, 2, 3, 4]
"""Columns of `text_features`: similarity of messages, and all others."""
EQUAL_FROM = 0.995
"""Similarity that is shown as "the same"."""
LOG_FROM = 0.3
"""Similarity of messages from which on a pair counts as similar in its logs."""

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


def score_pairs(one: PairFeatures, others: Sequence[PairFeatures]) -> list[PairScore]:
    """Score one issue against each of the others, in their order.

    Without a shared specific error, title or frame, a pair is at most `related`.
    """
    return _scores(one, others, text_features(one.bags, [other.bags for other in others]))


def score_alike(one: PairFeatures, others: Sequence[PackedFeatures]) -> list[tuple[int, PairScore]]:
    """Score only the pairs that can reach a band; each score follows its index in `others`."""
    texts = text_features(one.bags, [other.bags for other in others])
    places: list[int] = np.flatnonzero(texts[:, _OF_TEXTS].sum(axis=1) >= SHARED_LEAST).tolist()
    alike = [others[at].unpack() for at in places]
    return list(zip(places, _scores(one, alike, texts[places]), strict=True))


def _scores(one: PairFeatures, others: Sequence[PairFeatures], texts: np.ndarray) -> list[PairScore]:
    table = _complete_features(one, others, texts)
    most = round(load_pair_weights().likely_from - SCORE_STEP, 4)
    chances = [
        chance if chance <= most or share_failure(one, other) else most
        for chance, other in zip(chances_of(table), others, strict=True)
    ]
    messages = texts[:, _MESSAGES].tolist()
    shared = texts[:, _OF_TEXTS].sum(axis=1).tolist()
    rows = zip(chances, table.tolist(), messages, shared, others, strict=True)
    return [
        PairScore(
            chance,
            band_of_score(chance) if share >= SHARED_LEAST else None,
            "prose" if message < LOG_FROM else "both" if row[_WORDS_AT] >= LOG_FROM else "log",
            row,
            (one, other),
        )
        for chance, row, message, share, other in rows
    ]


def share_failure(one: PairFeatures, two: PairFeatures) -> bool:
    """True if both name the same failure: by message, by title, or by class and frame of the error.

    False if their identifiers are disjoint, or the vLLM features in their titles.
    """
    if _are_disjoint(one.subjects, two.subjects) or _are_disjoint(one.title_conditions, two.title_conditions):
        return False
    both = one.specific & two.specific
    crossed = ((TITLE, MESSAGE, two.specific), (MESSAGE, TITLE, one.specific))
    bags = [(name, name) for name in both] + [(a, b) for a, b, specific in crossed if MESSAGE in specific]
    alike = any(overlap(one, two, *pair) >= CLAIM_LEAST for pair in bags)
    return alike or not one.places.isdisjoint(two.places)


def chances_of(table: np.ndarray) -> list[float]:
    """Return the score of each pair from its row of features."""
    weights = load_pair_weights()
    values = np.clip((table * np.array(weights.coefficients)).sum(axis=1) + weights.intercept, -40, 40)
    found: list[float] = np.round(1 / (1 + np.exp(-values)), 4).tolist()
    return found


def pair_features(one: PairFeatures, others: Sequence[PairFeatures]) -> np.ndarray:
    """Return one row for each of the others, in the order of `PAIR_FEATURES`."""
    return _complete_features(one, others, text_features(one.bags, [other.bags for other in others]))


def _complete_features(one: PairFeatures, others: Sequence[PairFeatures], texts: np.ndarray) -> np.ndarray:
    """Complete text features with those of dates and conditions, in the order of `PAIR_FEATURES`."""
    if not others:
        return np.zeros((0, len(PAIR_FEATURES)))
    claim, _, words, names, title_in_text = texts.T
    days = np.array([abs(one.day - two.day) if one.day and two.day else UNKNOWN_DAYS for two in others])
    commonness = np.array([max(one.commonness, other.commonness) for other in others])
    return np.column_stack(
        [
            claim,
            claim * np.exp(-days / NEAR_DAYS),
            claim * np.maximum(0, commonness - COMMON_FROM) * np.minimum(1, days / FAR_DAYS),
            words,
            names,
            title_in_text,
            np.log1p(days),
            np.array([_set_features(one, other) for other in others]),
        ]
    ).round(9)


def text_features(one: Bags, others: Sequence[Bags]) -> np.ndarray:
    """Return the text similarities of one issue with each of the others, one row each.

    Columns: `claim`; similarity of the messages alone; `words`, `names` and `title_in_text`.
    """
    count, width = len(others), len(BAGS)
    if not count:
        return np.zeros((0, 5))
    ids = np.concatenate([other.ids for other in others])
    weights = np.concatenate([other.weights for other in others])
    starts = np.cumsum([0, *(len(other.ids) for other in others[:-1])])
    ends = (np.array([other.ends for other in others]) + starts[:, None]).ravel()
    # Few terms are shared: the low 16 bits of the hashes rule out most of the others cheaply.
    is_met = np.zeros(1 << 16, dtype=bool)
    is_met[one.ids.astype(np.uint16)] = True
    hits = np.flatnonzero(is_met[ids.astype(np.uint16)])
    cells = np.searchsorted(ends, hits, side="right")
    of, bags = cells // width, cells % width

    def shared(mine: str, theirs: str, *, multiply: bool = True, weigh: bool = True) -> np.ndarray:
        """Sum the weights of shared terms for each of the others, optionally times its own weights."""
        own = one[mine]
        if not len(own.ids):
            return np.zeros(count)
        at = bags == BAGS.index(theirs)
        found = ids[hits[at]]
        places = np.minimum(np.searchsorted(own.ids, found), len(own.ids) - 1)
        same = own.ids[places] == found
        gains = own.weights[places[same]].astype(float) if weigh else np.ones(int(same.sum()))
        if multiply:
            gains *= weights[hits[at]][same]
        return np.bincount(of[at][same], weights=gains, minlength=count)

    messages = shared(MESSAGE, MESSAGE)
    claim = np.max([shared(TITLE, TITLE), messages, shared(TITLE, MESSAGE), shared(MESSAGE, TITLE)], axis=0)
    both = shared(NAMES, NAMES, multiply=False)
    sums = np.append(0.0, np.cumsum(weights, dtype=float))
    name_ends = ends[BAGS.index(NAMES) :: width]
    name_starts = ends[BAGS.index(NAMES) - 1 :: width]
    either = float(one[NAMES].weights.sum(dtype=float)) + sums[name_ends] - sums[name_starts] - both
    names = np.divide(both, either, out=np.zeros(count), where=(either > 1e-9) & (both > 0))
    in_theirs = shared(TITLE_WORDS, WORDS, multiply=False)
    in_mine = shared(WORDS, TITLE_WORDS, weigh=False)
    table: np.ndarray = np.column_stack(
        [claim, messages, shared(WORDS, WORDS), names, (in_theirs + in_mine) / 2]
    ).round(9)
    return table


def overlap(one: PairFeatures, two: PairFeatures, mine: str, theirs: str) -> float:
    """Return the cosine similarity of a bag of one issue and a bag of the other."""
    own, other = one.bags[mine], two.bags[theirs]
    _, here, there = np.intersect1d(own.ids, other.ids, assume_unique=True, return_indices=True)
    return round(float(own.weights[here].astype(float) @ other.weights[there].astype(float)), 6)


def _set_features(one: PairFeatures, two: PairFeatures) -> tuple[float, ...]:
    unmet = len(one.title_conditions - two.conditions) + len(two.title_conditions - one.conditions)
    return (
        _jaccard(one.conditions, two.conditions),
        _jaccard(one.title_conditions, two.title_conditions),
        float(min(MAX_UNMET, unmet)),
        _jaccard(one.backends, two.backends),
        _are_disjoint(one.families, two.families),
        _are_disjoint(one.platforms, two.platforms),
        _are_disjoint(one.types, two.types),
    )


def _jaccard(one: frozenset[str], two: frozenset[str]) -> float:
    return len(one & two) / len(one | two) if one | two else 0.0


def _are_disjoint(one: frozenset[str], two: frozenset[str]) -> float:
    return float(bool(one and two and not one & two))


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
