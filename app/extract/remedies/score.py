"""How likely an offered remedy is one: a sum of weights over readable features.

In: an `Offer` of `helped.py` and its sentence. Out: the chance that the reporter, or whoever speaks, says
that this change helped. The weights are learned by `python -m app.train.remedy_score` and lie in
`remedy_weights.json` with their scores; here they are only added up.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from math import exp
from pathlib import Path

from app.extract.lists import load
from app.extract.remedies.candidates import Offer
from app.extract.remedies.clauses import grammar
from app.extract.rules.patterns import pattern

WEIGHTS_FILE = Path(__file__).with_name("remedy_weights.json")

_LIST = load("helped")


def _signs(name: str) -> str:
    return rf"(?i)(?:^|[^\w])(?:{'|'.join(_LIST[name])})"


_AROUND = {
    **{name: pattern(_signs(name)) for name in ("history", "elsewhere", "contrast")},
    **{name: grammar(f"around_{name}") for name in ("failure", "model_name")},
}
_IN_ACTION = {
    name: grammar(f"in_{name}")
    for name in (
        "vllm_version",
        "moves",
        "has_name",
        "scenario",
        "elsewhere",
        "number",
        "single",
        "plain",
        "done",
        "choice",
    )
}


@dataclass(frozen=True, slots=True)
class Weights:
    """What was learned; `threshold` is the chance from which on an offer is told."""

    intercept: float
    weights: dict[str, float]
    threshold: float


@lru_cache(maxsize=1)
def load_weights() -> Weights:
    """The learned weights; all zero before the first training."""
    if not WEIGHTS_FILE.exists():
        return Weights(0.0, {}, 0.5)
    data = json.loads(WEIGHTS_FILE.read_text(encoding="utf-8"))
    return Weights(data["intercept"], data["weights"], data["threshold"])


def features_of(offer: Offer) -> tuple[str, ...]:
    """All features of an offer: those of its making, and what its sentence and its words hold."""
    sentence, thing = offer.sentence, offer.thing
    action = sentence.text[thing.start : thing.end]
    rest = f"{sentence.text[: thing.start]} _ {sentence.text[thing.end :]}"
    found = [f"in:{name}" for name, rule in _IN_ACTION.items() if rule.search(action)]
    found += [f"around:{name}" for name, rule in _AROUND.items() if rule.search(rest)]
    found.append(f"kind:{thing.kind}")
    if sentence.source.startswith("comment"):
        found.append("place:comment")
    elif sentence.source == "title" or sentence.is_heading:
        found.append("place:title")
    if len(sentence.text) > 250:
        found.append("long")
    shape, link = (name for name in offer.features if name.startswith(("shape:", "link:")))
    known = {*offer.features, *found}
    plain = [f"{shape}+{name}" for name in ("told:fully", "in:plain") if name in known]
    if "in:choice" in known:
        pairs = ("told:fully", "after:failure", "around:failure")
        plain += [f"choice+{name}" for name in pairs if name in known]
    return (*offer.features, *found, *plain, f"{shape}+{link}")


def chance_of(offer: Offer, weights: Weights | None = None) -> float:
    """The probability that an offer is a remedy."""
    used = weights or load_weights()
    total = used.intercept + sum(used.weights.get(name, 0.0) for name in features_of(offer))
    return 1.0 / (1.0 + exp(-total))
