"""Generate candidate remedies: every change that a success cue in a clause may refer to.

In: a `Clause`. Out: `CandidateRemedy`s, many and cheap to make: a change to the left or right of a success
cue ("works", "fixed"), how the two are linked, and context features. `score.py` decides which one is meant;
this module only drops what cannot be a remedy.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from app.extract.facts import Outcome
from app.extract.lists import load
from app.extract.remedies.changes import (
    MAX_ACTION_CHARS,
    ChangeSpan,
    Clause,
    find_phrase,
    grammar,
    plain_words,
    setting_of,
    shape_of,
    trimmed,
    words_span,
)
from app.extract.remedies.cues import find_cues
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import Rule
from app.extract.text.sentences import Sentence

MAX_LINKS = 3
MAX_LOOSE_GAP = 60
MAX_MOVE_REACH = 24
MAX_START_WORDS = 14
"""Maximum number of characters before a verb phrase: "if I just …"."""

_FAILS = pattern(f"(?i){'|'.join(load('workarounds')['failures'])}")
_BLAMED = pattern(f"(?i)(?:{'|'.join(load('workarounds')['blamed'])})$")
_LINK_RIGHT, _LINK_LEFT = grammar("link_right"), grammar("link_left")
_SHAPES = (("off", grammar("without")), ("off", grammar("off")), ("set", grammar("set_to")))
_SWITCHED_TO: tuple[str, ...] = (*load("workarounds")["went_to"], "install", " instead")
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
class CandidateRemedy:
    """A change that may be the remedy. `change` is relative to `sentence`; `features` feed the score."""

    sentence: Sentence
    change: ChangeSpan
    outcome: Outcome
    rule: str
    features: tuple[str, ...]
    clause: int
    """Offset of its clause in the sentence; only the likeliest candidate of a clause is kept."""


@dataclass(frozen=True, slots=True)
class _NearCue:
    """A change near a success cue: its shape and the word that links it."""

    change: ChangeSpan
    shape: str
    link: str


def find_candidates(
    sentence: Sentence, clause: Clause, previous: Sentence | None = None
) -> Iterator[CandidateRemedy]:
    """Yield every change that a clause may report as helpful.

    Args:
        previous: the preceding sentence; what is told after a failure is likelier its remedy.
    """
    if previous is not None and previous.source != sentence.source:
        previous = None
    after = ("after:failure",) if previous and grammar("around_failure").search(previous.text) else ()
    for rule, span in find_cues(clause):
        if not _is_false_cue(clause, rule, span[1]):
            for candidate in _candidates_of_cue(sentence, clause, rule, span):
                yield replace(candidate, features=(*candidate.features, *after))


def _candidates_of_cue(
    sentence: Sentence, clause: Clause, rule: Rule, span: tuple[int, int]
) -> Iterator[CandidateRemedy]:
    places: list[tuple[str, _NearCue]] = []
    if rule["side"] != "left":
        places += [("right", near) for near in _after_cue(clause, span[1], rule)]
    if rule["side"] != "right":
        places += [("left", near) for near in _before_cue(clause, span[0])]
    for where, near in places:
        if near.shape not in _UNFIT[rule["demand"]] and _is_possible(clause, near, span):
            yield _candidate(sentence, clause, rule, where, near, span)


def _is_false_cue(clause: Clause, rule: Rule, end: int) -> bool:
    """True if the cue is no success: "responds with an error", "loads the model".

    Nor is an adverb in a negated clause: "it did not load the kernel properly".
    """
    if rule.id == "helped.adverb" and grammar("not").search(clause.text[:end]):
        return True
    rest = clause.low[end:]
    if clause.low.endswith("normal", 0, end) and rest.startswith(" for ") and " to " in rest:
        return True  # "it is normal for X to Y"
    return rule.id == "helped.runs" and (rest.startswith(_OBJECTS) or bool(_FAILS.search(rest)))


def _is_possible(clause: Clause, near: _NearCue, span: tuple[int, int]) -> bool:
    """False if the change is blamed, a failure stands between it and the cue, or it is a version in use."""
    change, text, low = near.change, clause.text, clause.low
    action, before = text[change.start : change.end], text[: change.start]
    if any(grammar(name).search(action) for name in ("itself", "pointing", "anaphor")):
        return False
    is_past = low.startswith("used to", change.start) or low.endswith(_ONCE, 0, change.start)
    if is_past or (near.shape != "phrase" and _is_version_run(clause, change)):
        return False
    if grammar("in_command").search(before):
        return False
    goes_wrong = change.end <= span[0] and grammar("goes_wrong").search(before)
    if near.shape in _IN_WORDS and (goes_wrong or grammar("on_version").search(text[span[1] :])):
        return False
    if _BLAMED.search(low[max(0, change.start - 30) : change.start].rstrip(" `*\"'(")):
        return False
    between = low[change.end : span[0]] if change.end <= span[0] else low[span[1] : change.start]
    return between.count("(") == between.count(")") and not _FAILS.search(between)


def _is_version_run(clause: Clause, change: ChangeSpan) -> bool:
    """True if a version is merely in use (half of a regression), not one that somebody switched to."""
    around = clause.low[max(0, change.start - MAX_MOVE_REACH) : change.end + MAX_MOVE_REACH // 2]
    is_bare = bool(grammar("version").search(clause.text[change.start : change.end]))
    return is_bare and not any(word in around for word in _SWITCHED_TO)


def _link_end(link: Any, offset: int = 0) -> tuple[str, int]:
    """Return the linking word and the start of its change; "without" is part of the change."""
    word = link.group(1).lower().replace("with out", "without")
    return word, offset + (link.start(1) if word == "without" else link.end(1))


def _after_cue(clause: Clause, start: int, rule: Rule) -> Iterator[_NearCue]:
    """Yield changes after a cue: linked by "with", "when", "after", or merely close."""
    text = clause.text
    if rule.extra.get("link"):
        yield from _in_range(clause, start, len(text), "direct")
        return
    link = _LINK_RIGHT.search(text[start:])
    if link and link.group(1).lower() == "for":
        closer = _LINK_RIGHT.search(text[start + link.end(1) :])
        start, link = (start + link.end(1), closer) if closer else (start, link)
    if link:
        word, at = _link_end(link, start)
        yield from _in_range(clause, at, len(text), word)
        for further in list(_LINK_LEFT.finditer(text[at:]))[:MAX_LINKS]:
            word, after = _link_end(further, at)
            if word not in _WEAK_LINKS:  # "it works for all prompts when X is set"
                yield from _in_range(clause, after, len(text), word)
        return
    near = [change for change in clause.changes if start <= change.start <= start + MAX_LOOSE_GAP]
    if near:
        yield _NearCue(near[0], "strong", "loose")


def _before_cue(clause: Clause, end: int) -> Iterator[_NearCue]:
    """Yield changes before a cue: its subject, or linked by "with", "when", "after"."""
    text = clause.text[:end]
    for link in list(_LINK_LEFT.finditer(text))[-MAX_LINKS:]:
        word, at = _link_end(link)
        tail = grammar("tail_subject").search(text[at:])
        yield from _in_range(clause, at, at + tail.start() if tail else end, word)
    yield from _subject(clause, end)


def _subject(clause: Clause, end: int) -> Iterator[_NearCue]:
    """Yield the cue's subject: a setting, an action ("removing X works"), or words ("single GPU works")."""
    text = clause.text[:end]
    near = [change for change in clause.changes if change.end <= end + 1]
    if near:
        yield _NearCue(near[-1], "strong", "subject" if end - near[-1].end <= 4 else "loose")
    cut = max(text.rfind(sign) for sign in (", ", ": ", " and ", "; ", "，", " - "))
    start = cut + 1 if cut >= 0 else 0
    is_pronoun = bool(grammar("pronoun").search(text[start:]))
    is_pronoun = is_pronoun and not grammar("chosen_form").search(text[start:])
    before = find_phrase(clause.text, clause.low, 0, cut) if cut > 0 else None
    if before and (is_pronoun or before.start <= MAX_START_WORDS):
        shape = "deed" if before.start <= MAX_START_WORDS else "phrase"
        yield _NearCue(setting_of(clause, before), shape, "then")
    if is_pronoun:
        return
    start = end - len(text[start:].lstrip())
    lead = grammar("determiners").search(text[start:])
    start += lead.end() if lead else 0
    phrase = find_phrase(clause.text, clause.low, start, end)
    if phrase and phrase.start - start > MAX_START_WORDS:
        yield _NearCue(phrase, "phrase", "subject")
    else:
        yield from _action_or_words(clause, phrase, start, end, "subject")


def _in_range(clause: Clause, start: int, end: int, link: str) -> Iterator[_NearCue]:
    """Yield the change in a range: a setting, something disabled, an action, or plain words."""
    text = clause.text
    if grammar("no_trouble").search(text[start:end]):
        return
    if lead := grammar("lead").search(text[start:end]):
        link = lead.group(1).lower()
    stop = grammar("stop").search(text[start + 1 : end])
    words_end = start + 1 + stop.start() if stop else end
    strong = [change for change in clause.changes if start <= change.start and change.end <= end]
    if strong and strong[0].start < words_end + 3:
        yield _NearCue(strong[0], "strong", link)
        return
    for shape, rule in _SHAPES:
        if match := rule.search(text[start : min(end, words_end)]):
            left, right = trimmed(text, start + match.start(1), start + match.end(1))
            if right - left <= MAX_ACTION_CHARS:
                yield _NearCue(words_span(clause, left, right), shape, link)
                return
    phrase = find_phrase(text, clause.low, start, words_end)
    if phrase and phrase.start - start > MAX_START_WORDS:
        phrase = None
    yield from _action_or_words(clause, phrase, start, words_end, link)


def _action_or_words(
    clause: Clause, phrase: ChangeSpan | None, start: int, end: int, link: str
) -> Iterator[_NearCue]:
    if phrase:
        yield _NearCue(setting_of(clause, phrase), "deed", link)
    elif (plain := plain_words(clause, start, end)) is not None:
        yield _NearCue(plain, shape_of(clause, plain), link)


def _candidate(
    sentence: Sentence, clause: Clause, rule: Rule, where: str, near: _NearCue, span: tuple[int, int]
) -> CandidateRemedy:
    change = near.change
    if where == "left":
        gap, between = span[0] - change.end, clause.low[change.end : span[0]]
    else:
        gap, between = change.start - span[1], clause.low[span[1] : change.start]
    optional = {
        "between:not": grammar("not").search(between),
        "stated:fully": grammar("fully").search(clause.text[span[0] : span[1]]),
        "opens:contrast": grammar("opens_contrast").search(sentence.text),
        "ends:shown": grammar("ends_shown").search(sentence.text),
    }
    features = (
        f"cue:{rule.id}",
        f"shape:{near.shape}",
        f"link:{near.link}",
        f"side:{where}",
        f"gap:{'near' if gap <= 12 else 'mid' if gap <= 45 else 'far'}",
        f"family:{rule['family']}",
        *(name for name, found in optional.items() if found),
    )
    moved = replace(change, start=clause.start + change.start, end=clause.start + change.end)
    return CandidateRemedy(sentence, moved, rule["outcome"], rule.id, features, clause.start)
