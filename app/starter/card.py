"""Starter cards: one TOML file each, in our own words, with the issue's number and address.

In: `app/starter/cards/<number>-<slug>.toml`. Out: frozen `Card`s, checked. A card says what a person
would want at three in the morning; its facts carry the source "card" and a quote out of the file.

The file's keys:

    number = 39288                      # of vllm-project/vllm
    title = "..."                       # our own words, at most 120 characters
    state = "open"                      # as last known: open | closed
    created = 2026-04-08                # date
    labels = ["bug"]
    failure_kind = "crash"              # a FailureKind
    gpus = ["H100"]                     # canonical names
    gpu_count = 8                       # optional
    models = ["Qwen/Qwen3-Next-80B-A3B-Instruct"]
    backends = { moe = ["FlashInfer CUTLASS"], platform = ["cuda"] }
    versions = { vllm = "0.18.2rc1.dev54+g73f48ce55", torch = "2.9.0+cu129" }
    summary = "..."                     # our own words, at most 300 characters
    related = [36286]                   # issues and pull requests

    # The decisive lines as vLLM prints them (prefixes, frames, wrapper lines), at most 40 lines.
    log = '''
    ...
    '''

    [error]
    type = "CUDA error"
    message = "an illegal memory access was encountered"   # stands in log
    frame = "custom_all_reduce.cuh:455"                     # optional
    wrappers = ["Engine core initialization failed."]       # optional, each stands in log

    [[workarounds]]                     # none, one or more
    action = "--moe-backend triton"
    kind = "flag"
    outcome = "works"                   # works | partial | fails
    note = "..."                        # optional: conditions or cost, our own words

    [regression]                        # optional
    last_working = "0.18.1rc1.dev227"
    first_failing = "0.18.1rc1.dev266"
    still_failing = ["0.19.1rc1.dev45"]
    culprit = "#36286"

    [fix]                               # optional; only with a merged pull request
    state = "fixed"                     # a FixState
    pr = "#38990"
    released_in = "0.20.0"

A card's facts: every value with the place in the card's own file that says it (source "card").

Beside the cards `releases.toml` holds the first release with each pull request of vLLM, and what was taken
back, as known on one day: so a fix can name its release before GitHub was asked for anything.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from itertools import pairwise
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints, ValidationError, model_validator

from app.errors import TriageError
from app.extract.facts import (
    BACKEND_KEYS,
    VERSION_KEYS,
    Conditions,
    ErrorFact,
    Evidence,
    Facts,
    FailureKind,
    Fix,
    Frozen,
    Outcome,
    Regression,
    Workaround,
    WorkaroundKind,
)
from app.extract.remedies.typed import command_of

REPO = "vllm-project/vllm"
"""The repository that every card speaks of."""

LOG_LINES_MAX = 40


class CardError(TriageError):
    """A card file is not as the shape demands; names the file and the fault."""


class CardFailure(Frozen):
    type: str | None = None
    message: str
    frame: str | None = None
    wrappers: tuple[str, ...] = ()


class CardWorkaround(Frozen):
    action: Annotated[str, StringConstraints(min_length=2, max_length=200)]
    kind: WorkaroundKind
    outcome: Outcome
    note: str = ""


class Card(Frozen):
    """One known failure; `text` is the file's own text, the source of its evidence."""

    text: str
    number: int = Field(gt=0)
    title: Annotated[str, StringConstraints(min_length=10, max_length=120)]
    state: str = Field(pattern="^(open|closed)$")
    created: date
    labels: tuple[str, ...] = ()
    failure_kind: FailureKind
    gpus: tuple[str, ...] = ()
    gpu_count: int | None = None
    models: tuple[str, ...] = ()
    backends: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    summary: Annotated[str, StringConstraints(min_length=20, max_length=300)]
    related: tuple[int, ...] = ()
    log: str
    error: CardFailure
    workarounds: tuple[CardWorkaround, ...] = ()
    regression: Regression | None = None
    fix: Fix | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Card:
        lines = self.log.strip().splitlines()
        if not 1 <= len(lines) <= LOG_LINES_MAX:
            raise ValueError(f"log has {len(lines)} lines; 1 to {LOG_LINES_MAX} are allowed")
        missing = [text for text in (self.error.message, *self.error.wrappers) if text not in self.log]
        if missing:
            raise ValueError(f"log does not hold: {missing[0]}")
        if unknown := (set(self.backends) - set(BACKEND_KEYS)) | (set(self.versions) - set(VERSION_KEYS)):
            raise ValueError(f"unknown key: {sorted(unknown)[0]}")
        if self.fix and self.fix.state == "fixed" and not self.fix.pr:
            raise ValueError("a fix needs its merged pull request")
        return self

    @property
    def url(self) -> str:
        """The issue's address on GitHub."""
        return f"https://github.com/{REPO}/issues/{self.number}"


def read_card(path: Path) -> Card:
    """One card.

    Raises:
        CardError: the file cannot be read, is not TOML or not of the shape above.
    """
    try:
        return parse_card(path.read_text(encoding="utf-8"), path.name)
    except OSError as error:
        raise CardError(f"{path.name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CardError(f"{path.name}: not UTF-8") from error


def parse_card(text: str, name: str = "card") -> Card:
    """One card from its file's text; `name` is used in messages.

    Raises:
        CardError: the text is not TOML or not of the shape above.
    """
    try:
        return Card.model_validate({**tomllib.loads(text), "text": text})
    except tomllib.TOMLDecodeError as error:
        raise CardError(f"{name}: {error}") from error
    except ValidationError as error:
        fault = error.errors(include_input=False, include_url=False)[0]
        raise CardError(f"{name}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}") from error


def read_cards(folder: Path) -> tuple[Card, ...]:
    """All cards of a folder by number; two of one number are an error.

    Raises:
        CardError: a card is faulty, or a number stands in two files.
    """
    cards = sorted((read_card(path) for path in folder.glob("*.toml")), key=lambda card: card.number)
    for one, next_one in pairwise(cards):
        if one.number == next_one.number:
            raise CardError(f"two starter cards have the number {one.number}")
    return tuple(cards)


RULE = "card.key"
CONFIDENCE = 1.0


def card_facts(card: Card) -> Facts:
    """All that a card says, in the shape of an issue's facts."""
    return Facts.based_on(
        card,
        is_failure=True,
        error=ErrorFact.based_on(card.error),
        workarounds=tuple(_workarounds(card)),
        fix=card.fix.model_copy(update={"source": "card"}) if card.fix else None,
        evidence=tuple(_evidence(card)),
    )


def _workarounds(card: Card) -> Iterator[Workaround]:
    for item in card.workarounds:
        yield Workaround(
            action=item.action,
            kind=item.kind,
            outcome=item.outcome,
            source="card",
            conditions=Conditions(gpus=card.gpus) if item.kind != "version" else Conditions(),
            confidence=1.0,
            command=command_of(item.action) if item.outcome == "works" else None,
        )


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
        stated = card.regression.model_dump(exclude_none=True)
        for key, value in stated.items():
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
                    field=field,
                    value=value,
                    quote=quote,
                    source="card",
                    start=start,
                    end=start + len(quote),
                    rule=RULE,
                    confidence=CONFIDENCE,
                )
                break


def _as_written(value: str) -> str:
    """A value as TOML writes it between double quotes."""
    return value.replace("\\", "\\\\").replace('"', '\\"')


@dataclass(frozen=True, slots=True)
class Reverted:
    """A pull request that another one took back."""

    number: int
    by: int
    at: datetime


@dataclass(frozen=True, slots=True)
class ReleaseTable:
    """What is known of the repository's history up to `as_of`: the release's tag by pull request."""

    as_of: datetime
    first_release: dict[int, str]
    reverted: tuple[Reverted, ...]


def read_release_table(path: Path) -> ReleaseTable:
    """The table out of its file."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    return ReleaseTable(
        as_of=_end(content["as_of"]),
        first_release={number: tag for tag, numbers in content["releases"].items() for number in numbers},
        reverted=tuple(
            Reverted(number, int(by), _end(revert["merged"]))
            for by, revert in content["reverts"].items()
            for number in revert["of"]
        ),
    )


def _end(day: date) -> datetime:
    """The end of a day: a revert follows what was merged on the same one."""
    return datetime.combine(day, time.max, UTC)
