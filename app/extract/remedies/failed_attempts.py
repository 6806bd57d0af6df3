"""What a clause says was tried in vain: "tried X, but it still fails", "X does not help", "even with X".

In: a `Clause` and the one before. Out: the changes that did not help. Negation decides first: a clause
that denies sells no cure.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.extract.lists import load
from app.extract.remedies.changes import MIN_PHRASE_CHARS, Thing, find_phrase, find_things, rules_of
from app.extract.remedies.clauses import Clause
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import Rule, load_rules
from app.extract.text.sentences import Sentence

MAX_DENIAL_CHARS = 90
"""A longer sentence has a subject of its own and denies nothing of the one before."""

MAX_TRIED_GAP = 40

_LIST = load("workarounds")
_TRIED: tuple[str, ...] = tuple(_LIST["tried"])
_CHANGES: tuple[str, ...] = tuple(_LIST["changes"])
_WITH: tuple[str, ...] = tuple(_LIST["with"])
_WENT_TO: tuple[str, ...] = tuple(_LIST["went_to"])
_QUESTION = ("?", "？")
_WORKS, _NO_FAILURE = (
    next(rule.pattern for rule in load_rules("helped") if rule.id == name)
    for name in ("helped.works", "helped.no_failure")
)
_SIGNS = pattern("|".join(f"(?:{rule.pattern.pattern})" for rule in rules_of("cue")), ignore_case=True)


@dataclass(frozen=True, slots=True)
class Denial:
    """What a clause denies: the changes, positions in `part`; none where it only denies."""

    rule: str
    is_denial: bool
    part: Clause | None = None
    things: tuple[Thing, ...] = ()


def was_tried(part: Sentence | Clause) -> bool:
    """Whether a sentence or a clause tells of an attempt."""
    return any(word in part.low for word in _TRIED)


def may_deny(text: str) -> bool:
    """Whether a text holds any word of failure after an attempt; one scan over all rules."""
    return bool(_SIGNS.search(text))


def find_denial(sentence: Sentence, clause: Clause, before: Clause | None) -> Denial | None:
    """What was in vain, by the first rule that fits; None if the clause denies nothing."""
    for rule in rules_of("cue"):
        match = rule.pattern.search(clause.text)
        if match and not _is_taken_back(clause, rule, match.span()):
            part, things = _in_vain(sentence, clause, before, rule, match.span())
            if rule["outcome"] == "blocked" and not things:
                continue
            return Denial(rule.id, rule["outcome"] == "fails", part, tuple(things))
    return None


def _is_taken_back(clause: Clause, rule: Rule, span: tuple[int, int]) -> bool:
    """Whether no failure is told: "no longer the same error", "it works even with X"."""
    if rule.extra.get("weak") and (good := _WORKS.search(clause.text)) and good.start() < span[0]:
        return True
    return any(
        match.start() < span[1] and span[0] < match.end() for match in _NO_FAILURE.finditer(clause.text)
    )


def denied_before(previous: Sentence, sentence: Sentence) -> tuple[Thing, ...]:
    """The changes of "I tried X." if the next sentence is a short "It did not help."."""
    is_short = len(sentence.text) <= MAX_DENIAL_CHARS and not sentence.low.endswith(_QUESTION)
    if previous.source != sentence.source or not is_short or not was_tried(previous):
        return ()
    clause = Clause(previous.text, previous.low, 0, find_things(previous.text, previous.low))
    return clause.things or tuple(_tried_phrase(clause, len(previous.text)))


def _in_vain(
    sentence: Sentence, clause: Clause, before: Clause | None, rule: Rule, span: tuple[int, int]
) -> tuple[Clause | None, list[Thing]]:
    """What was tried: named in the clause, or in the one before ("tried X, but it still fails")."""
    tried = was_tried(sentence)
    if sentence.low.endswith(_QUESTION) or (rule["outcome"] == "blocked" and not tried):
        return None, []
    for part in (clause, before):
        if part is None:
            continue
        is_change = tried or any(word in part.low for word in _CHANGES)
        named = _named(part, part is clause, rule["side"], span, is_change=is_change)
        if not named and is_change and rule["demand"] == "phrase":
            named = _tried_phrase(part, span[0] if part is clause else len(part.text))
        if named:
            return part, named
    return None, []


def _named(part: Clause, is_own: bool, side: str, span: tuple[int, int], *, is_change: bool) -> list[Thing]:
    """The settings of a clause that stand on the side of the words of failure."""
    named = [thing for thing in part.things if not _is_version_used(part, thing)]
    if is_own and side == "before":
        named = [thing for thing in named if thing.end <= span[0] + 1]
    elif is_own and side == "after":
        named = [thing for thing in named if thing.start >= span[0]]
    if side == "both" and not is_change:
        named = [thing for thing in named if part.low[: thing.start].rstrip(" `*(\"'").endswith(_WITH)]
    return named


def _is_version_used(part: Clause, thing: Thing) -> bool:
    """A version somebody runs is no attempt at a cure; one somebody went to is."""
    around = part.low[max(0, thing.start - 24) : thing.end]
    return thing.kind == "version" and not any(word in around for word in _WENT_TO)


def _tried_phrase(part: Clause, end: int) -> list[Thing]:
    """A change in words: right behind "tried", or one that begins with a word of change."""
    at = max(part.low.find(word) for word in _TRIED)
    start = max(at, 0)
    stop = end if end > start + MIN_PHRASE_CHARS else len(part.text)
    phrase = find_phrase(part.text, part.low, start, stop, first=True)
    if phrase is None or " works" in part.low[phrase.start : phrase.end]:
        return []
    is_near = at >= 0 and phrase.start - at <= MAX_TRIED_GAP
    return [phrase] if is_near or part.low.startswith(_CHANGES, phrase.start) else []
