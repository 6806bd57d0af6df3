"""What one sentence says was changed, and what came of it.

In: a `Sentence`. Out: `Remedy`s: the words of the change, its kind, and whether it worked, worked in part
or was tried in vain. Outcome words ("cues") are rules of `lists/workarounds.toml`, changes ("things") are
found by `changes.py`; here a cue finds the thing it speaks of. Negation decides first: a cure is only
sold if nothing in its clause denies it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from app.extract.changes import (
    MAX_ACTION_CHARS,
    MIN_PHRASE_CHARS,
    Thing,
    find_phrase,
    find_things,
    kind_of,
    opens_with_verb,
    rules_of,
    trimmed,
)
from app.extract.facts import Outcome, WorkaroundKind
from app.extract.lists import load
from app.extract.narrative import Sentence
from app.extract.rules import Rule

MAX_NEAR_GAP = 30
MAX_CUE_GAP = 60
"""How far a cue may stand from the thing it praises, for cues that chance words fit too."""
MAX_ADJACENT_GAP = 8
MAX_FREE_GAP = 280
MAX_DENIAL_CHARS = 90
MAX_TRIED_GAP = 40
MAX_FLAGS = 3
"""A sentence with more flags is a command."""

_LIST = load("workarounds")


def _words(name: str) -> tuple[str, ...]:
    return tuple(_LIST[name])


_GUARD, _HEDGES, _SPLITS, _BOXES = _words("guard"), _words("hedges"), _words("splits"), _words("boxes")
_TRIED, _CHANGES, _ZH_CHANGES = _words("tried"), _words("changes"), _words("zh_changes")
_WITH, _WENT_TO, _FAILURES, _BLAMED = _words("with"), _words("went_to"), _words("failures"), _words("blamed")
_TAKES_BACK, _NEGATIVE, _CONDITIONS = _words("takes_back"), _words("negative"), _words("conditions")
_SWITCHED_OFF, _PRAISE = _words("switched_off"), _words("praise")
_QUESTION = ("?", "？")
_SECTION_ENDS = (" to find", " so that", " (", ", ", "; ", " — ", " – ", ": ", " until ")


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change and its outcome; `start` and `end` in the source."""

    action: str
    source: str
    start: int
    end: int
    kind: WorkaroundKind
    outcome: Outcome
    rule: str


@dataclass(frozen=True, slots=True)
class _Clause:
    """A part of a sentence; `start` in the sentence."""

    text: str
    low: str
    start: int
    things: tuple[Thing, ...]


def read_remedies(sentence: Sentence, previous: Sentence | None = None) -> tuple[Remedy, ...]:
    """What a sentence says of changes and their outcome.

    Args:
        sentence: the sentence to read.
        previous: the one before it in the same source; "it did not help" speaks of that one.
    """
    if not any(word in sentence.low for word in _GUARD) or sentence.text.startswith(_BOXES):
        return ()
    if sentence.low.count(" --") > MAX_FLAGS or not _has_cue(sentence.low):
        return ()
    found: list[Remedy] = []
    before: _Clause | None = None
    was_tried = any(word in sentence.low for word in _TRIED)
    for clause in _clauses(sentence):
        remedies, is_denial = _of_clause(sentence, clause, before)
        if not remedies and found and found[-1].outcome == "works" and (is_denial or _takes_back(clause)):
            found[-1] = replace(found[-1], outcome="fails" if was_tried and is_denial else "partial")
        if not remedies and before is None and is_denial and previous is not None:
            found.extend(_denied(previous, sentence))
        found.extend(remedies)
        before = clause
    return tuple(found)


def read_section_line(sentence: Sentence, outcome: Outcome) -> tuple[Remedy, ...]:
    """What a line below a heading "Workarounds" offers: its settings, or a short instruction as a whole."""
    rule = "workaround.section"
    if things := find_things(sentence.text, sentence.low):
        return tuple(_remedy(sentence, 0, thing, outcome, rule) for thing in things)
    start = next((i for i, sign in enumerate(sentence.text) if sign.isalpha()), len(sentence.text))
    if not opens_with_verb(sentence.text, start):
        return ()
    ends = (sentence.text.find(sign, start + MIN_PHRASE_CHARS) for sign in _SECTION_ENDS)
    end = min((at for at in ends if at >= 0), default=len(sentence.text))
    left, right = trimmed(sentence.text, start, min(end, start + MAX_ACTION_CHARS))
    thing = Thing(left, right, kind_of(sentence.low[left:right]), rule)
    return (_remedy(sentence, 0, thing, outcome, rule),)


def _has_cue(low: str) -> bool:
    return any(word in low for rule in rules_of("cue") for word in rule["words"])


def _clauses(sentence: Sentence) -> list[_Clause]:
    marks = {0}
    for sign in _SPLITS:
        at = sentence.low.find(sign)
        while at >= 0:
            marks.add(at)
            at = sentence.low.find(sign, at + len(sign))
    edges = [*sorted(marks), len(sentence.text)]
    pieces = [(left, right) for left, right in pairwise(edges) if right - left > 1]
    return [
        _Clause(text, low, left, find_things(text, low))
        for left, text, low in ((a, sentence.text[a:b], sentence.low[a:b]) for a, b in pieces)
    ]


def _of_clause(
    sentence: Sentence, clause: _Clause, before: _Clause | None
) -> tuple[tuple[Remedy, ...], bool]:
    """The remedies of a clause, and whether it denies."""
    is_wish = sentence.low.endswith(_QUESTION) or any(word in f" {clause.low}" for word in _HEDGES)
    for rule in rules_of("cue"):
        if not any(word in clause.low for word in rule["words"]):
            continue
        outcome = rule["outcome"]
        if outcome in ("fails", "blocked"):
            if match := rule.pattern.search(clause.text):
                return _in_vain(sentence, clause, before, rule, match.span()), outcome == "fails"
        elif not is_wish and (picked := _praised(clause, rule)):
            return tuple(_remedy(sentence, clause.start, t, outcome, rule.id) for t in picked), False
    return (), False


def _praised(clause: _Clause, rule: Rule) -> list[Thing]:
    """The things that a cue of success speaks of; none if the cue is not there."""
    if rule["side"] == "follows":
        return [t for t in clause.things if rule.pattern.search(clause.text[t.end :])][:1]
    match = rule.pattern.search(clause.text)
    if match is None or clause.low.startswith(tuple(rule.extra.get("not_next", ())), match.end()):
        return []
    if rule["side"] == "own":
        return [_thing(clause, *trimmed(clause.text, *match.span(1)))]
    if rest := rule.extra.get("rest"):
        return _rest(clause, match.end(), rest)
    if rule["demand"] == "reduced":
        return _reduced(clause, match.start())
    return _pick(clause, rule, match.start(), match.end())


def _in_vain(
    sentence: Sentence, clause: _Clause, before: _Clause | None, rule: Rule, span: tuple[int, int]
) -> tuple[Remedy, ...]:
    """What was tried: named in the clause, or in the one before ("tried X, but it still fails")."""
    was_tried = any(word in sentence.low for word in _TRIED)
    if sentence.low.endswith(_QUESTION) or (rule["outcome"] == "blocked" and not was_tried):
        return ()
    side = rule["side"]
    for part in (clause, before):
        if part is None:
            continue
        is_change = was_tried or any(word in part.low for word in _CHANGES)
        named = [thing for thing in part.things if not _is_version_used(part, thing)]
        if part is clause and side == "before":
            named = [thing for thing in named if thing.end <= span[0] + 1]
        elif part is clause and side == "after":
            named = [thing for thing in named if thing.start >= span[0]]
        if side == "both" and not is_change:
            named = [t for t in named if part.low[: t.start].rstrip(" `*(\"'").endswith(_WITH)]
        if not named and is_change and rule["demand"] == "phrase":
            named = _tried_phrase(part, span[0] if part is clause else len(part.text))
        if named:
            return tuple(_remedy(sentence, part.start, thing, "fails", rule.id) for thing in named)
    return ()


def _is_version_used(part: _Clause, thing: Thing) -> bool:
    """A version somebody runs is no attempt at a cure; one somebody went to is."""
    around = part.low[max(0, thing.start - 24) : thing.end]
    return thing.kind == "version" and not any(word in around for word in _WENT_TO)


def _tried_phrase(part: _Clause, end: int) -> list[Thing]:
    """A change in words: right behind "tried", or one that begins with a word of change."""
    at = max(part.low.find(word) for word in _TRIED)
    start = max(at, 0)
    stop = end if end > start + MIN_PHRASE_CHARS else len(part.text)
    phrase = find_phrase(part.text, part.low, start, stop, first=True)
    if phrase is None or " works" in part.low[phrase.start : phrase.end]:
        return []
    is_near = at >= 0 and phrase.start - at <= MAX_TRIED_GAP
    return [phrase] if is_near or part.low.startswith(_CHANGES, phrase.start) else []


def _denied(previous: Sentence, sentence: Sentence) -> tuple[Remedy, ...]:
    """The things of "I tried X." if the next sentence is a short "It did not help."."""
    is_short = len(sentence.text) <= MAX_DENIAL_CHARS and not sentence.low.endswith(_QUESTION)
    if previous.source != sentence.source or not is_short:
        return ()
    if not any(word in previous.low for word in _TRIED):
        return ()
    clause = _Clause(previous.text, previous.low, 0, find_things(previous.text, previous.low))
    things = clause.things or tuple(_tried_phrase(clause, len(previous.text)))
    return tuple(_remedy(previous, 0, thing, "fails", "workaround.denied_next") for thing in things)


def _takes_back(clause: _Clause) -> bool:
    """Whether "… but it never calls a tool" leaves the cure a hole; a clause on another change does not."""
    has_but = "but" in clause.low[:8] or "但" in clause.low[:4]
    return has_but and not clause.things and any(word in clause.low for word in _TAKES_BACK)


def _pick(clause: _Clause, rule: Rule, start: int, end: int) -> list[Thing]:
    """The things around a cue: those it may praise by the rule's side, need and reach."""
    demand, side = rule["demand"], rule["side"]
    reach = (
        MAX_NEAR_GAP if rule.extra.get("near") else MAX_CUE_GAP if demand == "restricted" else MAX_FREE_GAP
    )
    usable = [t for t in clause.things if _is_usable(clause, t, demand)]
    left = [t for t in usable if start - reach <= t.end <= start + 1 and not _fails_in(clause, t.end, start)]
    right = [t for t in usable if start < t.start <= end + reach // 2]
    if rule.extra.get("changed"):
        left = [t for t in left if any(w in clause.text[max(0, t.start - 14) : t.end] for w in _ZH_CHANGES)]
    if side != "after" and left:
        return _nearest(clause, left, last=True)
    if side != "before" and right:
        return _nearest(clause, right, last=False)
    if demand not in ("phrase", "restricted"):
        return []
    phrase = find_phrase(clause.text, clause.low, 0, start, first=False) if side != "after" else None
    if phrase is None and side != "before":
        phrase = find_phrase(clause.text, clause.low, end, len(clause.text), first=True)
    return [phrase] if phrase is not None and _is_told(clause, phrase, rule, (start, end)) else []


def _is_usable(clause: _Clause, thing: Thing, demand: str) -> bool:
    before = clause.low[max(0, thing.start - 30) : thing.start]
    if any(word in before for word in _BLAMED):
        return False
    if demand == "version":
        return thing.kind == "version"
    if thing.rule == "thing.version_change":
        return demand == "phrase"
    return (
        demand != "restricted" or thing.kind != "version" or "vllm" not in clause.low[thing.start : thing.end]
    )


def _nearest(clause: _Clause, things: Sequence[Thing], *, last: bool) -> list[Thing]:
    """The nearest thing, and those joined to it by "or"."""
    ordered = list(reversed(things)) if last else list(things)
    picked = [ordered[0]]
    for thing in ordered[1:]:
        low, high = (thing, picked[-1]) if last else (picked[-1], thing)
        if clause.low[low.end : high.start].strip(" `,\"'*()") not in ("or", "或", "或者", "or by"):
            break
        picked.append(thing)
    return sorted(picked, key=lambda t: t.start)


def _rest(clause: _Clause, end: int, rest: str) -> list[Thing]:
    """What follows the cue up to a comma, if it is a negation or the rule asks for no more."""
    stops = [at for sign in (", ", " which ") if (at := clause.text.find(sign, end + 3)) > 0]
    stop = min(stops, default=len(clause.text))
    around = clause.low[max(0, end - 8) : stop + 1] + " "
    if rest == "negative" and not any(word in around for word in _NEGATIVE):
        return []
    word = next((w for w in ("without", "with out") if clause.low[:end].endswith(w)), "")
    left = end - len(word)
    left, right = trimmed(clause.text, left, min(stop, left + MAX_ACTION_CHARS))
    if right - left < MIN_PHRASE_CHARS or clause.low.startswith(_PRAISE, left):
        return []
    return [_thing(clause, left, right)]


def _reduced(clause: _Clause, start: int) -> list[Thing]:
    for rule in rules_of("reduced"):
        if any(word in clause.low for word in rule["words"]) and (
            m := rule.pattern.search(clause.text, start)
        ):
            return [Thing(m.start(), m.end(), rule["kind"], rule.id)]
    return []


def _is_told(clause: _Clause, phrase: Thing, rule: Rule, span: tuple[int, int]) -> bool:
    """Whether a cue really speaks of a phrase: a deed, not a wish or the complaint."""
    start, end = span
    low = clause.low
    is_near = "," not in clause.text[phrase.end : start] and low.startswith(_CHANGES, phrase.start)
    if _fails_in(clause, phrase.end, start):
        told = False
    elif rule["demand"] == "restricted":
        told = low.startswith(_SWITCHED_OFF, phrase.start)
    elif rule.extra.get("adjacent") and phrase.start - end > MAX_ADJACENT_GAP:
        told = False
    elif rule.extra.get("near"):
        told = is_near
    else:
        told = phrase.start > start or _is_deed(low, phrase)
    return told


def _is_deed(low: str, phrase: Thing) -> bool:
    """Whether a phrase is a deed: "turning off …", "if I switch …"; not "we don't pass …"."""
    word = low[phrase.start : phrase.end].split(" ", 1)[0]
    before = low[max(0, phrase.start - 40) : phrase.start].rstrip(" *`(,")
    if before.endswith(("n't", " not", "cannot", "n’t")):
        return False
    is_opening = not before.strip("- 1234567890.")
    return word.endswith("ing") or is_opening or any(w in f" {before} " for w in _CONDITIONS)


def _fails_in(clause: _Clause, left: int, right: int) -> bool:
    """Whether a failure is told between two places: "X throws an error, it works with Y"."""
    return any(word in clause.low[left:right] for word in _FAILURES)


def _thing(clause: _Clause, start: int, end: int) -> Thing:
    return Thing(start, end, kind_of(clause.low[start:end]), "thing.words")


def _remedy(sentence: Sentence, offset: int, thing: Thing, outcome: Outcome, rule: str) -> Remedy:
    source, left, right = sentence.span(offset + thing.start, offset + thing.end)
    action = sentence.text[offset + thing.start : offset + thing.end]
    return Remedy(action, source, left, right, thing.kind, outcome, rule)
