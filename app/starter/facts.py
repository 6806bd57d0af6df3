"""A card's facts: every value with the place in the card's own file that says it (source "card")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from app.extract.facts import Conditions, ErrorFact, Evidence, Facts, Fix, Workaround
from app.starter.cards import Card

RULE = "card.key"
CONFIDENCE = 1.0


def card_facts(card: Card) -> Facts:
    """All that a card says, in the shape of an issue's facts."""
    error = ErrorFact(
        type=card.error.type, message=card.error.message, frame=card.error.frame,
        wrappers=card.error.wrappers,
    )  # fmt: skip
    return Facts(
        number=card.number, is_failure=True, failure_kind=card.failure_kind, gpus=card.gpus,
        gpu_count=card.gpu_count, models=card.models, backends=card.backends, versions=card.versions,
        error=error, workarounds=tuple(_workarounds(card)), regression=card.regression,
        related=card.related, fix=_fix(card), summary=card.summary, evidence=tuple(_evidence(card)),
    )  # fmt: skip


def _workarounds(card: Card) -> Iterator[Workaround]:
    for item in card.workarounds:
        yield Workaround(
            action=item.action, kind=item.kind, outcome=item.outcome, source="card",
            conditions=Conditions(gpus=card.gpus) if item.kind != "version" else Conditions(),
        )  # fmt: skip


def _fix(card: Card) -> Fix | None:
    return card.fix.model_copy(update={"source": "card"}) if card.fix else None


def _values(card: Card) -> Iterable[tuple[str, str]]:
    for name in ("gpus", "models"):
        yield from ((name, value) for value in getattr(card, name))
    for key, values in card.backends.items():
        yield from ((f"backends.{key}", value) for value in values)
    yield from ((f"versions.{key}", value) for key, value in card.versions.items())
    yield "error.message", card.error.message or (card.error.type or "")
    yield from (("workarounds", item.action) for item in card.workarounds)
    yield from (("related", str(number)) for number in card.related)
    if card.regression:
        told = card.regression.model_dump(exclude_none=True)
        for key, value in told.items():
            for one in value if isinstance(value, tuple | list) else (value,):
                yield f"regression.{key}", one
    if card.fix and card.fix.pr:
        yield "fix", card.fix.pr


def _evidence(card: Card) -> Iterator[Evidence]:
    for field, value in _values(card):
        for quote in (value, _as_written(value)):
            start = card.text.find(quote)
            if start >= 0:
                yield Evidence(
                    field=field, value=value, quote=quote, source="card", start=start,
                    end=start + len(quote), rule=RULE, confidence=CONFIDENCE,
                )  # fmt: skip
                break


def _as_written(value: str) -> str:
    """A value as TOML writes it between double quotes."""
    return value.replace("\\", "\\\\").replace('"', '\\"')
