"""What a clause says of an outcome: words of success and failure, and the changes that did not help.

In: a `Clause` of people's prose and the one before. Out: the words of success that nothing denies; whether
they are only hoped for or guessed; the changes that were tried and did not help ("tried X, but it still
fails", "X does not help", "even with X"). What helped is looked for around the words of success by
`candidates.py`. A clause that denies yields no remedy.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from app.extract.lists import load
from app.extract.remedies.changes import (
    MIN_PHRASE_CHARS,
    ChangeSpan,
    Clause,
    find_phrase,
    grammar,
    rules_of,
)
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import Rule, load_rule_set, load_rules
from app.extract.text.sentences import Sentence

MAX_CUES = 4
"""Of one rule in one clause; a clause that repeats itself is read in bounded time."""

MAX_DENIAL_REACH = 40

MAX_TRIED_GAP = 40

_HELPED = load("helped")
_LIST = load("workarounds")
_WITH: tuple[str, ...] = tuple(_LIST["with"])
_CHANGES: tuple[str, ...] = tuple(_LIST["changes"])
_QUESTION = ("?", "？")
_NEGATIVE_CUES = frozenset({"helped.no_failure", "helped.unless"})
_NO_CUE = {True: ("not only",), False: ("not ", "never ", "cannot ")}
_WORKS, _NO_FAILURE = (
    next(rule.pattern for rule in load_rules("helped") if rule.id == name)
    for name in ("helped.works", "helped.no_failure")
)
_DENIED = pattern(f"(?i)(?:{'|'.join(_HELPED['denied'])})(?: [\\w-]+){{0,3}}[\\s*_`]*$")
_HEDGE = pattern(f"(?i)(?:^|[^\\w])(?:{'|'.join(_HELPED['hedges'])})")
_GUESS = pattern(f"(?i)(?:^|[^\\w])(?:{'|'.join(_HELPED['guesses'])})")
_ASIDE = pattern(r"\([^()\n]{0,40}\)")
"""A guess in brackets is about something else: "it went fine with 24.02 or any lower version (I guess)"."""


def _any_of(rules: Iterable[Rule]) -> str:
    return "|".join(f"(?:{rule.pattern.pattern})" for rule in rules)


SUCCESS = pattern(_any_of(load_rules("helped")))
"""A sentence without one of these states no success."""
_FAILURE = pattern(_any_of(rules_of("cue")), ignore_case=True)


@dataclass(frozen=True, slots=True)
class Denial:
    """What a clause denies: changes that did not help, counted from the sentence; it may name none."""

    rule: str
    is_failure: bool
    changes: tuple[ChangeSpan, ...]


def find_cues(clause: Clause) -> Iterator[tuple[Rule, tuple[int, int]]]:
    """The words of success in a clause that nothing right before them denies."""
    for rule in load_rule_set("helped").meeting(clause.text):
        is_negative = rule.id in _NEGATIVE_CUES
        needed = rule.extra.get("needs")
        for match in islice(rule.pattern.finditer(clause.text), MAX_CUES):
            if clause.low.startswith(_NO_CUE[is_negative], match.start()):
                continue
            if needed and not grammar(needed).search(clause.text[match.end() :]):
                continue
            if is_negative or not _is_denied(clause, match.start()):
                yield rule, match.span()


def is_wish(sentence: Sentence, clause: Clause) -> bool:
    """Whether a clause asks, guesses, or hopes up to the comma behind its last word of success.

    "It can be solved by X, it is a problem if you want to have Y" names X though it wants something.
    """
    plain = _ASIDE.sub(" ", clause.low)
    if sentence.low.rstrip(" *`)").endswith(_QUESTION) or _GUESS.search(plain):
        return True
    ends = [match.end() for match in SUCCESS.finditer(clause.text)]
    stop = clause.low.find(", ", max(ends)) if ends else -1
    return bool(ends) and bool(_HEDGE.search(_ASIDE.sub(" ", clause.low[:stop]) if stop >= 0 else plain))


def was_tried(part: Sentence | Clause) -> bool:
    """Whether a sentence or a clause reports an attempt."""
    return any(word in part.low for word in _LIST["tried"])


def may_deny(text: str) -> bool:
    """Whether a text holds any word of failure after an attempt; one scan over all rules."""
    return bool(_FAILURE.search(text))


def find_denial(sentence: Sentence, clause: Clause, before: Clause | None) -> Denial | None:
    """What did not help, by the first rule that fits; None if the clause denies nothing."""
    for rule in rules_of("cue"):
        match = rule.pattern.search(clause.text)
        if match and not _is_taken_back(clause, rule, match.span()):
            changes = _failed(sentence, clause, before, rule, match.span())
            if changes or rule["outcome"] != "blocked":
                return Denial(rule.id, rule["outcome"] == "fails", changes)
    return None


def _is_denied(clause: Clause, start: int) -> bool:
    """Whether a word of success is denied by what stands right before it: "does not really work"."""
    before = clause.text[max(0, start - MAX_DENIAL_REACH) : start]
    return bool(_DENIED.search(before[max(map(before.rfind, ",;:.，。")) + 1 :]))


def _is_taken_back(clause: Clause, rule: Rule, span: tuple[int, int]) -> bool:
    """Whether no failure is stated: "no longer the same error", "it works even with X"."""
    if rule.extra.get("weak") and (good := _WORKS.search(clause.text)) and good.start() < span[0]:
        return True
    gone = (match.span() for match in _NO_FAILURE.finditer(clause.text))
    return any(start < span[1] and span[0] < end for start, end in gone)


def _failed(
    sentence: Sentence, clause: Clause, before: Clause | None, rule: Rule, span: tuple[int, int]
) -> tuple[ChangeSpan, ...]:
    """What was tried: named in the clause, or in the one before ("tried X, but it still fails")."""
    tried = was_tried(sentence)
    if sentence.low.endswith(_QUESTION) or (rule["outcome"] == "blocked" and not tried):
        return ()
    for part in (clause, before):
        if part is None:
            continue
        is_change = tried or any(word in part.low for word in _CHANGES)
        named = _named(part, rule["side"], span if part is clause else None, is_change=is_change)
        if not named and is_change and rule["demand"] == "phrase":
            named = _tried_phrase(part, span[0] if part is clause else len(part.text))
        if named:
            return tuple(replace(c, start=part.start + c.start, end=part.start + c.end) for c in named)
    return ()


def _named(part: Clause, side: str, span: tuple[int, int] | None, *, is_change: bool) -> list[ChangeSpan]:
    """The settings of a clause; where it holds the words of failure (`span`), those on their side."""
    named = [change for change in part.changes if not _is_version_used(part, change)]
    if span and side == "before":
        named = [change for change in named if change.end <= span[0] + 1]
    elif span and side == "after":
        named = [change for change in named if change.start >= span[0]]
    if side == "both" and not is_change:
        named = [c for c in named if part.low[: c.start].rstrip(" `*(\"'").endswith(_WITH)]
    return named


def _is_version_used(part: Clause, change: ChangeSpan) -> bool:
    """A version somebody runs is no attempt at a cure; one somebody went to is."""
    around = part.low[max(0, change.start - 24) : change.end]
    return change.kind == "version" and not any(word in around for word in _LIST["went_to"])


def _tried_phrase(part: Clause, end: int) -> list[ChangeSpan]:
    """A change in words: right behind "tried", or one that begins with a word of change."""
    at = max(part.low.find(word) for word in _LIST["tried"])
    start = max(at, 0)
    stop = end if end > start + MIN_PHRASE_CHARS else len(part.text)
    phrase = find_phrase(part.text, part.low, start, stop)
    if phrase is None or " works" in part.low[phrase.start : phrase.end]:
        return []
    is_near = at >= 0 and phrase.start - at <= MAX_TRIED_GAP
    return [phrase] if is_near or part.low.startswith(_CHANGES, phrase.start) else []
