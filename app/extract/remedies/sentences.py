"""What a remedy is said to cost: the words of its passage that tell of speed or memory lost.

What one sentence says was changed, and what came of it.

In: a `Sentence`. Out: `Remedy`s: the words of the change, its kind, and whether it worked, worked in part
or was tried in vain. What was in vain is read by rules (`vain.py`); what helped is offered by `helped.py`
and judged by `judge.py`. A cure is only sold if nothing in its clause denies it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from app.extract.facts import Outcome, WorkaroundKind
from app.extract.lists import load
from app.extract.remedies.candidates import Offer, find_offers
from app.extract.remedies.changes import (
    MAX_ACTION_CHARS,
    MIN_PHRASE_CHARS,
    Thing,
    find_things,
    kind_of,
    opens_with_verb,
    trimmed,
)
from app.extract.remedies.clauses import Clause, grammar, split_clauses
from app.extract.remedies.failed_attempts import Denial, denied_before, find_denial, may_deny, was_tried
from app.extract.remedies.score import chance_of, load_weights
from app.extract.remedies.success_cues import SIGNS, is_wish
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import load_rules
from app.extract.text.sentences import Sentence, is_commented

MAX_COST_CHARS = 90
_BEFORE_CHARS = 40


def cost_of(passage: str) -> str | None:
    """The words that name a cost; None where none is named or it is denied ("no performance loss")."""
    denied = pattern(load("cost")["denied"], ignore_case=True)
    for rule in load_rules("cost"):
        for found in rule.pattern.finditer(passage):
            before = passage[max(0, found.start() - _BEFORE_CHARS) : found.start()]
            if not denied.search(before):
                return " ".join(found.group(0).split())[:MAX_COST_CHARS].rstrip(" .-")
    return None


MAX_FLAGS = 3
"""A sentence with more flags is a command."""

VAIN_CHANCE = 0.9
"""Of 21 attempts told as vain that were read by eye or labelled, 20 were."""

SECTION_CHANCE = 0.8
"""What stands below "Workarounds" is sometimes only advised."""

_LIST = load("workarounds")
_BOXES: tuple[str, ...] = tuple(_LIST["boxes"])
_TAKES_BACK = pattern("|".join(_LIST["takes_back"]))
_COMMAND, _OR, _FOR_A_WHILE = grammar("command"), grammar("or"), grammar("for_a_while")
_SECTION_ENDS = (" to find", " so that", ", ", "; ", " — ", " – ", ": ", " until ")


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change and its outcome; `start` and `end` in the source, `chance` that it is so."""

    action: str
    source: str
    start: int
    end: int
    kind: WorkaroundKind
    outcome: Outcome
    rule: str
    chance: float


def read_remedies(sentence: Sentence, previous: Sentence | None = None) -> tuple[Remedy, ...]:
    """What a sentence says of changes and their outcome.

    Args:
        sentence: the sentence to read.
        previous: the one before it in the same source; "it did not help" speaks of that one.
    """
    if not is_readable(sentence):
        return ()
    found: list[Remedy] = []
    before: Clause | None = None
    for clause in split_clauses(sentence):
        denial = find_denial(sentence, clause, before)
        is_denial = denial is not None and denial.is_denial
        remedies = _denied(sentence, denial) if denial else _praised(sentence, clause, previous)
        if not remedies and found and found[-1].outcome == "works" and (is_denial or _takes_back(clause)):
            found[-1] = replace(
                found[-1], outcome="fails" if is_denial and before and was_tried(before) else "partial"
            )
        if not remedies and before is None and is_denial and previous is not None:
            things = denied_before(previous, sentence)
            found += [_remedy(previous, t, "fails", "workaround.denied_next", VAIN_CHANCE) for t in things]
        found.extend(remedies)
        before = clause
    return tuple(found)


def is_readable(sentence: Sentence) -> bool:
    """Whether a sentence can tell of an outcome at all: a sign of one, no tick box, no command."""
    if sentence.text.startswith(_BOXES) or sentence.low.count(" --") > MAX_FLAGS:
        return False
    if _COMMAND.search(sentence.text) and not is_commented(sentence.text):
        return False
    return bool(SIGNS.search(sentence.text)) or may_deny(sentence.text)


def offers_of(sentence: Sentence, previous: Sentence | None = None) -> tuple[Offer, ...]:
    """All offers of a sentence that no denial or wish forbids; what training learns from."""
    if not is_readable(sentence):
        return ()
    offers: list[Offer] = []
    before: Clause | None = None
    for clause in split_clauses(sentence):
        if not is_wish(sentence, clause) and find_denial(sentence, clause, before) is None:
            offers.extend(find_offers(sentence, clause, previous))
        before = clause
    return tuple(offers)


def read_section_line(sentence: Sentence, outcome: Outcome) -> tuple[Remedy, ...]:
    """What a line below a heading "Workarounds" offers: its settings, or a short instruction as a whole."""
    rule = "workaround.section"
    if things := find_things(sentence.text, sentence.low):
        return tuple(_remedy(sentence, thing, outcome, rule, SECTION_CHANCE) for thing in things)
    start = next((i for i, sign in enumerate(sentence.text) if sign.isalpha()), len(sentence.text))
    if not opens_with_verb(sentence.text, start):
        return ()
    ends = (sentence.text.find(sign, start + MIN_PHRASE_CHARS) for sign in _SECTION_ENDS)
    end = min((at for at in ends if at >= 0), default=len(sentence.text))
    if sentence.text.count("(", start, end) > sentence.text.count(")", start, end):
        end = sentence.text.find(")", end) + 1 or end
    left, right = trimmed(sentence.text, start, min(end, start + MAX_ACTION_CHARS))
    thing = Thing(left, right, kind_of(sentence.low[left:right]), rule)
    return (_remedy(sentence, thing, outcome, rule, SECTION_CHANCE),)


def _denied(sentence: Sentence, denial: Denial) -> tuple[Remedy, ...]:
    if denial.part is None:
        return ()
    at = denial.part.start
    moved = (replace(thing, start=at + thing.start, end=at + thing.end) for thing in denial.things)
    return tuple(_remedy(sentence, thing, "fails", denial.rule, VAIN_CHANCE) for thing in moved)


def _praised(sentence: Sentence, clause: Clause, previous: Sentence | None) -> tuple[Remedy, ...]:
    """The likeliest offer of a clause, if it is likely enough."""
    if is_wish(sentence, clause):
        return ()
    weights = load_weights()
    judged = [
        (chance_of(offer), -at, offer) for at, offer in enumerate(find_offers(sentence, clause, previous))
    ]
    if not judged:
        return ()
    chance, _, best = max(judged, key=lambda item: item[:2])
    if chance < weights.threshold:
        return ()
    chosen = [(chance, best)]
    for other_chance, _, other in judged:
        if other_chance >= weights.threshold and _are_joined(best, other):
            chosen.append((other_chance, other))
            break
    lasts = not _FOR_A_WHILE.search(clause.text)
    return tuple(
        _remedy(o.sentence, thing, o.outcome if lasts else "partial", o.rule, c)
        for c, o in chosen
        for thing in _choices(o)
    )


def _choices(offer: Offer) -> tuple[Thing, ...]:
    """The settings of a change that is one of a choice: "--x or downgrading to 1.2"."""
    thing, text = offer.thing, offer.sentence.text
    named = find_things(text, offer.sentence.low)
    groups: list[list[Thing]] = [[one] for one in named[:1]]
    for one, other in pairwise(named):
        if _OR.search(text[one.end : other.start]):
            groups[-1].append(other)
        else:
            groups.append([other])
    group = next((g for g in groups if g[0].start < thing.end and thing.start < g[-1].end), [thing])
    return tuple(group) if len(group) > 1 else (thing,)


def _are_joined(one: Offer, other: Offer) -> bool:
    """Whether two changes are told as one choice: "X or Y fixes it"."""
    first, last = sorted((one.thing, other.thing), key=lambda thing: thing.start)
    between = one.sentence.text[first.end : max(first.end, last.start)]
    return one.sentence is other.sentence and bool(_OR.search(between))


def _takes_back(clause: Clause) -> bool:
    """Whether "… but it never calls a tool" leaves the cure a hole; a clause on another change does not."""
    has_but = "but" in clause.low[:8] or "但" in clause.low[:4]
    return has_but and not clause.things and bool(_TAKES_BACK.search(clause.low))


def _remedy(sentence: Sentence, thing: Thing, outcome: Outcome, rule: str, chance: float) -> Remedy:
    source, left, right = sentence.span(thing.start, thing.end)
    return Remedy(
        sentence.text[thing.start : thing.end],
        source,
        left,
        right,
        thing.kind,
        outcome,
        rule,
        round(chance, 2),
    )
