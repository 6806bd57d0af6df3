"""What was changed: flags, variables, keyword arguments, versions, and changes told in words.

In: a text and its lower-case form. Out: `Thing`s, spans of that text. Which words are things is data
(`lists/workarounds.toml`, `lists/phrases.toml`); here their edges are found: a value, "without" before
it, "is disabled" behind it, several things enumerated as one change.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

from app.extract.facts import WorkaroundKind
from app.extract.lists import load
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import Rule, load_rules

MAX_ACTION_CHARS = 140
MIN_PHRASE_CHARS = 6
MAX_OFF_CHARS = 14
MAX_DEGREE_CHARS = 24

_LIST = load("workarounds")
_PHRASES = load("phrases")
_TRAILING: tuple[str, ...] = tuple(" " + word for word in _LIST["trailing"])
_OFF: tuple[str, ...] = tuple(_LIST["off"])
_DEGREES: tuple[str, ...] = tuple(_LIST["degrees"])
_SWITCH_STARTS: tuple[str, ...] = tuple(_LIST["switch_starts"])
_SWITCHES = frozenset(load("commands")["switches"]["names"])
_KINDS: dict[str, list[str]] = _PHRASES["kinds"]
_AND = frozenset({",", "and", "+", "plus", ", and", "&", "with", "together with", "和", "、"})
_SIGNS_BEHIND = " .,;:`*\"'。，\n\r\t"
_SIGNS_BEFORE = " .,;:`*\"'\n\t-•"
_ENDINGS = "(?:e|es|s|ed|ing|ting|ning|ping|ying|y|ies|ied)?"
_IS_OFF = pattern(
    r"^([`\"' ]*(?:flag |option )?(?:is|are|was|being|set to)? ?"
    r"(?:dropped|removed|disabled|(?:turned |switched )?off|unset|omitted))\b"
)
_TO_VALUE = pattern(r"^[`\"']* (?:to|of|from \S+ to) [`\"']?\d(?:[\w.]*\w)?")
_VERB = pattern(
    r"(?:^|[\s(`*,])((?:" + "|".join(_PHRASES["verbs"]) + r")" + _ENDINGS + r"\b[ :]"
    r"(?:[^,;!?()\n]|\(\)){3,110})"
    r"|((?:" + "|".join(_PHRASES["zh_verbs"]) + r")[^，,。；\n]{2,50})",
    ignore_case=True,
)


@dataclass(frozen=True, slots=True)
class Thing:
    """Something that was changed: a span of a text."""

    start: int
    end: int
    kind: WorkaroundKind
    rule: str


@lru_cache(maxsize=8)
def rules_of(part: str) -> tuple[Rule, ...]:
    """The rules of one part of the list: "cue", "thing", "confirm" or "refute"."""
    return tuple(rule for rule in load_rules("workarounds") if rule["part"] == part)


def find_things(text: str, low: str) -> tuple[Thing, ...]:
    """All flags, variables, keywords, pins and version changes in a text, those enumerated joined to one."""
    spans = _spans(text, low)
    told = (_with_degree(low, _with_negator(low, thing)) for thing in spans)
    return tuple(_joined(text, (thing for thing in told if thing is not None)))


def find_names(text: str, low: str) -> tuple[Thing, ...]:
    """The settings a text names, with or without a value: what a later "it" can mean."""
    return tuple(thing for thing in _spans(text, low) if thing.kind in ("flag", "env"))


def _spans(text: str, low: str) -> list[Thing]:
    spans: list[Thing] = []
    for rule in rules_of("thing"):
        if not any(word in low for word in rule["words"]):
            continue
        for match in rule.pattern.finditer(text):
            start, end = match.span(1) if rule.pattern.groups and match.group(1) else match.span()
            if not any(start < other.end and other.start < end for other in spans):
                spans.append(Thing(start, end, rule["kind"], rule.id))
    return sorted(spans, key=lambda thing: thing.start)


def find_phrase(text: str, low: str, start: int, end: int, *, first: bool) -> Thing | None:
    """A change told in words between two places: "turning off chunking"; the first or the last one."""
    best: Thing | None = None
    for match in _VERB.finditer(text[start:end]):
        group = 1 if match.group(1) else 2
        left, right = trimmed(text, start + match.start(group), start + match.end(group))
        if low[:left].endswith(" not "):
            left -= len("not ")
        if (
            text.count("`", left, right) % 2
            and 0 < (close := text.find("`", right)) <= left + MAX_ACTION_CHARS
        ):
            right = close
        if not MIN_PHRASE_CHARS <= right - left <= MAX_ACTION_CHARS:
            continue
        best = Thing(left, right, kind_of(low[left:right]), "thing.phrase")
        if first:
            break
    return best


def opens_with_verb(text: str, start: int) -> bool:
    """Whether a line begins with a word of change: an instruction."""
    match = _VERB.search(text)
    return match is not None and match.start() <= start + 2


def kind_of(low: str) -> WorkaroundKind:
    """What kind of change a phrase tells of."""
    for kind, words in _KINDS.items():
        if any(word in low for word in words):
            return cast("WorkaroundKind", kind)
    return "config"


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """A span without signs around it and without the words that belong to the outcome."""
    while True:
        while end > start and text[end - 1] in _SIGNS_BEHIND:
            end -= 1
        while start < end and text[start] in _SIGNS_BEFORE:
            start += 1
        if text[end - 1 : end] == ")" and "(" not in text[start:end]:
            end -= 1
            continue
        tail = next((word for word in _TRAILING if text[start:end].lower().endswith(word)), None)
        if tail is None:
            return start, end
        end -= len(tail)


def _with_negator(low: str, thing: Thing) -> Thing:
    """`without --x` and `--x is disabled` are another change than `--x`."""
    if tail := _IS_OFF.search(low[thing.end : thing.end + 40]):
        return replace(thing, end=thing.end + tail.end(1))
    before = low[max(0, thing.start - MAX_OFF_CHARS) : thing.start].rstrip("`*\"'(").removesuffix("the ")
    for word in _OFF:
        if before.endswith(word):
            return replace(thing, start=low.rfind(word.rstrip(), 0, thing.start))
    return thing


def _with_degree(low: str, thing: Thing) -> Thing | None:
    """A flag that lacks its value is a change only behind "lowering", "adding" …: with that word."""
    name = low[thing.start : thing.end]
    if thing.rule != "thing.flag" or not name.startswith("--") or " " in name or "=" in name:
        return thing
    if name.startswith(_SWITCH_STARTS) or name.lstrip("-").replace("_", "-") in _SWITCHES:
        return thing
    left = max(0, thing.start - MAX_DEGREE_CHARS)
    at = max(low[left : thing.start].rfind(word) for word in _DEGREES)
    if at < 0:
        return None
    value = _TO_VALUE.search(low[thing.end : thing.end + MAX_DEGREE_CHARS])
    return replace(thing, start=left + at, end=thing.end + value.end() if value else thing.end)


def _joined(text: str, things: Iterable[Thing]) -> list[Thing]:
    """Things enumerated by "and" or a comma are one change."""
    joined: list[Thing] = []
    for thing in things:
        if joined and thing.start < joined[-1].end:
            continue
        if joined:
            between = text[joined[-1].end : thing.start].strip(" `*\"'()")
            is_one = between in _AND or (not between and thing.start - joined[-1].end <= 4)
            if is_one and thing.end - joined[-1].start <= MAX_ACTION_CHARS:
                joined[-1] = replace(joined[-1], end=thing.end)
                continue
        joined.append(thing)
    return joined
