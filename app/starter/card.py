"""Starter cards: known failures in our own words, one TOML file per issue.

Input: `app/starter/cards/<number>-<slug>.toml`. Output: validated, frozen `Card`s. A card states what an
on-call engineer needs to know; its facts have the source "card" and a quote from the file.

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

Each value of a card's facts has evidence with its offsets in the card's file (source "card").

Beside the cards, `releases.toml` has the first release of each pull request of vLLM, and all reverts, as of a
certain date, so that the release of a fix is known without any request to GitHub.
"""

from __future__ import annotations

import re
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
"""The repository of all cards."""

LOG_LINES_MAX = 40


class CardError(TriageError):
    """A card file is invalid; the message names the file and the error."""


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
    """A known failure; `text` is the content of the file, which its evidence quotes."""

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
        """The issue's URL on GitHub."""
        return f"https://github.com/{REPO}/issues/{self.number}"


def read_card(path: Path) -> Card:
    """Read a card.

    Raises:
        CardError: the file cannot be read, is not TOML, or does not have the format above.
    """
    try:
        return parse_card(path.read_text(encoding="utf-8"), path.name)
    except OSError as error:
        raise CardError(f"{path.name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CardError(f"{path.name}: not UTF-8") from error


def parse_card(text: str, name: str = "card") -> Card:
    """Parse a card from its file's text; `name` is used in error messages.

    Raises:
        CardError: the text is not TOML, or does not have the format above.
    """
    try:
        return Card.model_validate({**tomllib.loads(text), "text": text})
    except tomllib.TOMLDecodeError as error:
        raise CardError(f"{name}: {error}") from error
    except ValidationError as error:
        fault = error.errors(include_input=False, include_url=False)[0]
        raise CardError(f"{name}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}") from error


def read_cards(folder: Path) -> tuple[Card, ...]:
    """Read all cards of a folder, sorted by number.

    Raises:
        CardError: a card is invalid, or two cards have the same number.
    """
    cards = sorted(map(read_card, folder.glob("*.toml")), key=lambda card: card.number)
    for one, next_one in pairwise(cards):
        if one.number == next_one.number:
            raise CardError(f"two starter cards have the number {one.number}")
    return tuple(cards)


RULE = "card.key"
CONFIDENCE = 1.0


def card_facts(card: Card) -> Facts:
    """Convert a card to the facts of an issue."""
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


_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_LOG_QUOTES = "'''"


def text_around(card: str, start: int, end: int) -> tuple[int, int]:
    """Return the bounds of the text that holds a span of a card's file, without TOML's syntax.

    That is the string or the log around the span, or the span itself in a number.
    """
    log = card.find(_LOG_QUOTES) + len(_LOG_QUOTES), card.rfind(_LOG_QUOTES)
    if log[0] <= start and end <= log[1]:
        return log
    line_start = card.rfind("\n", 0, start) + 1
    strings = ((found.start() + 1, found.end() - 1) for found in _STRING.finditer(card, line_start))
    around = next((bounds for bounds in strings if bounds[1] >= end), (start, end))
    return around if around[0] <= start else (start, end)


def as_read(written: str) -> str:
    """Undo the escapes of a double-quoted TOML string."""
    return re.sub(r'\\(["\\])', r"\1", written)


def _as_written(value: str) -> str:
    """Escape a value as in a double-quoted TOML string."""
    return value.replace("\\", "\\\\").replace('"', '\\"')


@dataclass(frozen=True, slots=True)
class Reverted:
    """A pull request reverted by another one."""

    number: int
    by: int
    at: datetime


@dataclass(frozen=True, slots=True)
class ReleaseTable:
    """The repository's history up to `as_of`: the first release by pull request, and reverts."""

    as_of: datetime
    first_release: dict[int, str]
    reverted: tuple[Reverted, ...]


def read_release_table(path: Path) -> ReleaseTable:
    """Read the release table from its file."""
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
    """Return the end of a day, so that a revert is later than a merge on the same day."""
    return datetime.combine(day, time.max, UTC)
