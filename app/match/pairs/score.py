"""How likely two issues report the same failure: features of a pair, its score (symmetric), its band.

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
"""claim: title or error message of one in those of the other; `_near`: in the same weeks; `_common_far`:
a message that many issues have, months apart. words, names: of the whole texts. era: days between them."""

AGAINST = frozenset(
    {"claim_common_far", "era", "title_conditions_unmet", "other_family", "other_platform", "other_type"}
)
"""Features that never speak for a pair; all others never speak against it."""

NEAR_DAYS = 45
FAR_DAYS = 365
UNKNOWN_DAYS = 90
"""What lies between two issues of which one has no date."""
COMMON_FROM = 2.0
"""From how common a message on (ln of the number of issues) its likeness weighs less."""
MAX_UNMET = 3
SHARED_LEAST = 0.4
"""How much messages, texts and names must share, added up, before a pair can be in a band: to be of one week
and one feature is no likeness."""
CLAIM_LEAST = 0.7
"""From which likeness of two specific claims on, of titles or messages, both name the same."""
SCORE_STEP = 0.0001
"""The smallest difference of two scores."""
_WORDS_AT = PAIR_FEATURES.index("words")
_MESSAGES, _OF_TEXTS = 1, [0, 2, 3, 4]
"""The columns of `text_features`: the messages alone, and all others."""
WHOLLY = 0.995
"""From this likeness on nothing that can be named differs."""
LOG_FROM = 0.3
"""From which likeness of messages on a pair counts as alike in its logs."""

Channel = Literal["log", "prose", "both"]


@dataclass(frozen=True, slots=True)
class PairScore:
    """How alike a pair is, and why.

    `values` are its features, in the order of `PAIR_FEATURES`.
    """

    score: float
    band: Band | None
    channel: Channel
    values: Sequence[float]
    pair: tuple[PairFeatures, PairFeatures] = field(compare=False, repr=False)

    @property
    def reason(self) -> str:
        """What speaks for the pair and what against it, in words."""
        return _reason(dict(zip(PAIR_FEATURES, self.values, strict=True)), *self.pair)


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


def score_pairs(one: PairFeatures, others: Sequence[PairFeatures]) -> list[PairScore]:
    """The likeness of one issue with each of the others, in their order.

    Without a shared specific error, title or frame a pair is at most related, however alike its texts are.
    """
    return _scores(one, others, text_features(one.bags, [other.bags for other in others]))


def score_alike(one: PairFeatures, others: Sequence[PackedFeatures]) -> list[tuple[int, PairScore]]:
    """The same of those whose texts share enough for any band, each after its place in `others`."""
    texts = text_features(one.bags, [other.bags for other in others])
    places: list[int] = np.flatnonzero(texts[:, _OF_TEXTS].sum(axis=1) >= SHARED_LEAST).tolist()
    alike = [others[at].unpack() for at in places]
    return list(zip(places, _scores(one, alike, texts[places]), strict=True))


def _scores(one: PairFeatures, others: Sequence[PairFeatures], texts: np.ndarray) -> list[PairScore]:
    table = _with_circumstances(one, others, texts)
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
    """Whether both name one failure: by message, by title, or by class and frame of the error.

    Claims about different names of code, or titles about different features, are no common claim.
    """
    if _apart(one.subjects, two.subjects) or _apart(one.title_conditions, two.title_conditions):
        return False
    both = one.specific & two.specific
    crossed = ((TITLE, MESSAGE, two.specific), (MESSAGE, TITLE, one.specific))
    bags = [(name, name) for name in both] + [(a, b) for a, b, specific in crossed if MESSAGE in specific]
    alike = any(overlap(one, two, *pair) >= CLAIM_LEAST for pair in bags)
    return alike or not one.places.isdisjoint(two.places)


def chances_of(table: np.ndarray) -> list[float]:
    """The score of each pair from its row of features."""
    weights = load_pair_weights()
    values = np.clip((table * np.array(weights.coefficients)).sum(axis=1) + weights.intercept, -40, 40)
    found: list[float] = np.round(1 / (1 + np.exp(-values)), 4).tolist()
    return found


def pair_features(one: PairFeatures, others: Sequence[PairFeatures]) -> np.ndarray:
    """One row for each of the others, in the order of `PAIR_FEATURES`."""
    return _with_circumstances(one, others, text_features(one.bags, [other.bags for other in others]))


def _with_circumstances(one: PairFeatures, others: Sequence[PairFeatures], texts: np.ndarray) -> np.ndarray:
    """What texts share, and how the circumstances of the issues agree, in the order of `PAIR_FEATURES`."""
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
            np.array([_of_sets(one, other) for other in others]),
        ]
    ).round(9)


def text_features(one: Bags, others: Sequence[Bags]) -> np.ndarray:
    """What the texts of one issue share with those of each of the others.

    Columns: `claim`; the same of the messages alone; `words`, `names` and `title_in_text`.
    """
    count, width = len(others), len(BAGS)
    if not count:
        return np.zeros((0, 5))
    ids = np.concatenate([other.ids for other in others])
    weights = np.concatenate([other.weights for other in others])
    starts = np.cumsum([0, *(len(other.ids) for other in others[:-1])])
    ends = (np.array([other.ends for other in others]) + starts[:, None]).ravel()
    # Nearly all terms of the others are not shared: most of them are recognised by 16 bits of their hashes.
    is_met = np.zeros(1 << 16, dtype=bool)
    is_met[one.ids.astype(np.uint16)] = True
    hits = np.flatnonzero(is_met[ids.astype(np.uint16)])
    cells = np.searchsorted(ends, hits, side="right")
    of, bags = cells // width, cells % width

    def shared(mine: str, theirs: str, *, multiply: bool = True, weigh: bool = True) -> np.ndarray:
        """For each of the others the sum of the weights of shared terms, times its own where asked."""
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
    """How much a bag of one and a bag of the other share, as a cosine."""
    own, other = one.bags[mine], two.bags[theirs]
    _, here, there = np.intersect1d(own.ids, other.ids, assume_unique=True, return_indices=True)
    return round(float(own.weights[here].astype(float) @ other.weights[there].astype(float)), 6)


def _of_sets(one: PairFeatures, two: PairFeatures) -> tuple[float, ...]:
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


def band_of_score(chance: float) -> Band | None:
    """The band that a score is in; None for a pair that is not worth a link."""
    weights = load_pair_weights()
    if chance >= weights.same_from:
        return "same"
    if chance >= weights.likely_from:
        return "likely"
    return "related" if chance >= weights.related_from else None


def _alike(share: float) -> str:
    return f"alike ({share:.2f})" if share < WHOLLY else "the same"


def _reason(values: Mapping[str, float], one: PairFeatures, two: PairFeatures) -> str:
    shared = [name.partition(".")[2].replace("_", " ") for name in sorted(one.conditions & two.conditions)]
    families = sorted(name.partition(".")[2].replace("_", "-") for name in one.families & two.families)
    parts = [
        f"titles or error messages {_alike(values['claim'])}" if values["claim"] >= LOG_FROM else "",
        f"texts {_alike(values['words'])}" if values["words"] >= LOG_FROM / 2 else "",
        f"both with {', '.join(shared[:3])}" if shared else "",
        f"both {', '.join(families[:2])}" if families else "",
        f"{round(math.expm1(values['era']))} days apart",
        "other models" if values["other_family"] else "",
        "another platform" if values["other_platform"] else "",
        "another class of error" if values["other_type"] else "",
        "a message that many failures share" if values["claim_common_far"] else "",
    ]
    return "; ".join(part for part in parts if part)
