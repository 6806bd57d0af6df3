"""Remedies: what people say avoids the failure, helps in part, or was tried in vain.

In: a `Document`. Out: `Workaround`s with their quotes. Three ways of saying it are read: a sentence
("--moe-backend triton serves normally"), a section or label "Workaround", and two commands of which one
fails and one works. Later comments confirm or refute what earlier ones offer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import cast

from app.extract.evidence import cite
from app.extract.facts import Evidence, Outcome, Speaker, Workaround
from app.extract.lists import load
from app.extract.remedies.changes import MAX_ACTION_CHARS, Thing, find_things, kind_of, rules_of, trimmed
from app.extract.remedies.clauses import grammar
from app.extract.remedies.code_blocks import find_shown
from app.extract.remedies.commands import Attempt, SettingUse, find_difference, read_attempts
from app.extract.remedies.sentences import SECTION_CHANCE, Remedy, read_remedies, read_section_line
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import load_rules
from app.extract.text.document import Block, Document
from app.extract.text.sentences import Sentence, is_request, read_sentences

MAX_WORKAROUNDS = 12
MAX_SECTION_CODE_CHARS = 600
MAX_HEADING_CHARS = 60
"""A longer heading is a sentence somebody made bold; it opens no section."""

_LIST = load("workaround_sections")
_SECTIONS: tuple[str, ...] = tuple(_LIST["headings"])
_FAILED: tuple[str, ...] = tuple(_LIST["failed"])
_NO_SECTION: tuple[str, ...] = tuple(_LIST["no_section"])
_CODE_STARTS: tuple[str, ...] = tuple(_LIST["code_starts"])
_WHOLE = ("export ", "pip install", "pip3 install", "uv pip", "unset ")
_NAME = pattern(r"--?([A-Za-z][\w.-]*\w)|\b([A-Z][A-Z0-9]*_[A-Z0-9_]+)\b|\b([a-z]+(?:_[a-z0-9]+)+)\b")
_LABEL, _SOLUTION, _SOLVED = grammar("label"), grammar("solution"), grammar("solved")
_SOLUTION_LABEL, _SHARES = grammar("solution_label"), grammar("shares")
_GUIDE, _ADVICE = grammar("guide"), grammar("advice")
_OWN, _ITEM, _ITEM_MARK = grammar("own"), grammar("item"), grammar("item_mark")
COMMAND_CHANCE = 0.75

MAX_SOLUTION_CHARS = 250
"""How far below a line "Solution:" its commands stand."""


@dataclass(slots=True)
class _Kept:
    remedy: Remedy
    confirmed: set[str] = field(default_factory=set)
    refuted: set[str] = field(default_factory=set)


def find_workarounds(document: Document) -> tuple[tuple[Workaround, Evidence], ...]:
    """All remedies that people tell of, in reading order, each once, with the quote of its action."""
    kept: dict[frozenset[str], _Kept] = {}
    read = _of_sentences(document, own_only=True) if is_request(document) else _read_all(document)
    remedies = sorted(read, key=lambda r: (_rank(document, r.source), r.start))
    for remedy in remedies:
        _keep(kept, remedy)
    _count_comments(document, kept)
    return tuple(_made(document, item) for item in list(kept.values())[:MAX_WORKAROUNDS])


def _read_all(document: Document) -> Iterator[Remedy]:
    said = tuple(_of_sentences(document))
    yield from said
    attempts: tuple[Attempt, ...] | None = None
    shown = find_shown(document, {(remedy.source, remedy.start) for remedy in said})
    solved = _solution_places(document)
    for block in document.of_kind("code"):
        if len(block.text) > MAX_SECTION_CODE_CHARS:
            continue
        outcome = _section_outcome(document.issue.title, block.heading)
        is_below = any(source == block.source and a <= block.start < b for source, a, b in solved)
        if outcome is None and (block in shown or is_below):
            outcome = "works"
        if outcome:
            attempts = read_attempts(document) if attempts is None else attempts
            yield from _of_code(document, block, outcome, attempts)
    if "workaround" in document.issue.body.lower() or "works" in document.issue.body:
        attempts = read_attempts(document) if attempts is None else attempts
        yield from _of_attempts(attempts)


def _of_sentences(document: Document, *, own_only: bool = False) -> Iterator[Remedy]:
    """What sentences tell; of a proposal or a request only what its writer says he does himself."""
    title = document.issue.title
    is_guide = bool(_GUIDE.search(title))
    previous: Sentence | None = None
    label: Outcome | None = None
    for sentence in read_sentences(document):
        label = _labelled(title, sentence, previous, label, own_only=own_only)
        section = None if sentence.is_heading or own_only else _section_outcome(title, sentence.heading)
        section = section or label
        if section is None and is_guide and _ADVICE.search(sentence.text):
            section = "works"
        is_told = not (own_only or sentence.is_proposal) or bool(_OWN.search(sentence.text))
        remedies = read_remedies(sentence, previous) if is_told else ()
        if not remedies and section and not sentence.low.endswith("?"):
            remedies = read_section_line(sentence, section)
        yield from remedies
        previous = sentence


def _labelled(
    title: str, sentence: Sentence, previous: Sentence | None, label: Outcome | None, *, own_only: bool
) -> Outcome | None:
    """What a label "Workaround:" promises of this line: the next one, or the list that begins there."""
    if previous is None or previous.source != sentence.source or sentence.is_heading:
        return None
    if _LABEL.search(previous.text):
        return _section_outcome(title, previous.text) if _OWN.search(previous.text) or not own_only else None
    is_item = _ITEM.search(sentence.text) or _ITEM_MARK.search(previous.text)
    return label if is_item else None


def _solution_places(document: Document) -> list[tuple[str, int, int]]:
    """What stands below a line "Solution:", if its writer shares what helped and does not only propose."""
    if "olution" not in document.issue.body or not _SHARES.search(document.issue.body):
        return []
    return [
        (sentence.source, sentence.end, sentence.end + MAX_SOLUTION_CHARS)
        for sentence in read_sentences(document)
        if _SOLUTION_LABEL.search(sentence.text) and not sentence.is_proposal
    ]


@lru_cache(maxsize=512)
def _section_outcome(title: str, heading: str) -> Outcome | None:
    """What a heading, or a label on a line of its own, promises of the lines below it."""
    if not heading or len(heading) > MAX_HEADING_CHARS:
        return None
    low = heading.lower()
    if any(word in low for word in _NO_SECTION):
        return None
    if not any(word in low for word in _SECTIONS):
        is_solved = _SOLVED.search(title) or _SOLVED.search(heading)
        return "works" if _SOLUTION.search(heading) and is_solved else None
    return "fails" if any(word in low for word in _FAILED) else "works"


def _of_attempts(attempts: tuple[Attempt, ...]) -> Iterator[Remedy]:
    """What the working command has that the failing one lacks."""
    if not any(attempt.result == "fails" or attempt.is_workaround for attempt in attempts):
        return
    for attempt in attempts:
        if attempt.is_workaround or attempt.result == "works":
            for use in find_difference(attempt, attempts):
                yield _of_use(attempt, use, "works", "workaround.command_difference")


def _of_use(attempt: Attempt, use: SettingUse, outcome: Outcome, rule: str) -> Remedy:
    offset = use.start - attempt.start
    action = attempt.command[offset : offset + use.end - use.start]
    is_flag = action.startswith("-")
    return Remedy(
        action,
        attempt.source,
        use.start,
        use.end,
        "flag" if is_flag else "env",
        outcome,
        rule,
        COMMAND_CHANCE,
    )


def _of_code(
    document: Document, block: Block, outcome: Outcome, attempts: tuple[Attempt, ...]
) -> Iterator[Remedy]:
    """A short command or setting below a heading "Workaround": its pins, exports and bare flags."""
    mine = tuple(a for a in attempts if a.source == block.source and block.start <= a.start < block.end)
    for attempt in mine:
        if uses := find_difference(attempt, tuple(a for a in attempts if a not in mine)):
            yield from (_of_use(attempt, use, outcome, "workaround.command_difference") for use in uses)
            return
    for line in block.lines:
        text = line.text
        if not text.lstrip("$ ").startswith(_CODE_STARTS):
            continue
        for thing in find_things(text, text.lower()) or _whole_command(text):
            start, end = line.start + thing.start, line.start + thing.end
            action = document.sources[block.source][start:end]
            yield Remedy(
                action,
                block.source,
                start,
                end,
                thing.kind,
                outcome,
                "workaround.section_code",
                SECTION_CHANCE,
            )


def _whole_command(text: str) -> tuple[Thing, ...]:
    """A short command that sets or installs something and names no setting of its own."""
    start, end = trimmed(text, len(text) - len(text.lstrip("$ ")), len(text))
    is_one = text.startswith(_WHOLE, start) and end - start <= MAX_ACTION_CHARS
    return (Thing(start, end, kind_of(text[start:end].lower()), "thing.command"),) if is_one else ()


def _rank(document: Document, source: str) -> int:
    return list(document.sources).index(source)


def _key(action: str) -> frozenset[str]:
    """What an action changes, however it is spelled: what it is called, the settings' names, or its words."""
    if same := next((rule.id for rule in load_rules("same_change") if rule.pattern.search(action)), None):
        return frozenset({same})
    names = {
        (m.group(1) or m.group(2) or m.group(3)).lower().replace("-", "_") for m in _NAME.finditer(action)
    }
    names = {name.removeprefix("no_") for name in names if "_" in name or action.startswith("-")}
    return frozenset(names) if names else frozenset({" ".join(action.lower().split())})


def _keep(kept: dict[frozenset[str], _Kept], remedy: Remedy) -> None:
    """One entry per change: the first telling stays, later ones confirm or refute it."""
    key = _key(remedy.action)
    item = kept.get(key)
    if item is None:
        kept[key] = _Kept(remedy)
        return
    was_vain, is_vain = item.remedy.outcome == "fails", remedy.outcome == "fails"
    if item.remedy.source == remedy.source:
        if was_vain != is_vain:
            kept[key] = _Kept(remedy if is_vain else item.remedy, item.confirmed, item.refuted)
    elif was_vain == is_vain:
        if not is_vain:
            item.confirmed.add(remedy.source)
    elif is_vain and remedy.source.startswith("comment"):
        item.refuted.add(remedy.source)
    elif is_vain or item.remedy.source == "title":
        kept[key] = _Kept(remedy)
    else:
        item.confirmed.add(remedy.source)


def _count_comments(document: Document, kept: dict[frozenset[str], _Kept]) -> None:
    """Later comments that say an earlier remedy worked for them, or did not."""
    helpful = [item for item in kept.values() if item.remedy.outcome != "fails"]
    if not helpful:
        return
    own = {item.remedy.source for item in kept.values()}
    for source, text in document.sources.items():
        said = _said(text) if source.startswith("comment") else None
        if said is None:
            continue
        place = _rank(document, source)
        earlier = [item for item in helpful if _rank(document, item.remedy.source) < place]
        named = [item for item in earlier if _names(item, text)]
        for item in named or ([] if source in own else earlier[-1:]):
            (item.refuted if said == "refute" else item.confirmed).add(source)


def _said(text: str) -> str | None:
    """Whether a comment confirms ("works for me") or refutes ("didn't help")."""
    for part in ("refute", "confirm"):
        for rule in rules_of(part):
            if rule.pattern.search(text):
                return part
    return None


def _names(item: _Kept, text: str) -> bool:
    """Whether a comment names the setting of a remedy, however it is spelled."""
    key = _key(item.remedy.action)
    if same := next((rule for rule in load_rules("same_change") if rule.id in key), None):
        return bool(same.pattern.search(text))
    low = text.lower().replace("-", "_")
    return any(name.replace("-", "_") in low for name in key)


def _made(document: Document, item: _Kept) -> tuple[Workaround, Evidence]:
    remedy = item.remedy
    action = _without_opened(remedy.action)
    workaround = Workaround(
        action=action,
        kind=remedy.kind,
        outcome=remedy.outcome,
        source=remedy.source,
        by=cast("Speaker", document.speaker.get(remedy.source, "other")),
        confirmed_by=len(item.confirmed - item.refuted),
        refuted_by=len(item.refuted),
    )
    quote = document.sources[remedy.source][remedy.start : remedy.end]
    end = remedy.start + len(action) if quote == remedy.action else remedy.end
    span = (remedy.source, remedy.start, end)
    return workaround, cite(document, "workarounds", action, span, remedy.rule, remedy.chance)


def _without_opened(action: str) -> str:
    """An action without signs at its end that open what is no part of it."""
    text = action.rstrip()
    while text and (text[-1] in "([{,;:" or (text[-1] == "`" and text.count("`") % 2)):
        text = text[:-1].rstrip()
    return text or action
