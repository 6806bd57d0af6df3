"""Find outcome cues in a clause: success cues, wishes, and changes that did not help.

In: a `Clause` of prose and the preceding one. Out: success cues that are not negated; whether they are only
hoped for or guessed; changes that were tried and did not help ("tried X, but it still fails", "X does not
help", "even with X"). `candidates.py` looks for the changes that helped around the success cues. A negated
clause yields no workaround.
"""

from collections.abc import Iterator
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
"""Maximum per rule and clause; bounds the time for repetitive text."""

MAX_DENIAL_REACH = 40

MAX_TRIED_GAP = 40

_HELPED = load("helped")
_LIST = load("workarounds")
_WITH: tuple[str, ...] = tuple(_LIST["with"])
_CHANGES: tuple[str, ...] = tuple(_LIST["changes"])
_QUESTION = ("?", "？")
_NEGATIVE_CUES = frozenset({"helped.no_failure", "helped.unless"})
_NOT_A_CUE = {True: ("not only",), False: ("not ", "never ", "cannot ")}
_WORKS, _NO_FAILURE = (
    next(rule.pattern for rule in load_rules("helped") if rule.id == name)
    for name in ("helped.works", "helped.no_failure")
)
_NEGATED = pattern(f"(?i)(?:{'|'.join(_HELPED['denied'])})(?: [\\w-]+){{0,3}}[\\s*_`]*$")
_HEDGE = pattern(f"(?i)(?:^|[^\\w])(?:{'|'.join(_HELPED['hedges'])})")
_GUESS = pattern(f"(?i)(?:^|[^\\w])(?:{'|'.join(_HELPED['guesses'])})")
_ASIDE = pattern(r"\([^()\n]{0,40}\)")
"""A guess in brackets is about something else: "it went fine with 24.02 or any lower version (I guess)"."""
_SUCCESS = pattern("|".join(f"(?:{rule.pattern.pattern})" for rule in load_rules("helped")))


@dataclass(frozen=True, slots=True)
class Denial:
    """A statement that changes (possibly none named) did not help; offsets in the sentence."""

    rule: str
    is_failure: bool
    changes: tuple[ChangeSpan, ...]


def find_cues(clause: Clause) -> Iterator[tuple[Rule, tuple[int, int]]]:
    """Yield the success cues of a clause that are not directly negated."""
    for rule in load_rule_set("helped").meeting(clause.text):
        is_negative = rule.id in _NEGATIVE_CUES
        needed = rule.extra.get("needs")
        for match in islice(rule.pattern.finditer(clause.text), MAX_CUES):
            if clause.low.startswith(_NOT_A_CUE[is_negative], match.start()):
                continue
            if needed and not grammar(needed).search(clause.text[match.end() :]):
                continue
            if is_negative or not _is_negated(clause, match.start()):
                yield rule, match.span()


def is_hypothetical(sentence: Sentence, clause: Clause) -> bool:
    """True if a clause is a question, a guess, or a wish up to the comma after its last success cue.

    "It can be solved by X, it is a problem if you want to have Y" counts as a statement despite "want".
    """
    plain = _ASIDE.sub(" ", clause.low)
    if sentence.low.rstrip(" *`)").endswith(_QUESTION) or _GUESS.search(plain):
        return True
    ends = [match.end() for match in _SUCCESS.finditer(clause.text)]
    stop = clause.low.find(", ", max(ends)) if ends else -1
    return bool(ends) and bool(_HEDGE.search(_ASIDE.sub(" ", clause.low[:stop]) if stop >= 0 else plain))


def was_tried(part: Sentence | Clause) -> bool:
    """True if a sentence or clause reports an attempt."""
    return any(word in part.low for word in _LIST["tried"])


def states_success(text: str) -> bool:
    """True if a text contains any success cue."""
    return bool(load_rule_set("helped").meeting(text))


def may_deny(text: str) -> bool:
    """True if a text contains any failure cue."""
    return bool(rules_of("cue").meeting(text))


def find_denial(sentence: Sentence, clause: Clause, before: Clause | None) -> Denial | None:
    """Return what did not help, by the first matching rule; None if the clause denies nothing."""
    for rule in rules_of("cue").meeting(clause.text):
        match = rule.pattern.search(clause.text)
        if not _states_no_failure(clause, rule, match.span()):
            changes = _failed_changes(sentence, clause, before, rule, match.span())
            if changes or rule["outcome"] != "blocked":
                return Denial(rule.id, rule["outcome"] == "fails", changes)
    return None


def _is_negated(clause: Clause, start: int) -> bool:
    """True if a success cue is negated by the words right before it: "does not really work"."""
    before = clause.text[max(0, start - MAX_DENIAL_REACH) : start]
    return bool(_NEGATED.search(before[max(map(before.rfind, ",;:.，。")) + 1 :]))


def _states_no_failure(clause: Clause, rule: Rule, span: tuple[int, int]) -> bool:
    """True if the clause states no failure after all: "no longer the same error", "it works even with X"."""
    if rule.extra.get("weak") and (good := _WORKS.search(clause.text)) and good.start() < span[0]:
        return True
    gone = (match.span() for match in _NO_FAILURE.finditer(clause.text))
    return any(start < span[1] and span[0] < end for start, end in gone)


def _failed_changes(
    sentence: Sentence, clause: Clause, before: Clause | None, rule: Rule, span: tuple[int, int]
) -> tuple[ChangeSpan, ...]:
    """Return the attempted changes, from the clause or the preceding one ("tried X, but it still fails")."""
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
    """Return the settings of a clause; with a failure cue (`span`), only those on the rule's side of it."""
    named = [change for change in part.changes if not _is_version_used(part, change)]
    if span and side == "before":
        named = [change for change in named if change.end <= span[0] + 1]
    elif span and side == "after":
        named = [change for change in named if change.start >= span[0]]
    if side == "both" and not is_change:
        named = [c for c in named if part.low[: c.start].rstrip(" `*(\"'").endswith(_WITH)]
    return named


def _is_version_used(part: Clause, change: ChangeSpan) -> bool:
    """True for a version that is merely in use, not one that somebody switched to as a remedy."""
    around = part.low[max(0, change.start - 24) : change.end]
    return change.kind == "version" and not any(word in around for word in _LIST["went_to"])


def _tried_phrase(part: Clause, end: int) -> list[ChangeSpan]:
    """Return a phrased change that follows "tried" closely or begins with a verb of change."""
    at = max(part.low.find(word) for word in _LIST["tried"])
    start = max(at, 0)
    stop = end if end > start + MIN_PHRASE_CHARS else len(part.text)
    phrase = find_phrase(part.text, part.low, start, stop)
    if phrase is None or " works" in part.low[phrase.start : phrase.end]:
        return []
    is_near = at >= 0 and phrase.start - at <= MAX_TRIED_GAP
    return [phrase] if is_near or part.low.startswith(_CHANGES, phrase.start) else []
