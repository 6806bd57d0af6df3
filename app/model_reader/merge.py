"""Merge the facts extracted by rules with the model's proven values.

The model adds models, workarounds, regression ranges and causes; on labelled issues its other values made the
facts worse. A value that both found stays as the rules have it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from app.extract.facts import Evidence, Facts, Workaround, summarise
from app.extract.prose.regression import merge_claims
from app.extract.reader import IssueReading
from app.extract.remedies.workarounds import MAX_WORKAROUNDS, change_key
from app.extract.text.document import Document
from app.extract.versions import is_same
from app.model_reader.check import ProvenReading, check_reply
from app.model_reader.prompt import make_prompt
from app.model_reader.reply import parse_reply, prompt_version
from app.store.derived.model_outputs import KeptReply

MODEL_CONFIDENCE = {"models": 0.983, "workarounds": 0.6, "regression": 0.7, "cause": 0.7}
"""The merged fields, and how often a value found only by the model was right on labelled issues."""

RULES_MIN = {"regression": 0.9}
"""Minimum confidence of a value found only by the rules."""

_Value = tuple[Any, Evidence]
_IsSame = Callable[[Evidence, Evidence], bool]


def with_reply(reading: IssueReading, kept: KeptReply | None) -> Facts:
    """Merge a reading with a stored reply, which is ignored if the text or the prompt has changed."""
    proven = prove(reading.document, kept) if kept is not None else None
    return reading.facts if proven is None else merge(reading.facts, proven)


def prove(document: Document, kept: KeptReply) -> ProvenReading | None:
    """Return the proven values of a stored reply; None if it is for another text or prompt, or invalid."""
    prompt = make_prompt(document.issue, kept.chars_max)
    if prompt.digest != kept.digest or kept.prompt_version != prompt_version():
        return None
    reply = parse_reply(kept.reply)
    return check_reply(document, prompt, reply) if reply is not None else None


def merge(facts: Facts, proven: ProvenReading) -> Facts:
    cited = {name: [item for item in facts.evidence if _field(item) == name] for name in _IS_SAME}
    rules: dict[str, list[_Value]] = {
        "models": _plain(_best_spelling(cited["models"], proven.models)),
        "workarounds": [(item, _cited(item, cited["workarounds"])) for item in facts.workarounds],
        "regression": _plain(cited["regression"]),
        "cause": list(zip(facts.cause, cited["cause"], strict=False)),
    }
    model: dict[str, list[_Value]] = {
        "models": _plain(proven.models),
        "workarounds": list(_once(proven.remedies)),
        "regression": _plain(item for item in proven.versions if _field(item) == "regression"),
        "cause": list(proven.causes),
    }
    chosen = {name: _choose(name, rules[name], model[name]) for name in _IS_SAME}
    chosen["workarounds"] = chosen["workarounds"][:MAX_WORKAROUNDS]
    regression, proof = merge_claims(evidence for _, evidence in chosen.pop("regression"))
    rest = [item for item in facts.evidence if _field(item) not in _IS_SAME]
    whole = facts.model_copy(
        update={
            **{name: tuple(dict.fromkeys(item for item, _ in values)) for name, values in chosen.items()},
            "regression": regression,
            "evidence": (*rest, *(evidence for values in chosen.values() for _, evidence in values), *proof),
        }
    )
    return whole.model_copy(update={"summary": summarise(whole)})


def _choose(field: str, rules: Sequence[_Value], model: Sequence[_Value]) -> list[_Value]:
    is_same = _IS_SAME[field]
    kept = [
        pair
        for pair in rules
        if pair[1].confidence >= RULES_MIN.get(field, 0.0) or any(is_same(pair[1], one) for _, one in model)
    ]
    new = [pair for pair in model if not any(is_same(one, pair[1]) for _, one in rules)]
    return kept + [_trusted(*pair, MODEL_CONFIDENCE[field]) for pair in new]


def _trusted(item: Any, evidence: Evidence, confidence: float) -> _Value:
    known = {"confidence": confidence}
    item = item.model_copy(update=known) if isinstance(item, Workaround) else item
    return item, evidence.model_copy(update=known)


def _field(item: Evidence) -> str:
    return item.field.partition(".")[0]


def _plain(items: Iterable[Evidence]) -> list[_Value]:
    return [(item.value, item) for item in items]


def _best_spelling(rules: Sequence[Evidence], model: Sequence[Evidence]) -> Iterator[Evidence]:
    """Of two spellings of a model's name, yield the one with the owner, else the model's."""
    for item in rules:
        other = next((one for one in model if _is_same_model(item, one)), item)
        yield other if "/" in other.value or "/" not in item.value else item


def _is_same_model(one: Evidence, other: Evidence) -> bool:
    """True if two spellings are of one model: one may leave out how it was tuned."""
    mine, theirs = _folded(one.value), _folded(other.value)
    return mine == theirs or mine.startswith(f"{theirs}-") or theirs.startswith(f"{mine}-")


def _folded(name: str) -> str:
    """Return a model's name without its owner, blanks and dashes alike."""
    return name.rstrip("/").rpartition("/")[2].lower().replace(" ", "-").replace("_", "-")


def _cited(item: Workaround, cited: Sequence[Evidence]) -> Evidence:
    """Return the evidence of a workaround; one known from a card has its own."""
    return next((e for e in cited if e.value == item.action and e.source == item.source), cited[0])


def _overlap(one: Evidence, other: Evidence) -> bool:
    return one.source == other.source and one.start < other.end and other.start < one.end


def _is_same_change(one: Evidence, other: Evidence) -> bool:
    """True if two quotes are of one change: they overlap, or name the same setting."""
    return _overlap(one, other) or bool(change_key(one.value) & change_key(other.value))


def _is_same_bound(one: Evidence, other: Evidence) -> bool:
    return one.field == other.field and is_same(one.value, other.value)


_IS_SAME: dict[str, _IsSame] = {
    "models": _is_same_model,
    "workarounds": _is_same_change,
    "regression": _is_same_bound,
    "cause": _overlap,
}
"""For each field that is merged, whether two quotes name the same value."""


def _once(remedies: Iterable[tuple[Workaround, Evidence]]) -> Iterator[tuple[Workaround, Evidence]]:
    """Yield each change once: the model names some twice."""
    seen: list[Evidence] = []
    for item, evidence in remedies:
        if not any(_is_same_change(evidence, other) for other in seen):
            seen.append(evidence)
            yield item, evidence
