"""Find changes in text (flags, variables, keyword arguments, versions, phrases) and their clauses.

In: a `Sentence`. Out: its `Clause`s, split at contrasts ("it works with X, but fails with Y" has two), each
with the `ChangeSpan`s found in it. The words that name a change are data (`lists/workarounds.toml`,
`lists/phrases.toml`); this module finds the span's limits: a value, "without" before it, "is disabled" after
it, several names enumerated as one change.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, cast

from app.extract.facts import WorkaroundKind
from app.extract.lists import load
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import RuleSet, load_rule_set, load_rules
from app.extract.text.sentences import Sentence

MAX_ACTION_CHARS = 140
MIN_PHRASE_CHARS = 6
MAX_OFF_CHARS = 14
MAX_DEGREE_CHARS = 24
MAX_BARE_WORDS = 12

_LIST = load("workarounds")
_PHRASES = load("phrases")
_NO_CUT: tuple[str, ...] = tuple(_LIST["no_cut"])
_NO_CONTRAST: tuple[str, ...] = tuple(_LIST["no_contrast"])
_SWITCH_STARTS: tuple[str, ...] = tuple(_LIST["switch_starts"])
_SWITCHES = frozenset(load("commands")["switches"]["names"])
_AND = frozenset({",", "and", "+", "plus", ", and", "&", "with", "together with", "和", "、"})
_TRAILING_PUNCTUATION = " .,;:`*\"'。，\n\r\t"
_LEADING_PUNCTUATION = " .,;:`*\"'\n\t-•"
_FLAG_START = pattern(r"^--?[A-Za-z]")
_SPLIT = pattern("|".join(_LIST["splits"]))
_NEXT_SENTENCE = pattern(r"\s(?:If|Please|This|For|However) [a-z]")
"""The start of another sentence, if a text has lost its full stops and line breaks."""

_IS_OFF = pattern(
    r"^([`\"' ]*(?:flag |option )?(?:is|are|was|being|set to)? ?"
    r"(?:dropped|removed|disabled|(?:turned |switched )?off|unset|omitted))\b"
)
_TO_VALUE = pattern(r"^[`\"']* (?:to|of|from \S+ to) [`\"']?\d(?:[\w.]*\w)?")
_ENDINGS = "(?:e|es|s|ed|ing|ting|ning|ping|ying|y|ies|ied)?"
_VERB = pattern(
    r"(?:^|[\s(`*,])((?:" + "|".join(_PHRASES["verbs"]) + r")" + _ENDINGS + r"\b[ :]"
    r"(?:[^,;!?()\n]|\(\)){3,110})"
    r"|((?:" + "|".join(_PHRASES["zh_verbs"]) + r")[^，,。；\n]{2,50})",
    ignore_case=True,
)
_SETUP = pattern(rf"(?i)\b(?:{'|'.join(load('helped')['setup'])})\b")


@dataclass(frozen=True, slots=True)
class ChangeSpan:
    """The span of a change in a text."""

    start: int
    end: int
    kind: WorkaroundKind
    rule: str


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a sentence. `start` is its offset in the sentence; `changes` are relative to the clause."""

    text: str
    low: str
    start: int
    changes: tuple[ChangeSpan, ...]


@lru_cache(maxsize=256)
def grammar(name: str) -> Any:
    """Return the pattern of one rule of `lists/grammar.toml`."""
    return next(rule.pattern for rule in load_rules("grammar") if rule.id == f"grammar.{name}")


def rules_of(part: str) -> RuleSet:
    """Return the rules of one part of `lists/workarounds.toml`: "cue", "thing", "confirm" or "refute"."""
    return load_rule_set("workarounds", "part", part)


def split_clauses(sentence: Sentence) -> tuple[Clause, ...]:
    """Split a sentence into clauses at contrasts, never inside code."""
    low = sentence.low
    marks = (
        mark
        for mark in (match.start() for match in _SPLIT.finditer(low))
        if low.count("`", 0, mark) % 2 == 0
        and not low.endswith(_NO_CONTRAST, 0, mark)
        and not low.startswith(_NO_CUT, mark)
    )
    edges = sorted({0, *marks, len(low)})
    return tuple(clause_of(sentence, a, b) for a, b in pairwise(edges) if b - a > 1)


def clause_of(sentence: Sentence, start: int = 0, end: int | None = None) -> Clause:
    """Return a sentence, or a part of it, as a clause."""
    text, low = sentence.text[start:end], sentence.low[start:end]
    return Clause(text, low, start, find_changes(text, low))


def find_changes(text: str, low: str) -> tuple[ChangeSpan, ...]:
    """Return all flags, variables, keywords, pins and version changes; an enumeration is one change."""
    spans = (_with_degree(low, _with_negator(low, span)) for span in find_names(text))
    return tuple(_joined(text, (span for span in spans if span is not None)))


def find_names(text: str) -> list[ChangeSpan]:
    """Return the settings and versions in a text, with or without a value, in order."""
    spans: list[ChangeSpan] = []
    for rule in rules_of("thing").meeting(text):
        for match in rule.pattern.finditer(text):
            start, end = match.span(1) if rule.pattern.groups and match.group(1) else match.span()
            if not any(start < other.end and other.start < end for other in spans):
                spans.append(ChangeSpan(start, end, rule["kind"], rule.id))
    return sorted(spans, key=lambda span: span.start)


def find_phrase(text: str, low: str, start: int, end: int) -> ChangeSpan | None:
    """Return the first change phrased in words within a range: "turning off chunking"."""
    for match in _VERB.finditer(text[start:end]):
        group = 1 if match.group(1) else 2
        left, right = trimmed(text, start + match.start(group), start + match.end(group))
        if low[:left].endswith(" not "):
            left -= len("not ")
        close = text.find("`", right)
        if text.count("`", left, right) % 2 and 0 < close <= left + MAX_ACTION_CHARS:
            right = close
        if MIN_PHRASE_CHARS <= right - left <= MAX_ACTION_CHARS:
            return ChangeSpan(left, right, kind_of(low[left:right]), "thing.phrase")
    return None


def opens_with_verb(text: str, start: int) -> bool:
    """True if a line begins with a verb of change, as an instruction does."""
    match = _VERB.search(text)
    return match is not None and match.start() <= start + 2


def kind_of(low: str) -> WorkaroundKind:
    """Return the kind of change that a phrase names."""
    for kind, words in _PHRASES["kinds"].items():
        if any(word in low for word in words):
            return cast("WorkaroundKind", kind)
    return "config"


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a span without the next sentence, surrounding punctuation and trailing outcome words."""
    if (following := _NEXT_SENTENCE.search(text[start:end])) and following.start() >= MIN_PHRASE_CHARS:
        end = start + following.start()
    while True:
        while end > start and text[end - 1] in _TRAILING_PUNCTUATION:
            end -= 1
        while start < end and text[start] in _LEADING_PUNCTUATION and not _FLAG_START.search(text[start:end]):
            start += 1
        if text[end - 1 : end] == ")" and "(" not in text[start:end]:
            end -= 1
            continue
        low = text[start:end].lower()
        tail = next((word for word in _LIST["trailing"] if low.endswith(f" {word}")), None)
        if tail is None:
            return start, end
        end -= len(tail) + 1


def plain_words(clause: Clause, start: int, end: int) -> ChangeSpan | None:
    """Return the plain words in a range, up to the link that follows their noun."""
    left, right = trimmed(clause.text, start, min(end, start + MAX_ACTION_CHARS))
    if not grammar("doing").search(clause.text[left:right]):
        after = clause.text.find(" ", left, right)
        link = grammar("next_link").search(clause.text[after + 1 : right]) if after > 0 else None
        left, right = trimmed(clause.text, left, after + 1 + link.start() if link else right)
    count = len(clause.text[left:right].split())
    is_short = right - left >= 2 and 1 <= count <= MAX_BARE_WORDS
    return words_span(clause, left, right) if is_short else None


def words_span(clause: Clause, start: int, end: int) -> ChangeSpan:
    return ChangeSpan(start, end, kind_of(clause.low[start:end]), "thing.words")


def shape_of(clause: Clause, change: ChangeSpan) -> str:
    """Classify plain words: action ("deed", "doing"), selectable setup ("soft"), or just words ("bare")."""
    words = clause.text[change.start : change.end]
    if grammar("deed_noun").search(words):
        return "deed"
    if grammar("doing").search(words):
        return "doing"
    return "soft" if _SETUP.search(words) else "bare"


def setting_of(clause: Clause, phrase: ChangeSpan) -> ChangeSpan:
    """Reduce a phrase to its only setting, if it has one: "adding --enforce-eager" to the flag."""
    inside = [c for c in clause.changes if phrase.start <= c.start and c.end <= phrase.end + 2]
    return inside[0] if len(inside) == 1 and inside[0].rule != "thing.env_name" else phrase


def _with_negator(low: str, span: ChangeSpan) -> ChangeSpan:
    """Extend a span by its negation: `without --x` and `--x is disabled` differ from `--x`."""
    if tail := _IS_OFF.search(low[span.end : span.end + 40]):
        return replace(span, end=span.end + tail.end(1))
    before = low[max(0, span.start - MAX_OFF_CHARS) : span.start].rstrip("`*\"'(").removesuffix("the ")
    for word in _LIST["off"]:
        if before.endswith(word):
            return replace(span, start=low.rfind(word.rstrip(), 0, span.start))
    return span


def _with_degree(low: str, span: ChangeSpan) -> ChangeSpan | None:
    """Extend a flag without its value by "lowering", "adding" …; None if no such word precedes it."""
    name = low[span.start : span.end]
    if span.rule != "thing.flag" or not name.startswith("--") or " " in name or "=" in name:
        return span
    if name.startswith(_SWITCH_STARTS) or name.lstrip("-").replace("_", "-") in _SWITCHES:
        return span
    left = max(0, span.start - MAX_DEGREE_CHARS)
    at = max(low[left : span.start].rfind(word) for word in _LIST["degrees"])
    if at < 0:
        return None
    value = _TO_VALUE.search(low[span.end : span.end + MAX_DEGREE_CHARS])
    return replace(span, start=left + at, end=span.end + value.end() if value else span.end)


def _joined(text: str, spans: Iterable[ChangeSpan]) -> list[ChangeSpan]:
    """Merge changes enumerated with "and" or a comma."""
    joined: list[ChangeSpan] = []
    for span in spans:
        if joined and span.start < joined[-1].end:
            continue
        if joined:
            between = text[joined[-1].end : span.start].strip(" `*\"'()")
            is_one = between in _AND or (not between and span.start - joined[-1].end <= 4)
            if is_one and span.end - joined[-1].start <= MAX_ACTION_CHARS:
                joined[-1] = replace(joined[-1], end=span.end)
                continue
        joined.append(span)
    return joined
