"""Read changes and their outcome from a single sentence.

In: a `Sentence`. Out: `RemedyStatement`s: the text of the change, its kind, and whether it worked, helped in
part or did not help. Failed changes are read by rules (`cues.py`); helpful ones are proposed by
`candidates.py` and scored by `score.py`, unless their clause is negated.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from app.extract.facts import Outcome, WorkaroundKind
from app.extract.lists import load
from app.extract.remedies.candidates import CandidateRemedy, find_candidates
from app.extract.remedies.changes import (
    MAX_ACTION_CHARS,
    MIN_PHRASE_CHARS,
    ChangeSpan,
    Clause,
    find_changes,
    grammar,
    kind_of,
    opens_with_verb,
    split_clauses,
    trimmed,
)
from app.extract.remedies.cues import find_denial, is_hypothetical, may_deny, states_success, was_tried
from app.extract.remedies.score import chance_of, load_weights
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import load_rules
from app.extract.text.sentences import Sentence, is_commented

MAX_FLAGS = 3
"""A sentence with more flags than this is a command."""

FAILED_CHANCE = 0.9
"""Measured: of 21 attempts read as failed and checked or labelled by hand, 20 were."""

SECTION_CHANCE = 0.8
"""Lines below a "Workarounds" heading are sometimes only advice."""

MAX_COST_CHARS = 90
_BEFORE_CHARS = 40

_LIST = load("workarounds")
_BOXES: tuple[str, ...] = tuple(_LIST["boxes"])
_LIMITATION = pattern("|".join(_LIST["takes_back"]))
_SECTION_ENDS = (" to find", " so that", ", ", "; ", " — ", " – ", ": ", " until ")


@dataclass(frozen=True, slots=True)
class RemedyStatement:
    """A change and its outcome. `start` and `end` are offsets in the source, `chance` is a probability.

    `without`: the remedy is to leave out `action`.
    """

    action: str
    source: str
    start: int
    end: int
    kind: WorkaroundKind
    outcome: Outcome
    rule: str
    chance: float
    without: bool = False


def read_remedies(sentence: Sentence, previous: Sentence | None = None) -> tuple[RemedyStatement, ...]:
    """Return the changes that a sentence reports, with their outcome.

    Args:
        sentence: the sentence to read.
        previous: the preceding sentence of the same source, which may tell the failure.
    """
    if not is_readable(sentence):
        return ()
    found: list[RemedyStatement] = []
    before: Clause | None = None
    for clause in split_clauses(sentence):
        denial = find_denial(sentence, clause, before)
        fails = denial is not None and denial.is_failure
        if denial:
            remedies = [_remedy(sentence, c, "fails", denial.rule, FAILED_CHANCE) for c in denial.changes]
        else:
            remedies = _helpful_changes(sentence, clause, previous)
        if not remedies and found and found[-1].outcome == "works" and (fails or _states_limitation(clause)):
            is_failed = fails and before and was_tried(before)
            found[-1] = replace(found[-1], outcome="fails" if is_failed else "partial")
        found.extend(remedies)
        before = clause
    return tuple(found)


@lru_cache(maxsize=8)
def is_readable(sentence: Sentence) -> bool:
    """True if a sentence may report an outcome: it has a cue and is neither a tick box nor a command."""
    if sentence.text.startswith(_BOXES) or sentence.low.count(" --") > MAX_FLAGS:
        return False
    if not may_deny(sentence.text) and not states_success(sentence.text):
        return False
    return not grammar("command").search(sentence.text) or is_commented(sentence.text)


def candidates_of(sentence: Sentence, previous: Sentence | None = None) -> Iterator[CandidateRemedy]:
    """Yield a sentence's candidates outside negated clauses and wishes; training learns from these."""
    before: Clause | None = None
    for clause in split_clauses(sentence) if is_readable(sentence) else ():
        if not is_hypothetical(sentence, clause) and find_denial(sentence, clause, before) is None:
            yield from find_candidates(sentence, clause, previous)
        before = clause


def read_section_line(sentence: Sentence, outcome: Outcome) -> tuple[RemedyStatement, ...]:
    """Read a line below a "Workarounds" heading: its settings, or a short instruction as a whole."""
    text, rule = sentence.text, "workaround.section"
    if changes := find_changes(text, sentence.low):
        return tuple(_remedy(sentence, change, outcome, rule, SECTION_CHANCE) for change in changes)
    start = next((i for i, sign in enumerate(text) if sign.isalpha()), len(text))
    if not opens_with_verb(text, start):
        return ()
    ends = (text.find(sign, start + MIN_PHRASE_CHARS) for sign in _SECTION_ENDS)
    end = min((at for at in ends if at >= 0), default=len(text))
    if text.count("(", start, end) > text.count(")", start, end):
        end = text.find(")", end) + 1 or end
    left, right = trimmed(text, start, min(end, start + MAX_ACTION_CHARS))
    change = ChangeSpan(left, right, kind_of(sentence.low[left:right]), rule)
    return (_remedy(sentence, change, outcome, rule, SECTION_CHANCE),)


def cost_of(passage: str) -> str | None:
    """Return the words that name a cost in speed or memory; None if there are none or they are negated."""
    denied = pattern(load("cost")["denied"], ignore_case=True)
    for rule in load_rules("cost"):
        for found in rule.pattern.finditer(passage):
            before = passage[max(0, found.start() - _BEFORE_CHARS) : found.start()]
            if not denied.search(before):
                return " ".join(found.group(0).split())[:MAX_COST_CHARS].rstrip(" .-")
    return None


def _helpful_changes(sentence: Sentence, clause: Clause, previous: Sentence | None) -> list[RemedyStatement]:
    """Return a clause's likeliest candidate above the threshold, with its alternatives."""
    if is_hypothetical(sentence, clause):
        return []
    scored = [(chance_of(candidate), candidate) for candidate in find_candidates(sentence, clause, previous)]
    likely = [item for item in scored if item[0] >= load_weights().threshold]
    if not likely:
        return []
    chance, best = max(likely, key=lambda item: item[0])
    outcome = "partial" if grammar("for_a_while").search(clause.text) else best.outcome
    return [_remedy(sentence, change, outcome, best.rule, chance) for change in _alternatives(best)]


def _alternatives(candidate: CandidateRemedy) -> tuple[ChangeSpan, ...]:
    """Return all alternatives of which a change is one: "--x or downgrading to 1.2"."""
    change, text = candidate.change, candidate.sentence.text
    named = find_changes(text, candidate.sentence.low)
    groups: list[list[ChangeSpan]] = [[one] for one in named[:1]]
    for one, other in pairwise(named):
        if grammar("or").search(text[one.end : other.start]):
            groups[-1].append(other)
        else:
            groups.append([other])
    group = next((g for g in groups if g[0].start < change.end and change.start < g[-1].end), [])
    return tuple(group) if len(group) > 1 else (change,)


def _states_limitation(clause: Clause) -> bool:
    """True for a limitation such as "but it never calls a tool", unless it is about another change."""
    has_but = "but" in clause.low[:8] or "但" in clause.low[:4]
    return has_but and not clause.changes and bool(_LIMITATION.search(clause.low))


def _remedy(
    sentence: Sentence, change: ChangeSpan, outcome: Outcome, rule: str, chance: float
) -> RemedyStatement:
    action = sentence.text[change.start : change.end]
    place = sentence.span(change.start, change.end)
    return RemedyStatement(action, *place, change.kind, outcome, rule, round(chance, 2))
