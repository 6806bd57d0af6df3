"""How sure a value is: the share of right values its rule had on labelled issues.

`confidence.json` is learned by `python -m app.train.confidence`; it holds numbers by field and by
`field|rule`. A rule it does not know keeps the number it gave itself, drawn halfway to its field's.

Quotes: every extracted value points at the words that say it.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from app.extract.facts import Evidence
from app.extract.text.document import Document, Span


@dataclass(frozen=True, slots=True)
class FoundValue:
    """A value, where it stands, and the rule that read it."""

    value: str
    span: Span
    rule: str


OWN = frozenset({"workarounds"})
"""Fields whose reader gives each value its own chance (`remedies/score.py`), better than its rule's share."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Confidences, 0 to 1, by field (`backends`) and by `field.key|rule`."""

    fields: dict[str, float]
    rules: dict[str, float]


@lru_cache(maxsize=1)
def learned() -> Calibration:
    """What was learned of the present rules."""
    stored = json.loads((files(__package__) / "confidence.json").read_text(encoding="utf-8"))
    return Calibration(stored["fields"], stored["rules"])


def calibrated(table: Calibration, field: str, rule: str, own: float) -> float:
    """The confidence of a value that `rule` read for `field`; `own` is what the rule says itself."""
    if field in OWN:
        return own
    known = table.rules.get(f"{field}|{rule}")
    if known is not None:
        return known
    prior = table.fields.get(field.partition(".")[0])
    return own if prior is None else round((own + prior) / 2, 3)


def with_confidence(item: Evidence) -> Evidence:
    """The same evidence with its learned confidence."""
    confidence = calibrated(learned(), item.field, item.rule, item.confidence)
    return item if confidence == item.confidence else item.model_copy(update={"confidence": confidence})


def cite(
    document: Document, field: str, value: str, span: Span, rule: str, confidence: float = 0.9
) -> Evidence:
    """Evidence for one value; `span` is its source and place in code points, `confidence` 0 to 1."""
    source, start, end = span
    place = {"quote": document.sources[source][start:end], "source": source, "start": start, "end": end}
    return Evidence(field=field, value=value, rule=rule, confidence=confidence, **place)
