"""How likely two issues report the same failure: features of a pair, its score, its band.

In: the `View` of an issue and those of others. Out: `PairScore`s. The score is the same whichever of the
two is asked from. The weights are data (`pair_weights.json`, learned by `app.train.pair_score` from judged
pairs); nothing is fitted here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np

from app.match.pairs.features import MESSAGE, NAMES, TITLE, TITLE_WORDS, WORDS, View
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
"""claim: title or error message of one in those of the other; `_near`: in the same weeks; `_common_far`:
a message that many issues tell, months apart. words, names: of the whole texts. era: days between them."""

AGAINST = frozenset(
    {"claim_common_far", "era", "title_conditions_unmet", "other_family", "other_platform", "other_type"}
)
"""Features that never speak for a pair; all others never speak against it."""

NEAR_DAYS = 45
FAR_DAYS = 365
UNKNOWN_DAYS = 90
"""What lies between two issues of which one has no date."""
COMMON_FROM = 2.0
"""From how common a message on (ln of the number of issues) its likeness tells less."""
MAX_UNMET = 3
SHARED_LEAST = 0.4
"""How much messages, texts and names must share, added up, before a pair can be in a band: to be of one week
and one feature is no likeness."""
SHARED_FEATURES = ("claim", "words", "names", "title_in_text")
LOG_FROM = 0.3
"""From which likeness of messages on a pair is said to be alike in its logs."""

Channel = Literal["log", "prose", "both"]


@dataclass(frozen=True, slots=True)
class PairScore:
    """What is said of a pair."""

    score: float
    band: Band | None
    channel: Channel
    reason: str


@dataclass(frozen=True, slots=True)
class PairWeights:
    """A logistic curve over `PAIR_FEATURES`, and where its bands begin; below the last there is none."""

    coefficients: tuple[float, ...]
    intercept: float
    same_from: float
    likely_from: float
    related_from: float
    version: str


@lru_cache(maxsize=1)
def load_pair_weights() -> PairWeights:
    """The weights this version was measured with."""
    data: dict[str, Any] = json.loads((files(__package__) / "pair_weights.json").read_text(encoding="utf-8"))
    return PairWeights(
        tuple(data["coefficients"][name] for name in PAIR_FEATURES),
        data["intercept"],
        data["same_from"],
        data["likely_from"],
        data["related_from"],
        data["version"],
    )


def score_pairs(view: View, others: Sequence[View], weights: PairWeights | None = None) -> list[PairScore]:
    """Each of the others against this view, in their order."""
    used = weights or load_pair_weights()
    table = pair_features(view, others)
    if not len(table):
        return []
    messages = _overlap(view, others, MESSAGE, MESSAGE)
    return [
        PairScore(
            chance,
            band_of_score(chance, used) if _is_alike(row) else None,
            _channel(row, float(message)),
            _reason(row, view, other),
        )
        for chance, row, message, other in zip(_chances(table, used), table, messages, others, strict=True)
    ]


def likest(view: View, others: Sequence[View]) -> list[int]:
    """Places of those among the others that are worth a link."""
    used = load_pair_weights()
    table = pair_features(view, others)
    chances = _chances(table, used)
    return [at for at, chance in enumerate(chances) if band_of_score(chance, used) and _is_alike(table[at])]


def _is_alike(row: np.ndarray) -> bool:
    return bool(sum(row[PAIR_FEATURES.index(name)] for name in SHARED_FEATURES) >= SHARED_LEAST)


def _chances(table: np.ndarray, weights: PairWeights) -> list[float]:
    values = np.clip((table * np.array(weights.coefficients)).sum(axis=1) + weights.intercept, -40, 40)
    chances: list[float] = np.round(1 / (1 + np.exp(-values)), 4).tolist()
    return chances


def pair_features(view: View, others: Sequence[View]) -> np.ndarray:
    """One row for each of the others, in the order of `PAIR_FEATURES`."""
    if not others:
        return np.zeros((0, len(PAIR_FEATURES)))
    titles_messages = [(TITLE, TITLE), (MESSAGE, MESSAGE), (TITLE, MESSAGE), (MESSAGE, TITLE)]
    claim = np.max([_overlap(view, others, mine, theirs) for mine, theirs in titles_messages], axis=0)
    words = _overlap(view, others, WORDS, WORDS)
    days = np.array([_days(view, other) for other in others])
    commonness = np.array([max(view.commonness, other.commonness) for other in others])
    sets = np.array([_of_sets(view, other) for other in others])
    return np.column_stack(
        [
            claim,
            claim * np.exp(-days / NEAR_DAYS),
            claim * np.maximum(0, commonness - COMMON_FROM) * np.minimum(1, days / FAR_DAYS),
            words,
            _names(view, others),
            (_contained(view, others) + _contained_in(view, others)) / 2,
            np.log1p(days),
            sets,
        ]
    ).round(9)


def shared_claims(view: View, others: Sequence[View]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How much of its claims each of the others shares, as cosines.

    Titles with titles, messages with messages, the title of one with the message of the other.
    """
    crossed = (_overlap(view, others, TITLE, MESSAGE), _overlap(view, others, MESSAGE, TITLE))
    titles, messages = _overlap(view, others, TITLE, TITLE), _overlap(view, others, MESSAGE, MESSAGE)
    return titles.round(6), messages.round(6), np.maximum(*crossed).round(6)


def _of_sets(one: View, two: View) -> tuple[float, ...]:
    unmet = len(one.title_conditions - two.conditions) + len(two.title_conditions - one.conditions)
    return (
        _share(one.conditions, two.conditions),
        _share(one.title_conditions, two.title_conditions),
        float(min(MAX_UNMET, unmet)),
        _share(one.backends, two.backends),
        _apart(one.families, two.families),
        _apart(one.platforms, two.platforms),
        _apart(one.types, two.types),
    )


def _share(one: frozenset[str], two: frozenset[str]) -> float:
    return len(one & two) / len(one | two) if one | two else 0.0


def _apart(one: frozenset[str], two: frozenset[str]) -> float:
    return float(bool(one and two and not one & two))


def _days(one: View, two: View) -> float:
    return float(abs(one.day - two.day)) if one.day and two.day else float(UNKNOWN_DAYS)


def _overlap(view: View, others: Sequence[View], mine: str, theirs: str) -> np.ndarray:
    """Sums of the products of weights of shared terms: the cosine, where bags are of unit length."""
    own = view.bags[mine]
    return _sums(others, theirs, own.ids, own.weights, multiply=True)


def _contained(view: View, others: Sequence[View]) -> np.ndarray:
    """How much of this title's words stands in each of the other texts."""
    own = view.bags[TITLE_WORDS]
    return _sums(others, WORDS, own.ids, own.weights, multiply=False)


def _contained_in(view: View, others: Sequence[View]) -> np.ndarray:
    """How much of each of the other titles' words stands in this text."""
    own = view.bags[WORDS]
    return _sums(others, TITLE_WORDS, own.ids, np.ones(len(own.ids)), multiply=True)


def _names(view: View, others: Sequence[View]) -> np.ndarray:
    """The share of the weight of all names that both have."""
    own = view.bags[NAMES]
    shared = _sums(others, NAMES, own.ids, own.weights, multiply=False)
    whole = float(own.weights.sum(dtype=float)) + np.array(
        [float(other.bags[NAMES].weights.sum(dtype=float)) for other in others]
    )
    share: np.ndarray = np.divide(shared, whole - shared, out=np.zeros(len(others)), where=whole > shared)
    return share


def _sums(
    others: Sequence[View], name: str, ids: np.ndarray, weights: np.ndarray, *, multiply: bool
) -> np.ndarray:
    """For each of the others: the weights of the terms it shares, times its own where asked; in one pass."""
    bags = [other.bags[name] for other in others]
    if not len(ids):
        return np.zeros(len(others))
    flat = np.concatenate([bag.ids for bag in bags])
    at = np.minimum(np.searchsorted(ids, flat), len(ids) - 1)
    here = ids[at] == flat
    of = np.repeat(np.arange(len(bags)), [len(bag.ids) for bag in bags])[here]
    gains = weights[at[here]].astype(float)
    if multiply:
        gains *= np.concatenate([bag.weights for bag in bags])[here]
    return np.bincount(of, weights=gains, minlength=len(others))


def band_of_score(chance: float, weights: PairWeights | None = None) -> Band | None:
    """The band that a score is in; None for a pair that is not worth a link."""
    weights = weights or load_pair_weights()
    if chance >= weights.same_from:
        return "same"
    if chance >= weights.likely_from:
        return "likely"
    return "related" if chance >= weights.related_from else None


def _channel(row: np.ndarray, message: float) -> Channel:
    if message < LOG_FROM:
        return "prose"
    return "both" if row[PAIR_FEATURES.index("words")] >= LOG_FROM else "log"


def _reason(row: np.ndarray, one: View, two: View) -> str:
    """What speaks for the pair and what against it, in words."""
    told = dict(zip(PAIR_FEATURES, row.tolist(), strict=True))
    shared = [name.partition(".")[2].replace("_", " ") for name in sorted(one.conditions & two.conditions)]
    families = sorted(name.partition(".")[2].replace("_", "-") for name in one.families & two.families)
    parts = [
        f"titles or error messages alike ({told['claim']:.2f})" if told["claim"] >= LOG_FROM else "",
        f"texts alike ({told['words']:.2f})" if told["words"] >= LOG_FROM / 2 else "",
        f"both with {', '.join(shared[:3])}" if shared else "",
        f"both {', '.join(families[:2])}" if families else "",
        f"{round(math.expm1(told['era']))} days apart",
        "other models" if told["other_family"] else "",
        "another platform" if told["other_platform"] else "",
        "another class of error" if told["other_type"] else "",
        "a message that many failures share" if told["claim_common_far"] else "",
    ]
    return "; ".join(part for part in parts if part)
