"""Score candidate remedies: a sum of weights over readable features.

In: a `CandidateRemedy`. Out: the probability that the author says this change helped. The weights are learned
by `python -m app.train.remedy_score` and stored with their metrics in `remedy_weights.json`; this module only
sums them.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from math import exp
from pathlib import Path

from app.extract.lists import load
from app.extract.remedies.candidates import CandidateRemedy
from app.extract.remedies.changes import grammar
from app.extract.rules.patterns import pattern

WEIGHTS_FILE = Path(__file__).with_name("remedy_weights.json")
LONG_SENTENCE_CHARS = 250

_AROUND = {
    name: pattern(rf"(?i)(?:^|[^\w])(?:{'|'.join(load('helped')[name])})")
    for name in ("history", "elsewhere", "contrast")
} | {name: grammar(f"around_{name}") for name in ("failure", "model_name")}
_IN_ACTION = {
    name: grammar(f"in_{name}")
    for name in [
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
    ]
}


@dataclass(frozen=True, slots=True)
class RemedyWeights:
    """The learned weights; candidates with a probability of at least `threshold` are remedies."""

    intercept: float
    weights: dict[str, float]
    threshold: float


@lru_cache(maxsize=1)
def load_weights() -> RemedyWeights:
    """Load the learned weights."""
    data = json.loads(WEIGHTS_FILE.read_text(encoding="utf-8"))
    return RemedyWeights(data["intercept"], data["weights"], data["threshold"])


def features_of(candidate: CandidateRemedy) -> tuple[str, ...]:
    """Return all features of a candidate: its own and those of its sentence and its text."""
    sentence, change = candidate.sentence, candidate.change
    action = sentence.text[change.start : change.end]
    rest = f"{sentence.text[: change.start]} _ {sentence.text[change.end :]}"
    found = [f"in:{name}" for name, rule in _IN_ACTION.items() if rule.search(action)]
    found += [f"around:{name}" for name, rule in _AROUND.items() if rule.search(rest)]
    found.append(f"kind:{change.kind}")
    if sentence.source.startswith("comment"):
        found.append("place:comment")
    elif sentence.source == "title" or sentence.is_heading:
        found.append("place:title")
    if len(sentence.text) > LONG_SENTENCE_CHARS:
        found.append("long")
    shape, link = (name for name in candidate.features if name.startswith(("shape:", "link:")))
    known = {*candidate.features, *found}
    pairs = [f"{shape}+{name}" for name in ("stated:fully", "in:plain") if name in known]
    if "in:choice" in known:
        partners = ("stated:fully", "after:failure", "around:failure")
        pairs += [f"choice+{name}" for name in partners if name in known]
    return (*candidate.features, *found, *pairs, f"{shape}+{link}")


def chance_of(candidate: CandidateRemedy, weights: RemedyWeights | None = None) -> float:
    """Return the probability that a candidate is a remedy."""
    used = weights or load_weights()
    total = used.intercept + sum(used.weights.get(name, 0.0) for name in features_of(candidate))
    return 1.0 / (1.0 + exp(-total))
