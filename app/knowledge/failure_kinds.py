"""The kinds of failure: `failure_kinds.toml`, from an unknown argument to a fault of the device."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from app.extract.rules.patterns import pattern, pattern_set


@dataclass(frozen=True, slots=True)
class FailureKind:
    """A row of `failure_kinds.toml`, its patterns compiled.

    `is_topic`: its messages have many shapes. `parts`: what it falls into, each by name and pattern.
    """

    id: str
    name: str
    scene: str
    error: Any
    asked: Any
    is_topic: bool
    parts: tuple[tuple[str, Any], ...]


@lru_cache(maxsize=1)
def failure_kinds() -> tuple[FailureKind, ...]:
    """All kinds, the most specific first."""
    return tuple(
        FailureKind(
            row["id"],
            row["name"],
            row.get("scene", ""),
            _pattern(row, "error"),
            _pattern(row, "asked"),
            row.get("topic", False),
            tuple((name, pattern(text, ignore_case=True)) for name, text in row.get("parts", ())),
        )
        for row in failure_rows()
    )


def _pattern(row: dict[str, Any], key: str) -> Any:
    return pattern(row[key], ignore_case=True) if key in row else None


def kinds_in(error: str) -> tuple[FailureKind, ...]:
    """The kinds that an error's words are of, the most specific first."""
    kinds, together = _errors()
    return tuple(kinds[at] for at in sorted(together.Match(error) or ()))


@lru_cache(maxsize=1)
def _errors() -> tuple[tuple[FailureKind, ...], Any]:
    """The kinds that errors have, and their patterns in one."""
    kinds = tuple(kind for kind in failure_kinds() if kind.error)
    return kinds, pattern_set([f"(?i){kind.error.pattern}" for kind in kinds])


@lru_cache(maxsize=1)
def failure_rows() -> list[dict[str, Any]]:
    """The kinds as they stand in the data."""
    rows: list[dict[str, Any]] = tomllib.loads(
        (files(__package__) / "failure_kinds.toml").read_text(encoding="utf-8")
    )["failure"]
    return rows


def kind_of(error: str) -> FailureKind | None:
    """The most specific kind that an error's type and message are of."""
    return next(iter(kinds_in(error)), None)
