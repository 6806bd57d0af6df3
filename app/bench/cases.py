"""What the repository pins of the benchmark: facts, one JSON object a line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from app.bench.rewrite import Form


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One way to ask a case's log."""

    form: Form
    seed: int


@dataclass(frozen=True, slots=True)
class Case:
    """A log in an issue's text: where it stands (code points of `plain_lines`), its hash, what is right."""

    number: int
    start: int
    end: int
    sha256: str
    right: tuple[int, ...]
    rewrites: tuple[Rewrite, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A question without a log and the issues that answer it."""

    id: str
    text: str
    right: tuple[int, ...]
    held_out: bool = False


@dataclass(frozen=True, slots=True)
class Foreign:
    """A text of our own behind which no issue stands; `why` says what it is."""

    id: str
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Pinned:
    """All that is asked."""

    cases: Sequence[Case]
    questions: Sequence[Question]
    foreign: Sequence[Foreign]


def sha256_of(text: str) -> str:
    """The hash by which a pinned span is known again."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def plain_lines(text: str) -> str:
    """A text with one kind of line end: GitHub keeps what the browser sent."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def load_pinned() -> Pinned:
    """All that this repository pins."""
    return Pinned(load_cases(), load_questions(), load_foreign())


def load_cases() -> list[Case]:
    """The pinned logs."""
    return [
        Case(
            row["number"], row["start"], row["end"], row["sha256"], tuple(row["right"]),
            tuple(Rewrite(way["form"], way["seed"]) for way in row["rewrites"]),
        )
        for row in _rows("cases.jsonl")
    ]  # fmt: skip


def load_questions() -> list[Question]:
    """The questions without a log."""
    return [
        Question(row["id"], row["text"], tuple(row["right"]), row["held_out"])
        for row in _rows("questions.jsonl")
    ]


def load_foreign() -> list[Foreign]:
    """The texts with no issue behind them."""
    return [Foreign(row["id"], row["text"], row["why"]) for row in _rows("foreign.jsonl")]


def load_twins() -> list[frozenset[int]]:
    """Groups of issues that report the same failure."""
    return [frozenset(row["numbers"]) for row in _rows("twins.jsonl")]


def save_cases(cases: Iterable[Case], path: Path) -> None:
    """Write cases, one a line."""
    path.write_text("".join(json.dumps(asdict(case)) + "\n" for case in cases), encoding="utf-8")


def _rows(name: str) -> Iterator[dict[str, Any]]:
    text = (files(__package__) / name).read_text(encoding="utf-8")
    return (json.loads(line) for line in text.split("\n") if line.strip())
