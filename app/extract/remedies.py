"""What one sentence says was changed, and what came of it.

In: a `Sentence`. Out: `Remedy`s: the words of the change, its kind, and whether it worked, worked in part
or was tried in vain. Outcome words ("cues") and changes ("things") are rules of `lists/workarounds.toml`;
here a cue finds the thing it speaks of. Negation decides first: a cure is only sold if nothing denies it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from app.extract.facts import Outcome, WorkaroundKind
from app.extract.lists import load
from app.extract.narrative import Sentence
from app.extract.patterns import pattern
from app.extract.rules import Rule, load_rules

MAX_ACTION_CHARS = 140
MIN_PHRASE_CHARS = 6
MAX_NEAR_GAP = 30
MAX_CUE_GAP = 60
"""How far a cue may stand from the thing it praises, for cues that chance words fit too."""
MAX_DENIAL_CHARS = 90
MAX_TRIED_GAP = 40
MAX_FLAGS = 3
"""A sentence with more flags is a command."""


_LIST = load("workarounds")
_PHRASES = load("phrases")
_GUARD: tuple[str, ...] = tuple(_LIST["guard"])
_HEDGES: tuple[str, ...] = tuple(_LIST["hedges"])
_TRAILING: tuple[str, ...] = tuple(" " + word for word in _LIST["trailing"])
_KINDS: dict[str, list[str]] = _PHRASES["kinds"]
_SWITCHES = frozenset(load("commands")["switches"]["names"])
_SWITCH_STARTS = ("--no-", "--disable", "--enable", "--skip", "--enforce", "--use", "--trust", "--force", "--allow", "--calculate")
_DEGREES = ("lower", "reduc", "increas", "decreas", "rais", "adjust", "chang", "limit", "add", "set", "pass", "using ", "remov", "unset")
_BOXES = ("- [", "* [", "[ ]", "[x]", "[X]")
_SPLITS = (", but ", " but ", "; ", ", however", ", although ", ", though ", ", yet ", ", while ", ", whereas ", "，但", "但是", "，不过")
_TRIED = ("tried", "attempted", "tested", "trying", "试过", "尝试", "试了")
_CHANGES = ("disabl", "setting", "changing", "reduc", "lower", "increas", "adjust", "switching", "upgrad", "downgrad", "adding",
            "removing", "turning", "using a", "reinstall", "using sing", "raising", "passing", "limiting", "modify",
            "swapp", "revert", "falling", "replac", "forcing")  # fmt: skip
_WITH = ("with", "using", "setting", "set", "adding", "passing", "when", "if", "after", "even", "用", "设置", "加上", "以及", "added")
_WENT_TO = ("downgrad", "upgrad", "reinstall", "roll", "revert", "back to", "updat", "switch", "tried", "pin", "降级", "升级", "different")
_OFF = ("without ", "disable ", "disabling ", "disabled ", "remove ", "removing ", "removed ", "unset ", "unsetting ",
        "dropping ", "omitting ", "no ", "not using ", "with out ", "去掉", "关闭", "禁用")  # fmt: skip
_NEGATIVE = (" not ", "n't ", "disabled", " off", "without", "with out", "single", " no ", "removed")
_PRAISE = tuple(f"without {many}{what}" for many in ("", "any ", "an ") for what in ("error", "issue", "problem", "crash", "fail", "exception", "warning", "trouble", "oom", "hang"))
_ZH_CHANGES = ("设", "关", "加", "改", "用", "换", "降", "升", "去掉", "配置")
_CONDITIONS = (" if ", " when ", " after ", " once ", " i ", " we ", " and ", " by ", " then ", " either ")
_SWITCHED_OFF = ("disabl", "without", "remov", "turning off", "turn off", "关闭", "禁用", "去掉")
_FAILURES = ("throws", "exception", " error", " fail", "crash", "hangs", "not work", "n't work", "broken", "slow", "stuck", "报错")
_BUTS = (" never ", " not ", "n't ", " fail", " error", " crash", " empty", " only ", "不")
_AND = frozenset({",", "and", "+", "plus", ", and", "&", "with", "together with", "和", "、"})
_IS_OFF = pattern(
    r"^([`\"' ]*(?:flag |option )?(?:is|are|was|being|set to)? ?(?:dropped|removed|disabled|(?:turned |switched )?off|unset|omitted))\b"
)
_TO_VALUE = pattern(r"^[`\"']* (?:to|of|from \S+ to) [`\"']?\d(?:[\w.]*\w)?")
_VERB = pattern(
    r"(?:^|[\s(`*,])((?:" + "|".join(_PHRASES["verbs"]) + r")(?:e|es|s|ed|ing|ting|ning|ping|ying|y|ies|ied)?\b[ :](?:[^,;!?()\n]|\(\)){3,110})"
    r"|((?:关闭|禁用|去掉|设置|改成|换成|改为|换用|加上|添加|升级|降级|回退|删除|注释)[^，,。；\n]{2,50})",
    ignore_case=True,
)


@dataclass(frozen=True, slots=True)
class Thing:
    """Something that was changed: a span of a sentence."""

    start: int
    end: int
    kind: WorkaroundKind
    rule: str


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
    text: str
    low: str
    start: int


@lru_cache(maxsize=4)
def _rules(part: str) -> tuple[Rule, ...]:
    return tuple(rule for rule in load_rules("workarounds") if rule["part"] == part)


def may_tell(sentence: Sentence) -> bool:
    """Whether a sentence has a word that any outcome rule could use: a plain test before the patterns."""
    return any(word in sentence.low for word in _GUARD)


def read_remedies(sentence: Sentence, previous: Sentence | None = None) -> tuple[Remedy, ...]:
    """What a sentence says of changes and their outcome.

    Args:
        sentence: the sentence to read.
        previous: the one before it in the same source; "it did not help" speaks of that one.
    """
    if not may_tell(sentence) or sentence.low.count(" --") > MAX_FLAGS or sentence.text.startswith(_BOXES):
        return ()
    clauses = _clauses(sentence)
    found: list[Remedy] = []
    before: _Clause | None = None
    for clause in clauses:
        remedies, is_denial = _of_clause(sentence, clause, before)
        is_denial = is_denial or (bool(found) and _takes_back(clause))
        if is_denial and not remedies and found and found[-1].outcome == "works":
            found[-1] = replace(found[-1], outcome="partial")
        found.extend(remedies)
        if not remedies and not found and is_denial and clause is clauses[0] and previous is not None:
            found.extend(_denied(previous, sentence))
        before = clause
    return tuple(found)


def find_things(text: str, low: str) -> tuple[Thing, ...]:
    """All flags, variables, keywords, pins and version changes in a text, those enumerated as one joined."""
    spans: list[Thing] = []
    for rule in _rules("thing"):
        if not any(word in low for word in rule["words"]):
            continue
        for match in rule.pattern.finditer(text):
            group = 1 if match.re.groups and match.group(1) else 0
            start, end = match.span(group)
            if not any(start < other.end and other.start < end for other in spans):
                spans.append(Thing(start, end, rule["kind"], rule.id))
    spans.sort(key=lambda thing: thing.start)
    told = (_with_degree(low, _with_negator(low, thing)) for thing in spans)
    return tuple(_joined(text, [thing for thing in told if thing is not None]))


def of_section(sentence: Sentence, outcome: Outcome) -> tuple[Remedy, ...]:
    """What a line under a heading "Workarounds" offers: its settings, or the whole of a short instruction."""
    things = find_things(sentence.text, sentence.low)
    if things:
        rule = "workaround.section"
        return tuple(_remedy(sentence, t.start, t.end, t.kind, outcome, rule) for t in things)
    start = 0
    while start < len(sentence.text) and not sentence.text[start].isalpha():
        start += 1
    match = _VERB.search(sentence.text)
    if match is None or match.start() > start + 2:
        return ()
    end = len(sentence.text)
    for sign in (" to find", " so that", " (", ", ", "; ", " — ", " – ", ": ", " until "):
        at = sentence.text.find(sign, start + MIN_PHRASE_CHARS)
        end = at if 0 <= at < end else end
    span = _trimmed(sentence.text, start, min(end, start + MAX_ACTION_CHARS))
    return (_remedy(sentence, *span, _kind_of(sentence.low[span[0] : span[1]]), outcome, "workaround.section"),)


def _takes_back(clause: _Clause) -> bool:
    """"… but it never calls a tool": the cure has a hole, unless the clause is on another change."""
    if "but" not in clause.low[:8] or not any(word in clause.low for word in _BUTS):
        return False
    return not find_things(clause.text, clause.low)


def _clauses(sentence: Sentence) -> list[_Clause]:
    marks = {0}
    for sign in _SPLITS:
        at = sentence.low.find(sign)
        while at >= 0:
            marks.add(at)
            at = sentence.low.find(sign, at + len(sign))
    edges = [*sorted(marks), len(sentence.text)]
    return [
        _Clause(sentence.text[left:right], sentence.low[left:right], left)
        for left, right in zip(edges, edges[1:], strict=False)
        if right - left > 1
    ]


def _of_clause(sentence: Sentence, clause: _Clause, before: _Clause | None) -> tuple[tuple[Remedy, ...], bool]:
    """The remedies of a clause, and whether it denies."""
    things: tuple[Thing, ...] | None = None
    is_wish = sentence.low.endswith(("?", "？")) or any(word in " " + clause.low for word in _HEDGES)
    for rule in _rules("cue"):
        if not any(word in clause.low for word in rule["words"]):
            continue
        if things is None:
            things = find_things(clause.text, clause.low)
        if rule["side"] == "follows":
            if not is_wish and (named := _followed(sentence, clause, things, rule)):
                return named, False
            continue
        match = rule.pattern.search(clause.text)
        if match is None:
            continue
        outcome = rule["outcome"]
        if outcome in ("fails", "blocked"):
            return _in_vain(sentence, clause, before, things, rule, match.start()), outcome == "fails"
        if is_wish:
            continue
        picked = _pick(clause, things, rule, match.start(), match.end())
        if picked:
            made = (_remedy(sentence, clause.start + t.start, clause.start + t.end, t.kind, outcome, rule.id) for t in picked)
            return tuple(made), False
    return (), False


def _followed(
    sentence: Sentence, clause: _Clause, things: tuple[Thing, ...], rule: Rule
) -> tuple[Remedy, ...]:
    for thing in things:
        if rule.pattern.search(clause.text[thing.end :]):
            start, end = clause.start + thing.start, clause.start + thing.end
            return (_remedy(sentence, start, end, thing.kind, "works", rule.id),)
    return ()


def _in_vain(
    sentence: Sentence, clause: _Clause, before: _Clause | None, things: tuple[Thing, ...], rule: Rule, start: int
) -> tuple[Remedy, ...]:
    """What was tried: named in the clause, or in the one before ("tried X, but it still fails")."""
    was_tried = any(word in sentence.low for word in _TRIED)
    if sentence.low.endswith(("?", "？")) or (rule["outcome"] == "blocked" and not was_tried):
        return ()
    for part, known, end in ((clause, things, start), (before, None, -1)):
        if part is None:
            continue
        is_change = was_tried or any(word in part.low for word in _CHANGES)
        named = find_things(part.text, part.low) if known is None else known
        if known is not None and rule["side"] in ("before", "after"):
            named = tuple(t for t in named if (t.end <= start + 1 if rule["side"] == "before" else t.start >= start))
        named = tuple(thing for thing in named if not _is_version_used(part, thing))
        if named and not is_change and rule["side"] == "both":
            named = tuple(thing for thing in named if part.low[: thing.start].rstrip(" `*(\"'").endswith(_WITH))
        if not named and is_change and rule["needs"] == "phrase":
            named = _tried_phrase(part, end if end >= 0 else len(part.text))
        if named:
            return tuple(
                _remedy(sentence, part.start + t.start, part.start + t.end, t.kind, "fails", rule.id)
                for t in named
            )
    return ()


def _is_version_used(part: _Clause, thing: Thing) -> bool:
    """A version somebody runs is no attempt at a cure; one somebody went to is."""
    if thing.kind != "version":
        return False
    around = part.low[max(0, thing.start - 24) : thing.end]
    return not any(word in around for word in _WENT_TO)


def _tried_phrase(part: _Clause, end: int) -> tuple[Thing, ...]:
    """A change in words: right behind "tried", or one that begins with a word of change."""
    at = max((part.low.find(word) for word in _TRIED), default=-1)
    start = max(at, 0)
    phrase = _phrase(part, start, end if end > start + MIN_PHRASE_CHARS else len(part.text), first=True)
    if phrase is None or " works" in part.low[phrase.start : phrase.end]:
        return ()
    low = part.low[phrase.start : phrase.end]
    is_near = at >= 0 and phrase.start - at <= MAX_TRIED_GAP
    return (phrase,) if is_near or low.startswith(_CHANGES) else ()


def _denied(previous: Sentence, sentence: Sentence) -> tuple[Remedy, ...]:
    """"It did not help" after "I tried X"."""
    is_short = len(sentence.text) <= MAX_DENIAL_CHARS and not sentence.low.endswith(("?", "？"))
    if previous.source != sentence.source or not is_short or not any(word in previous.low for word in _TRIED):
        return ()
    clause = _Clause(previous.text, previous.low, 0)
    things = find_things(previous.text, previous.low) or _tried_phrase(clause, len(previous.text))
    return tuple(
        _remedy(previous, t.start, t.end, t.kind, "fails", "workaround.denied_next") for t in things
    )


def _pick(clause: _Clause, things: tuple[Thing, ...], rule: Rule, start: int, end: int) -> list[Thing]:
    """The things a cue speaks of."""
    needs, side = rule["needs"], rule["side"]
    if side == "own":
        return _own(clause, rule)
    if rest := rule.extra.get("rest"):
        return _rest(clause, end, rest)
    if needs == "reduced":
        return _reduced(clause, start)
    usable = [t for t in things if needs in ("phrase", "version") or t.rule != "thing.version_change"]
    if needs == "restricted":
        usable = [t for t in usable if t.kind != "version" or "vllm" not in clause.low[t.start : t.end]]
    if needs == "version":
        usable = [t for t in usable if t.kind == "version"]
    reach = MAX_NEAR_GAP if rule.extra.get("near") else MAX_CUE_GAP if needs == "restricted" else MAX_ACTION_CHARS * 2
    left = [t for t in usable if start - reach <= t.end <= start + 1 and not _fails_between(clause, t.end, start)]
    if rule.extra.get("changed"):
        left = [t for t in left if any(word in clause.text[max(0, t.start - 14) : t.end] for word in _ZH_CHANGES)]
    right = [t for t in usable if t.start >= end - 1 or start < t.start < end]
    if side in ("before", "both") and left:
        return _nearest(clause, left, last=True)
    if side in ("after", "both") and right:
        return _nearest(clause, right, last=False)
    if needs in ("phrase", "restricted"):
        phrase = None
        if side in ("before", "both"):
            phrase = _phrase(clause, 0, start, first=False)
        if phrase is None and side in ("after", "both"):
            phrase = _phrase(clause, end, len(clause.text), first=True)
        if phrase is not None and _is_told(clause, phrase, rule, start):
            return [phrase]
    return []


def _own(clause: _Clause, rule: Rule) -> list[Thing]:
    """The thing is the rule's own first group."""
    match = rule.pattern.search(clause.text)
    if match is None:
        return []
    start, end = _trimmed(clause.text, *match.span(1))
    return [Thing(start, end, _kind_of(clause.low[start:end]), "thing.own")]


def _rest(clause: _Clause, end: int, rest: str) -> list[Thing]:
    """What follows the cue up to a comma, if it is a negation or the rule asks for no more."""
    stop = next((at for at in (clause.text.find(s, end + 3) for s in (", ", " which ")) if at > 0), len(clause.text))
    if rest == "negative" and not any(word in clause.low[max(0, end - 8) : stop + 1] + " " for word in _NEGATIVE):
        return []
    left = end
    for word in ("without", "with out"):
        if clause.low[:end].endswith(word):
            left = end - len(word)
    span = _trimmed(clause.text, left, min(stop, left + MAX_ACTION_CHARS))
    praise = clause.low[span[0] : span[1]]
    if span[1] - span[0] < MIN_PHRASE_CHARS or praise.startswith(_PRAISE):
        return []
    return [Thing(*span, _kind_of(clause.low[span[0] : span[1]]), "thing.rest")]


def _reduced(clause: _Clause, start: int) -> list[Thing]:
    for rule in _rules("reduced"):
        if any(word in clause.low for word in rule["words"]):
            match = rule.pattern.search(clause.text, start) if start else rule.pattern.search(clause.text)
            if match:
                return [Thing(match.start(), match.end(), rule["kind"], rule.id)]
    return []


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


def _phrase(clause: _Clause, start: int, end: int, *, first: bool) -> Thing | None:
    """A change in words between two places: "turning off chunking"."""
    best: Thing | None = None
    for match in _VERB.finditer(clause.text[start:end]):
        group = 1 if match.group(1) else 2
        left, right = _trimmed(clause.text, start + match.start(group), start + match.end(group))
        if right - left < MIN_PHRASE_CHARS or right - left > MAX_ACTION_CHARS:
            continue
        best = Thing(left, right, _kind_of(clause.low[left:right]), "thing.phrase")
        if first:
            break
    return best


def _is_told(clause: _Clause, phrase: Thing, rule: Rule, start: int) -> bool:
    """Whether a cue that also fits chance words ("it works") really speaks of the phrase."""
    low = clause.low[phrase.start : phrase.end]
    if _fails_between(clause, phrase.end, start):
        return False
    if rule["needs"] == "restricted":
        return low.startswith(_SWITCHED_OFF)
    if rule.extra.get("near"):
        return low.startswith(_CHANGES) and "," not in clause.text[phrase.end : start]
    return phrase.start > start or _is_done(clause, phrase)


def _is_done(clause: _Clause, phrase: Thing) -> bool:
    """Whether a phrase before its cue tells of a deed: "turning off …", "if I switch …", not "we don't pass …"."""
    word = clause.low[phrase.start : phrase.end].split(" ", 1)[0]
    before = clause.low[max(0, phrase.start - 40) : phrase.start].rstrip(" *`(,")
    if before.endswith(("n't", " not", "cannot", "n’t")):
        return False
    return word.endswith("ing") or not before.strip("- 1234567890.") or any(w in f" {before} " for w in _CONDITIONS)


def _fails_between(clause: _Clause, left: int, right: int) -> bool:
    """"X throws an error, it works with Y" says nothing good of X."""
    between = clause.low[left:right]
    return any(word in between for word in _FAILURES)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """A span without signs and without the words that belong to the cue."""
    while True:
        while end > start and text[end - 1] in " .,;:`*\"'。，\n\r\t":
            end -= 1
        while start < end and text[start] in " .,;:`*\"'\n\t-•":
            start += 1
        tail = next((word for word in _TRAILING if text[start:end].lower().endswith(word)), None)
        if tail is None:
            return start, end
        end -= len(tail)


def _with_negator(low: str, thing: Thing) -> Thing:
    """`without --x` is another change than `--x`."""
    before = low[max(0, thing.start - 14) : thing.start].rstrip("`*\"'(")
    before = before.removesuffix("the ")
    if tail := _IS_OFF.search(low[thing.end : thing.end + 40]):
        return replace(thing, end=thing.end + tail.end(1))
    for word in _OFF:
        if before.endswith(word):
            start = low.rfind(word.rstrip(), 0, thing.start)
            return replace(thing, start=start)
    return thing


def _with_degree(low: str, thing: Thing) -> Thing | None:
    """A flag that needs a value and has none is a change only behind "lowering", "adding" ...: with that word."""
    name = low[thing.start : thing.end]
    if thing.rule != "thing.flag" or " " in name or "=" in name or name.startswith(_SWITCH_STARTS):
        return thing
    if name.lstrip("-").replace("_", "-") in _SWITCHES or not name.startswith("--"):
        return thing
    left = max(0, thing.start - 24)
    before = low[left : thing.start]
    at = max(before.rfind(word) for word in _DEGREES)
    if at < 0:
        return None
    value = _TO_VALUE.search(low[thing.end : thing.end + 24])
    return replace(thing, start=left + at, end=thing.end + value.end() if value else thing.end)


def _joined(text: str, things: list[Thing]) -> list[Thing]:
    """Things enumerated by "and" or a comma are one change."""
    joined: list[Thing] = []
    for thing in things:
        if joined:
            between = text[joined[-1].end : thing.start].strip(" `*\"'()")
            is_one = between in _AND or (not between and thing.start - joined[-1].end <= 4)
            if is_one and thing.end - joined[-1].start <= MAX_ACTION_CHARS:
                joined[-1] = replace(joined[-1], end=thing.end)
                continue
        joined.append(thing)
    return joined


def _kind_of(low: str) -> WorkaroundKind:
    for kind, words in _KINDS.items():
        if any(word in low for word in words):
            return kind  # type: ignore[return-value]
    return "config"


def _remedy(
    sentence: Sentence, start: int, end: int, kind: WorkaroundKind, outcome: Outcome, rule: str
) -> Remedy:
    source, left, right = sentence.span(start, end)
    return Remedy(sentence.text[start:end], source, left, right, kind, outcome, rule)
