"""What a clause says helped: every change that could be meant by its words of success.

In: a `Clause`. Out: `Offer`s, many and cheap: the change to the left or right of a word of success, how
the two are joined, and what stands around. Which offer is really told is judged by `judge.py`; nothing
is decided here but what cannot be a remedy at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from app.extract.facts import Outcome
from app.extract.lists import load
from app.extract.remedies.changes import (
    MAX_ACTION_CHARS,
    Thing,
    find_names,
    find_phrase,
    trimmed,
)
from app.extract.remedies.clauses import Clause, deed, grammar, make_thing, nearest, plain_shape, words
from app.extract.remedies.success_cues import find_cues
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import Rule
from app.extract.text.sentences import Sentence

MAX_LINKS = 3
MAX_LOOSE_GAP = 60
MAX_MOVE_REACH = 24
MAX_START_WORDS = 14
"""Characters that may stand before a deed: "if I just …"."""

_FAILS = pattern(f"(?i){'|'.join(load('workarounds')['failures'])}")
_BLAMED = pattern(f"(?i)(?:{'|'.join(load('workarounds')['blamed'])})$")
_LINK_RIGHT, _LINK_LEFT, _STOP = grammar("link_right"), grammar("link_left"), grammar("stop")
_TAIL_SUBJECT, _PRONOUN, _DETERMINERS = grammar("tail_subject"), grammar("pronoun"), grammar("determiners")
_TOLD = (("off", grammar("without")), ("off", grammar("off")), ("set", grammar("set_to")))
_NO_TROUBLE, _ITSELF, _VERSION, _NOT = (grammar(name) for name in ("no_trouble", "itself", "version", "not"))
_LEAD, _ANAPHOR, _GOES_WRONG = grammar("lead"), grammar("anaphor"), grammar("goes_wrong")
_CHOSEN_FORM = grammar("chosen_form")
_IN_COMMAND, _POINTING, _FULLY = grammar("in_command"), grammar("pointing"), grammar("fully")
_ON_VERSION = grammar("on_version")
_FAILURE = grammar("around_failure")
_OPENS_CONTRAST, _ENDS_SHOWN = grammar("opens_contrast"), grammar("ends_shown")
_WENT_TO: tuple[str, ...] = (*load("workarounds")["went_to"], "install", " instead")
_OBJECTS = (" the ", " this ", " my ", " our ", " a ", " an ", " into ", " out of ")
_ONCE = ("used to ", "never ")
_IN_WORDS = frozenset({"bare", "soft", "phrase"})
_WEAK_LINKS = frozenset({"in", "on", "under", "at", "by", "via", "through", "tried", "either"})
_UNFIT = {
    "any": frozenset[str](),
    "strong": frozenset({"bare", "soft"}),
    "setting": frozenset({"bare", "soft", "off", "set", "doing", "deed", "phrase"}),
}


@dataclass(frozen=True, slots=True)
class Offer:
    """One change that may be meant; `thing` counts from `sentence`, `features` are for the judge."""

    sentence: Sentence
    thing: Thing
    outcome: Outcome
    rule: str
    features: tuple[str, ...]
    clause: int = 0
    """Where its clause begins in the sentence: of one clause's offers one is told."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A change near a cue: what it is made of and how it is joined."""

    thing: Thing
    shape: str
    link: str


def find_offers(sentence: Sentence, clause: Clause, previous: Sentence | None = None) -> Iterator[Offer]:
    """Every change a clause may praise.

    Args:
        previous: the sentence before; "when I remove it" speaks of a setting named there.
    """
    is_contrast = (
        previous is not None and previous.source == sentence.source and _FAILURE.search(previous.text)
    )
    after = ("after:failure",) if is_contrast else ()
    for rule, span in find_cues(clause):
        if not _ends_badly(clause, rule, span[1]):
            for offer in _of_cue(sentence, clause, previous, rule, span):
                yield replace(offer, features=(*offer.features, *after))


def _of_cue(
    sentence: Sentence, clause: Clause, previous: Sentence | None, rule: Rule, span: tuple[int, int]
) -> Iterator[Offer]:
    side = rule["side"]
    places: list[tuple[str, _Found]] = []
    if side != "left":
        places += [("right", found) for found in _right(clause, span[1], rule)]
    if side != "right":
        places += [("left", found) for found in _left(clause, span[0])]
    for where, found in places:
        if found.shape not in _UNFIT[rule["demand"]] and _is_possible(clause, found, span):
            yield _offer(sentence, clause, rule, where, found, span)
    if previous is not None and previous.source == sentence.source:
        yield from _anaphors(clause, previous, rule, span)


def _ends_badly(clause: Clause, rule: Rule, end: int) -> bool:
    """Whether a bare verb leads to a failure or to an object: "responds with an error", "loads the model".

    A deed done properly is none where the clause denies one: "it did not load the kernel properly".
    """
    if rule.id == "helped.adverb" and _NOT.search(clause.text[:end]):
        return True
    rest = clause.low[end:]
    return rule.id == "helped.runs" and (rest.startswith(_OBJECTS) or bool(_FAILS.search(rest)))


def _is_possible(clause: Clause, found: _Found, span: tuple[int, int]) -> bool:
    """Not blamed, no failure told between the change and the word of success, no version that once ran."""
    thing = found.thing
    if _names_nothing(clause, found) or _IN_COMMAND.search(clause.text[: thing.start]):
        return False
    if found.shape in _IN_WORDS and _ON_VERSION.search(clause.text[span[1] :]):
        return False
    if _BLAMED.search(clause.low[max(0, thing.start - 30) : thing.start].rstrip(" `*\"'(")):
        return False
    if found.shape in _IN_WORDS and thing.end <= span[0] and _GOES_WRONG.search(clause.text[: thing.start]):
        return False
    between = clause.low[thing.end : span[0]] if thing.end <= span[0] else clause.low[span[1] : thing.start]
    is_whole = between.count("(") == between.count(")")
    return is_whole and not _FAILS.search(between)


def _names_nothing(clause: Clause, found: _Found) -> bool:
    """Whether words only point to something, are vLLM itself, what once was, or a version that runs."""
    thing = found.thing
    action = clause.text[thing.start : thing.end]
    if _ITSELF.search(action) or _POINTING.search(action):
        return True
    if clause.low.startswith("used to", thing.start) or clause.low.endswith(_ONCE, 0, thing.start):
        return True
    return found.shape != "phrase" and _is_version_run(clause, thing)


def _is_version_run(clause: Clause, thing: Thing) -> bool:
    """Whether a version is only one that runs: half of a regression, unless somebody went to it."""
    around = clause.low[max(0, thing.start - MAX_MOVE_REACH) : thing.end + MAX_MOVE_REACH // 2]
    is_bare = bool(_VERSION.search(clause.text[thing.start : thing.end]))
    return is_bare and not any(word in around for word in _WENT_TO)


def _right(clause: Clause, start: int, rule: Rule) -> Iterator[_Found]:
    """Changes behind a cue: led to by "with", "when", "after"; or simply next."""
    if rule.extra.get("link"):
        yield from _at(clause, start, len(clause.text), "direct")
        return
    link = _LINK_RIGHT.search(clause.text[start:])
    if link and link.group(1).lower() == "for":
        closer = _LINK_RIGHT.search(clause.text[start + link.end(1) :])
        start, link = (start + link.end(1), closer) if closer else (start, link)
    if link:
        word = link.group(1).lower().replace("with out", "without")
        at = start + (link.start(1) if word == "without" else link.end(1))
        yield from _at(clause, at, len(clause.text), word)
        yield from _further(clause, at)
        return
    near = [thing for thing in clause.things if start <= thing.start <= start + MAX_LOOSE_GAP]
    if near:
        yield _Found(near[0], "strong", "loose")


def _further(clause: Clause, start: int) -> Iterator[_Found]:
    """Changes behind later links: "it works for all prompts when X is set"."""
    for link in list(_LINK_LEFT.finditer(clause.text[start:]))[:MAX_LINKS]:
        word = link.group(1).lower().replace("with out", "without")
        if word not in _WEAK_LINKS:
            at = start + (link.start(1) if word == "without" else link.end(1))
            yield from _at(clause, at, len(clause.text), word)


def _left(clause: Clause, end: int) -> Iterator[_Found]:
    """Changes before a cue: in its subject, or behind a "with", "when", "after"."""
    text = clause.text[:end]
    links = list(_LINK_LEFT.finditer(text))[-MAX_LINKS:]
    for link in links:
        word = link.group(1).lower().replace("with out", "without")
        at = link.start(1) if word == "without" else link.end(1)
        tail = _TAIL_SUBJECT.search(text[at:])
        yield from _at(clause, at, at + tail.start() if tail else end, word)
    yield from _subject(clause, end)


def _subject(clause: Clause, end: int) -> Iterator[_Found]:
    """The subject of a cue: a setting, a deed ("removing X works"), or plain words ("single GPU works")."""
    text = clause.text[:end]
    near = [thing for thing in clause.things if thing.end <= end + 1]
    if near:
        thing = near[-1]
        yield _Found(thing, "strong", "subject" if end - thing.end <= 4 else "loose")
    cut = max(text.rfind(sign) for sign in (", ", ": ", " and ", "; ", "，", " - "))
    start = cut + 1 if cut >= 0 else 0
    is_told = bool(_PRONOUN.search(text[start:])) and not _CHOSEN_FORM.search(text[start:])
    before = find_phrase(clause.text, clause.low, 0, cut, first=True) if cut > 0 else None
    if before and (is_told or before.start <= MAX_START_WORDS):
        yield _Found(deed(clause, before), "deed" if before.start <= MAX_START_WORDS else "phrase", "then")
    if is_told:
        return
    lead = _DETERMINERS.search(text[start:].lstrip())
    start += len(text[start:]) - len(text[start:].lstrip()) + (lead.end() if lead else 0)
    phrase = find_phrase(clause.text, clause.low, start, end, first=True)
    if phrase and phrase.start - start <= MAX_START_WORDS:
        yield _Found(deed(clause, phrase), "deed", "subject")
    elif phrase:
        yield _Found(phrase, "phrase", "subject")
    elif (plain := words(clause, start, end)) is not None:
        yield _Found(plain, plain_shape(clause, plain), "subject")


def _at(clause: Clause, start: int, end: int, link: str) -> Iterator[_Found]:
    """The change that stands at a place: a setting, something off, a deed, or plain words."""
    if _NO_TROUBLE.search(clause.text[start:end]):
        return
    if lead := _LEAD.search(clause.text[start:end]):
        link = lead.group(1).lower()
    stop = _STOP.search(clause.text[start + 1 : end])
    words_end = start + 1 + stop.start() if stop else end
    strong = [thing for thing in clause.things if start <= thing.start and thing.end <= end]
    if strong and strong[0].start < words_end + 3:
        yield _Found(nearest(clause, strong), "strong", link)
        return
    for shape, told in _TOLD:
        if match := told.search(clause.text[start : min(end, words_end)]):
            left, right = trimmed(clause.text, start + match.start(1), start + match.end(1))
            if right - left <= MAX_ACTION_CHARS:
                yield _Found(make_thing(clause, left, right), shape, link)
                return
    phrase = find_phrase(clause.text, clause.low, start, words_end, first=True)
    if phrase and phrase.start - start <= MAX_START_WORDS:
        yield _Found(deed(clause, phrase), "deed", link)
    elif (plain := words(clause, start, words_end)) is not None:
        yield _Found(plain, plain_shape(clause, plain), link)


def _anaphors(clause: Clause, previous: Sentence, rule: Rule, span: tuple[int, int]) -> Iterator[Offer]:
    """The setting named in the sentence before: "when I remove it, the error is gone"."""
    for link in list(_LINK_LEFT.finditer(clause.text[: span[0]]))[:MAX_LINKS]:
        stop = clause.text.find(",", link.end(), span[0])
        if stop > 0 and _ANAPHOR.search(clause.text[link.end() : stop]):
            names = find_names(previous.text, previous.low)
            if names:
                found = _Found(names[-1], "anaphor", "when")
                yield _offer(previous, Clause(previous.text, previous.low, 0, ()), rule, "left", found, span)
            return


def _offer(
    sentence: Sentence, clause: Clause, rule: Rule, where: str, found: _Found, span: tuple[int, int]
) -> Offer:
    thing = found.thing
    moved = Thing(clause.start + thing.start, clause.start + thing.end, thing.kind, thing.rule)
    gap = span[0] - thing.end if where == "left" else thing.start - span[1]
    reach = "near" if gap <= 12 else "mid" if gap <= 45 else "far"
    between = clause.low[thing.end : span[0]] if where == "left" else clause.low[span[1] : thing.start]
    told = tuple(
        name
        for name, is_so in (
            ("between:not", _NOT.search(between)),
            ("told:fully", _FULLY.search(clause.text[span[0] : span[1]])),
            ("opens:contrast", _OPENS_CONTRAST.search(sentence.text)),
            ("ends:shown", _ENDS_SHOWN.search(sentence.text)),
        )
        if is_so
    )
    features = (
        f"cue:{rule.id}",
        f"shape:{found.shape}",
        f"link:{found.link}",
        f"side:{where}",
        f"gap:{reach}",
        f"family:{rule['family']}",
        *told,
    )
    return Offer(sentence, moved, rule["outcome"], rule.id, features, clause.start)
