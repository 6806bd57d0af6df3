"""Merge the facts extracted by rules with the model's proven values, by a learned precedence.

Input: `Facts` extracted by rules, and a `ProvenReading`. Output: merged `Facts`, and the fields on which the
two disagree. For each field, `precedence.json` has the minimum confidence of values found only by the rules,
whether values found only by the model are accepted, and how often these are right; it is learned from
labelled rows by `python -m app.train.precedence`.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, TypeVar

from app.extract.facts import ErrorFact, Evidence, Facts, Frozen, Regression, Workaround, summarise
from app.extract.reader import IssueReading
from app.extract.remedies.workarounds import MAX_WORKAROUNDS, change_key
from app.extract.text.document import Document
from app.extract.versions import is_same, sort_key
from app.model_reader.check import ProvenReading, check_reply
from app.model_reader.prompt import make_prompt
from app.model_reader.reply import parse_reply, prompt_version
from app.store.derived.model_replies import KeptReply

UNSURE = 0.75
"""Below this confidence a source is unsure; labels help most where both are."""

Item = TypeVar("Item")
_MERGED = ("failure_kind", "error", "models", "backends", "versions", "workarounds", "regression", "cause")


@dataclass(frozen=True, slots=True)
class Precedence:
    """When to trust the rules and the model on one field.

    Attributes:
        rules_from: minimum confidence of values found only by the rules; above 1, none are accepted.
        takes_model: whether values found only by the model are accepted.
        confidence: how often such values were right on labelled issues.
    """

    rules_from: float
    takes_model: bool
    confidence: float


class Disagreement(Frozen):
    """A field of an issue on which the two disagree, with the values found by only one of them."""

    field: str
    rules: tuple[str, ...]
    model: tuple[str, ...]
    is_unsure: bool


@lru_cache(maxsize=1)
def learned_precedence() -> dict[str, Precedence]:
    """Return the learned precedence by field."""
    stored = json.loads((files(__package__) / "precedence.json").read_text(encoding="utf-8"))
    return {name: Precedence(**row) for name, row in stored.items()}


def merge(
    facts: Facts, proven: ProvenReading, precedence: dict[str, Precedence] | None = None
) -> tuple[Facts, tuple[Disagreement, ...]]:
    """Return the merged facts, and the disagreements."""
    return _Merge(facts, proven, precedence or learned_precedence()).run()


def with_reply(reading: IssueReading, kept: KeptReply | None) -> tuple[Facts, tuple[Disagreement, ...]]:
    """Merge a reading with a stored reply, which is ignored if the text or the prompt has changed."""
    if kept is None:
        return reading.facts, ()
    proven = prove(reading.document, kept)
    return (reading.facts, ()) if proven is None else merge(reading.facts, proven)


def prove(document: Document, kept: KeptReply) -> ProvenReading | None:
    """Return the proven values of a stored reply; None if it is for another text or prompt, or invalid."""
    prompt = make_prompt(document.issue, kept.chars_max)
    if prompt.digest != kept.digest or kept.prompt_version != prompt_version():
        return None
    reply = parse_reply(kept.reply)
    return check_reply(document, prompt, reply) if reply is not None else None


class _Merge:
    def __init__(self, facts: Facts, proven: ProvenReading, precedence: dict[str, Precedence]) -> None:
        self._facts = facts
        self._proven = proven
        self._precedence = precedence
        self._evidence: list[Evidence] = []
        self._differing: list[Disagreement] = []

    def run(self) -> tuple[Facts, tuple[Disagreement, ...]]:
        facts = self._facts
        merged: dict[str, Any] = {
            **self._kind(),
            "models": self._models(),
            "backends": self._backends(),
            "versions": self._versions(),
            "workarounds": self._workarounds(),
            "regression": self._regression(),
            "cause": self._causes(),
        }
        proven = self._proven.error
        if facts.error is None and proven is not None and merged.get("is_failure", facts.is_failure):
            merged |= self._error(*proven)
        else:
            self._evidence += self._of_rules("error")
        rest = (item for item in facts.evidence if item.field.partition(".")[0] not in _MERGED)
        whole = facts.model_copy(update={**merged, "evidence": (*rest, *self._evidence)})
        return whole.model_copy(update={"summary": summarise(whole)}), tuple(self._differing)

    def _of_rules(self, field: str) -> list[Evidence]:
        return [item for item in self._facts.evidence if item.field.partition(".")[0] == field]

    def _believed(self, field: str, item: Evidence) -> Evidence:
        return item.model_copy(update={"confidence": self._precedence[field].confidence})

    def _choose(
        self,
        field: str,
        rules: Sequence[tuple[Item, Evidence]],
        model: Sequence[tuple[Item, Evidence]],
        is_one: Callable[[Evidence, Evidence], bool],
    ) -> list[tuple[Item, Evidence]]:
        """Return the accepted values: common ones as the rules have them, others by precedence."""
        precedence = self._precedence[field]
        matched = [next((k for k, (_, m) in enumerate(model) if is_one(r, m)), None) for _, r in rules]
        alone = [pair for pair, match in zip(rules, matched, strict=True) if match is None]
        new = [pair for k, pair in enumerate(model) if not any(is_one(r, pair[1]) for _, r in rules)]
        if alone or new:
            is_unsure = precedence.confidence < UNSURE and all(e.confidence < UNSURE for _, e in alone)
            values = (tuple(e.value for _, e in pairs) for pairs in (alone, new))
            self._differing.append(
                Disagreement(
                    field=field, **dict(zip(("rules", "model"), values, strict=True)), is_unsure=is_unsure
                )
            )
        kept = [
            pair
            for pair, match in zip(rules, matched, strict=True)
            if match is not None or pair[1].confidence >= precedence.rules_from
        ]
        if precedence.takes_model:
            kept += [(item, self._believed(field, evidence)) for item, evidence in new]
        return kept

    def _kind(self) -> dict[str, Any]:
        rules, quoted = self._of_rules("failure_kind"), self._proven.kind
        same = quoted is None or quoted.value == self._facts.failure_kind
        sure = max((item.confidence for item in rules), default=0.0)
        precedence = self._precedence["failure_kind"]
        if quoted is not None and not same:
            is_unsure = max(sure, precedence.confidence) < UNSURE
            own = (self._facts.failure_kind,)
            self._differing.append(
                Disagreement(field="failure_kind", rules=own, model=(quoted.value,), is_unsure=is_unsure)
            )
        if quoted is None or same or not precedence.takes_model or sure >= precedence.rules_from:
            self._evidence += rules
            return {}
        self._evidence.append(self._believed("failure_kind", quoted))
        is_failure = quoted.value != "none"
        gone = {} if is_failure else {"error": None, "signatures": ()}
        return {"failure_kind": quoted.value, "is_failure": is_failure, **gone}

    def _error(self, error: ErrorFact, evidence: Evidence) -> dict[str, Any]:
        precedence = self._precedence["error"]
        is_unsure = precedence.confidence < UNSURE
        self._differing.append(
            Disagreement(field="error", rules=(), model=(error.line,), is_unsure=is_unsure)
        )
        if not precedence.takes_model:
            return {}
        self._evidence.append(self._believed("error", evidence))
        return {"error": error}

    def _models(self) -> tuple[str, ...]:
        """Of two spellings of one model its id stands, or else what the model proved."""

        def is_one(one: Evidence, other: Evidence) -> bool:
            return _is_one_name(_folded(one.value), _folded(other.value))

        proven = self._proven.models
        rules = self._of_rules("models")
        spelled = [next((m for m in proven if is_one(r, m)), r) for r in rules]
        best = [m if "/" in m.value or "/" not in r.value else r for r, m in zip(rules, spelled, strict=True)]
        return self._values(self._choose("models", _plain(best), _plain(proven), is_one))

    def _values(self, chosen: Iterable[tuple[Any, Evidence]]) -> tuple[str, ...]:
        kept = [evidence for _, evidence in chosen]
        self._evidence += kept
        return tuple(dict.fromkeys(item.value for item in kept))

    def _backends(self) -> dict[str, tuple[str, ...]]:
        """Of one key the rules' values stand, or the model's where the rules have none."""

        def is_one(one: Evidence, other: Evidence) -> bool:
            return one.field == other.field

        found: dict[str, dict[str, None]] = {}
        chosen = self._choose(
            "backends", _plain(self._of_rules("backends")), _plain(self._proven.backends), is_one
        )
        for _, item in chosen:
            self._evidence.append(item)
            found.setdefault(item.field.partition(".")[2], {})[item.value] = None
        return {key: tuple(values) for key, values in found.items()}

    def _versions(self) -> dict[str, str]:
        quoted = [item for item in self._proven.versions if item.field == "versions.vllm"]
        rules = [item for item in self._of_rules("versions") if item.field == "versions.vllm"]
        self._evidence += [item for item in self._of_rules("versions") if item not in rules]
        chosen = self._choose(
            "versions", _plain(rules), _plain(quoted), lambda a, b: is_same(a.value, b.value)
        )
        best = max(chosen, key=lambda pair: pair[1].confidence, default=None)
        others = {key: value for key, value in self._facts.versions.items() if key != "vllm"}
        if best is None:
            return others
        self._evidence += [evidence for _, evidence in chosen if evidence.value == best[1].value]
        return {"vllm": best[1].value, **others}

    def _workarounds(self) -> tuple[Workaround, ...]:
        cited = self._of_rules("workarounds")
        rules = [(item, _cited(item, cited)) for item in self._facts.workarounds]
        model = [
            (item.model_copy(update={"confidence": self._precedence["workarounds"].confidence}), evidence)
            for item, evidence in _once(self._proven.remedies)
        ]
        chosen = self._choose("workarounds", rules, model, _is_one_change)[:MAX_WORKAROUNDS]
        self._evidence += [evidence for _, evidence in chosen]
        return tuple(item for item, _ in chosen)

    def _regression(self) -> Regression | None:
        quoted = [item for item in self._proven.versions if item.field.startswith("regression.")]
        rules = self._of_rules("regression")

        def is_one(one: Evidence, other: Evidence) -> bool:
            return one.field == other.field and is_same(one.value, other.value)

        chosen = self._choose("regression", _plain(rules), _plain(quoted), is_one)
        claims: dict[str, list[Evidence]] = {}
        for _, item in chosen:
            claims.setdefault(item.field.partition(".")[2], []).append(item)
        if not claims:
            return None
        parts: dict[str, Any] = {
            part: _best(part, claims[part])
            for part in ("last_working", "first_failing", "fixed_in", "culprit")
            if part in claims
        }
        known = {item.value for item in parts.values()}
        still = {item.value: item for item in claims.get("still_failing", ()) if item.value not in known}
        self._evidence += [*parts.values(), *still.values()]
        return Regression(
            **{part: item.value for part, item in parts.items()},
            still_failing=tuple(sorted(still, key=sort_key)),
        )

    def _causes(self) -> tuple[Any, ...]:
        rules = list(zip(self._facts.cause, self._of_rules("cause"), strict=False))

        def is_one(one: Evidence, other: Evidence) -> bool:
            return one.source == other.source and one.start < other.end and other.start < one.end

        chosen = self._choose("cause", rules, self._proven.causes, is_one)
        self._evidence += [evidence for _, evidence in chosen]
        return tuple(item for item, _ in chosen)


def _plain(items: Iterable[Evidence]) -> list[tuple[None, Evidence]]:
    return [(None, item) for item in items]


def _folded(name: str) -> str:
    """A model's name as it is compared: without its organisation, blanks and dashes alike."""
    return name.rstrip("/").rpartition("/")[2].lower().replace(" ", "-").replace("_", "-")


def _is_one_name(one: str, other: str) -> bool:
    """Whether two spellings are of one model: one may leave out how it was tuned."""
    return one == other or one.startswith(f"{other}-") or other.startswith(f"{one}-")


def _cited(item: Workaround, cited: Sequence[Evidence]) -> Evidence:
    """The evidence of a workaround; what a card knows has one of its own."""
    return next((e for e in cited if e.value == item.action and e.source == item.source), cited[0])


def _is_one_change(one: Evidence, other: Evidence) -> bool:
    """Whether two quotes are of one change: they overlap, or name the same setting."""
    overlaps = one.source == other.source and one.start < other.end and other.start < one.end
    return overlaps or bool(change_key(one.value) & change_key(other.value))


def _once(remedies: Iterable[tuple[Workaround, Evidence]]) -> Iterator[tuple[Workaround, Evidence]]:
    """Each change once: the model names some twice."""
    seen: list[Evidence] = []
    for item, evidence in remedies:
        if not any(_is_one_change(evidence, other) for other in seen):
            seen.append(evidence)
            yield item, evidence


def _best(part: str, claims: Sequence[Evidence]) -> Evidence:
    """Of several the newest that works, the oldest that fails, or the first that is named."""
    if part == "last_working":
        return max(claims, key=lambda item: sort_key(item.value))
    return min(claims, key=lambda item: sort_key(item.value)) if part == "first_failing" else claims[0]
