"""A sentence cut into clauses at its contrasts: "it works with X, but fails with Y" tells two things.

In: a `Sentence`. Out: `Clause`s with the changes named in them, positions counted from the sentence.

The plain words of a change: where they begin and end, and whether they tell a deed or a set-up.

In: a `Clause` and a place in it. Out: a `Thing`, or the shape of one. Where to look is decided in
`helped.py`; what flags, variables and pins look like in `changes.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from app.extract.lists import load
from app.extract.remedies.changes import MAX_ACTION_CHARS, Thing, find_things, kind_of, trimmed
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import load_rules
from app.extract.text.sentences import Sentence

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


MAX_BARE_WORDS = 12

_SETUP = pattern(rf"(?i)\b(?:{'|'.join(load('helped')['setup'])})\b")
_DOING, _NEXT_LINK, _DEED_NOUN = grammar("doing"), grammar("next_link"), grammar("deed_noun")


def nearest(clause: Clause, things: list[Thing]) -> Thing:
    """The first thing, and what is joined to it by "or"."""
    first = things[0]
    for thing in things[1:]:
        if clause.low[first.end : thing.start].strip(" `,\"'*()") not in ("or", "或", "或者", "or by"):
            break
        first = Thing(first.start, thing.end, first.kind, first.rule)
    return first


def words(clause: Clause, start: int, end: int) -> Thing | None:
    """The plain words at a place, up to what follows their noun."""
    left, right = trimmed(clause.text, start, min(end, start + MAX_ACTION_CHARS))
    if not _DOING.search(clause.text[left:right]):
        after = clause.text.find(" ", left, right)
        link = _NEXT_LINK.search(clause.text[after + 1 : right]) if after > 0 else None
        left, right = trimmed(clause.text, left, after + 1 + link.start() if link else right)
    count = len(clause.text[left:right].split())
    if right - left < 2 or not 1 <= count <= MAX_BARE_WORDS:
        return None
    return make_thing(clause, left, right)


def deed(clause: Clause, phrase: Thing) -> Thing:
    """A deed by its one setting if it names one: of "adding --enforce-eager" the flag."""
    inside = [t for t in clause.things if phrase.start <= t.start and t.end <= phrase.end + 2]
    if len(inside) != 1 or inside[0].rule == "thing.env_name":
        return phrase
    return inside[0]


def plain_shape(clause: Clause, thing: Thing) -> str:
    """What plain words are: a deed by its ending or its noun, a set-up that can be chosen, or just words."""
    if _DEED_NOUN.search(clause.text[thing.start : thing.end]):
        return "deed"
    if _DOING.search(clause.text[thing.start : thing.end]):
        return "doing"
    return "soft" if _SETUP.search(clause.text[thing.start : thing.end]) else "bare"


def make_thing(clause: Clause, start: int, end: int) -> Thing:
    """Words as a change."""
    return Thing(start, end, kind_of(clause.low[start:end]), "thing.words")
