"""Evidence of extracted values: the quote, and a calibrated confidence.

The confidence is the precision of the value's rule on labelled issues. `confidence.json`, learned by
`python -m app.train.confidence`, holds it by field and by `field|rule`. The confidence of an unknown rule is
the mean of its own estimate and its field's precision.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from app.extract.facts import Evidence
from app.extract.text.document import Document, Span


@dataclass(frozen=True, slots=True)
class FoundValue:
    """A value, its span, and the rule that read it."""

    value: str
    span: Span
    rule: str


SCORED_FIELDS = frozenset({"workarounds"})
"""Fields whose values have individual probabilities (`remedies/score.py`), better than a rule's precision."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Confidences, 0 to 1, by field (`backends`) and by `field.key|rule`."""

    fields: dict[str, float]
    rules: dict[str, float]


@lru_cache(maxsize=1)
def learned() -> Calibration:
    """Load the learned confidences."""
    stored = json.loads((files(__package__) / "confidence.json").read_text(encoding="utf-8"))
    return Calibration(stored["fields"], stored["rules"])


def calibrated(table: Calibration, field: str, rule: str, own: float) -> float:
    """Return the confidence of a value that `rule` read for `field`; `own` is the rule's own estimate."""
    if field in SCORED_FIELDS:
        return own
    known = table.rules.get(f"{field}|{rule}")
    if known is not None:
        return known
    prior = table.fields.get(field.partition(".")[0])
    return own if prior is None else round((own + prior) / 2, 3)


def with_confidence(item: Evidence) -> Evidence:
    """Return the evidence with its learned confidence."""
    confidence = calibrated(learned(), item.field, item.rule, item.confidence)
    return item if confidence == item.confidence else item.model_copy(update={"confidence": confidence})


def cite(
    document: Document, field: str, value: str, span: Span, rule: str, confidence: float = 0.9
) -> Evidence:
    """Create evidence for one value; `span`: source, start, end in code points; `confidence`: 0 to 1."""
    source, start, end = span
    place = {"quote": document.sources[source][start:end], "source": source, "start": start, "end": end}
    return Evidence(field=field, value=value, rule=rule, confidence=confidence, **place)
