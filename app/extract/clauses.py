"""A sentence cut into clauses at its contrasts: "it works with X, but fails with Y" tells two things.

In: a `Sentence`. Out: `Clause`s with the changes named in them, positions counted from the sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from app.extract.changes import Thing, find_things
from app.extract.lists import load
from app.extract.narrative import Sentence
from app.extract.patterns import pattern
from app.extract.rules import load_rules

_SPLIT = pattern("|".join(load("workarounds")["splits"]))
_NO_CUT: tuple[str, ...] = tuple(load("workarounds")["no_cut"])
_NO_CONTRAST: tuple[str, ...] = tuple(load("workarounds")["no_contrast"])


def grammar(name: str) -> Any:
    """The pattern of one rule of `lists/grammar.toml`."""
    return next(rule.pattern for rule in load_rules("grammar") if rule.id == f"grammar.{name}")


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a sentence; `start` in the sentence."""

    text: str
    low: str
    start: int
    things: tuple[Thing, ...]


def split_clauses(sentence: Sentence) -> tuple[Clause, ...]:
    """The clauses of a sentence, in order; without a contrast it is one; code is never cut."""
    found = (match.start() for match in _SPLIT.finditer(sentence.low))
    marks = (
        mark
        for mark in found
        if sentence.low.count("`", 0, mark) % 2 == 0
        and not sentence.low.endswith(_NO_CONTRAST, 0, mark)
        and not sentence.low.startswith(_NO_CUT, mark)
    )
    edges = sorted({0, *marks, len(sentence.text)})
    pieces = [(left, right) for left, right in pairwise(edges) if right - left > 1]
    return tuple(
        Clause(sentence.text[a:b], sentence.low[a:b], a, find_things(sentence.text[a:b], sentence.low[a:b]))
        for a, b in pieces
    )
