"""Remedies: what people say avoids the failure, helps in part, or was tried in vain.

In: a `Document`. Out: `Workaround`s with their quotes. Three ways of saying it are read: a sentence
("--moe-backend triton serves normally"), a section or label "Workaround", and two commands of which one
fails and one works. Later comments confirm or refute what earlier ones offer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

from app.extract.attempts import Attempt, SettingUse, find_difference, read_attempts
from app.extract.changes import find_things, rules_of
from app.extract.document import Block, Document
from app.extract.evidence import cite
from app.extract.facts import Evidence, Outcome, Speaker, Workaround
from app.extract.lists import load
from app.extract.narrative import Sentence, is_request, read_sentences
from app.extract.patterns import pattern
from app.extract.remedies import Remedy, read_remedies, read_section_line

MAX_WORKAROUNDS = 12
MAX_SECTION_CODE_CHARS = 600
MAX_HEADING_CHARS = 60
"""A longer heading is a sentence somebody made bold; it opens no section."""

_LIST = load("workaround_sections")
_SECTIONS: tuple[str, ...] = tuple(_LIST["headings"])
_FAILED: tuple[str, ...] = tuple(_LIST["failed"])
_NO_SECTION: tuple[str, ...] = tuple(_LIST["no_section"])
_CODE_STARTS: tuple[str, ...] = tuple(_LIST["code_starts"])
_NAME = pattern(r"--?([A-Za-z][\w.-]*\w)|\b([A-Z][A-Z0-9]*_[A-Z0-9_]+)\b|\b([a-z]+(?:_[a-z0-9]+)+)\b")
_CONFIDENCE = {"works": 0.8, "partial": 0.7, "fails": 0.75}


@dataclass(slots=True)
class _Kept:
    remedy: Remedy
    confirmed: set[str] = field(default_factory=set)
    refuted: set[str] = field(default_factory=set)


def find_workarounds(document: Document) -> tuple[tuple[Workaround, Evidence], ...]:
    """All remedies that people tell of, in reading order, each once, with the quote of its action."""
    if is_request(document):
        return ()
    kept: dict[frozenset[str], _Kept] = {}
    remedies = sorted(_read_all(document), key=lambda r: (_rank(document, r.source), r.start))
    for remedy in remedies:
        _keep(kept, remedy)
    _count_comments(document, kept)
    return tuple(_made(document, item) for item in list(kept.values())[:MAX_WORKAROUNDS])


def _read_all(document: Document) -> Iterator[Remedy]:
    attempts: tuple[Attempt, ...] | None = None
    previous: Sentence | None = None
    for sentence in read_sentences(document):
        section = None if sentence.is_heading else _section_outcome(sentence.heading)
        remedies = () if sentence.is_proposal else read_remedies(sentence, previous)
        if not remedies and section and not sentence.low.endswith("?"):
            remedies = read_section_line(sentence, section)
        yield from remedies
        previous = sentence
    for block in document.of_kind("code"):
        outcome = _section_outcome(block.heading)
        if outcome and len(block.text) <= MAX_SECTION_CODE_CHARS:
            attempts = read_attempts(document) if attempts is None else attempts
            yield from _of_code(document, block, outcome, attempts)
    if "workaround" in document.issue.body.lower() or "works" in document.issue.body:
        attempts = read_attempts(document) if attempts is None else attempts
        yield from _of_attempts(attempts)


def _section_outcome(heading: str) -> Outcome | None:
    """What a heading promises of the lines below it."""
    if not heading or len(heading) > MAX_HEADING_CHARS:
        return None
    low = heading.lower()
    if not any(word in low for word in _SECTIONS) or any(word in low for word in _NO_SECTION):
        return None
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
    return Remedy(action, attempt.source, use.start, use.end, "flag" if is_flag else "env", outcome, rule)


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
        for thing in find_things(text, text.lower()):
            start, end = line.start + thing.start, line.start + thing.end
            action = document.sources[block.source][start:end]
            yield Remedy(action, block.source, start, end, thing.kind, outcome, "workaround.section_code")


def _rank(document: Document, source: str) -> int:
    return list(document.sources).index(source)


def _key(action: str) -> frozenset[str]:
    """What an action changes, however it is spelled: the settings' names, or its words."""
    names = {
        (m.group(1) or m.group(2) or m.group(3)).lower().replace("-", "_") for m in _NAME.finditer(action)
    }  # fmt: skip
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
    low = text.lower()
    for part in ("refute", "confirm"):
        for rule in rules_of(part):
            if any(word in low for word in rule["words"]) and rule.pattern.search(text):
                return part
    return None


def _names(item: _Kept, text: str) -> bool:
    """Whether a comment names the setting of a remedy, however it is spelled."""
    low = text.lower().replace("-", "_")
    return any(name.replace("-", "_") in low for name in _key(item.remedy.action))


def _made(document: Document, item: _Kept) -> tuple[Workaround, Evidence]:
    remedy = item.remedy
    workaround = Workaround(
        action=remedy.action, kind=remedy.kind, outcome=remedy.outcome, source=remedy.source,
        by=cast("Speaker", document.speaker.get(remedy.source, "other")),
        confirmed_by=len(item.confirmed - item.refuted), refuted_by=len(item.refuted),
    )  # fmt: skip
    span = (remedy.source, remedy.start, remedy.end)
    confidence = _CONFIDENCE[remedy.outcome]
    return workaround, cite(document, "workarounds", remedy.action, span, remedy.rule, confidence)
