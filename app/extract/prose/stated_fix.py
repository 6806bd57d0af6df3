"""The fix that people name.

In: a `Document`. Out: the pull request that people say fixes the failure, its state and release. Not every
pull request that is mentioned is a fix: a culprit, a revert's target or a related one is not. One of another
repository is named with it, as `owner/name#1`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from app.extract.evidence import cite
from app.extract.facts import Evidence, Fix, FixState
from app.extract.prose.mentions import foreign_words
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import Rule, load_rule_set
from app.extract.text.document import Document
from app.extract.text.sentences import Sentence, is_request, read_sentences

_NUMBER = pattern(
    r"((?:[a-z0-9][\w-]*/[a-z0-9][\w.-]*)?)#(\d{3,6})\b|github\.com/([\w-]+/[\w.-]+)/pull/(\d{1,6})",
    ignore_case=True,
)
_WORDS_BEFORE = 24
_VERSION = pattern(r"\bv?(\d+\.\d+\.\d+(?:\.?(?:post|rc)\d+)?)\b")
_TAKEN_BACK = ("however", "unfortunately", "but it still", "but the", "still,", "但是", "但")
_RANK = {"fixed": 3, "merged_unreleased": 2, "in_progress": 1}


@dataclass(frozen=True, slots=True)
class _StatedFix:
    rank: tuple[int, int, int]
    fix: Fix
    evidence: Evidence


def find_fix(document: Document) -> tuple[Fix | None, Evidence | None]:
    """The fix that is reported to work best: one that was seen to help before one that was only opened."""
    if is_request(document):
        return None, None
    best: _StatedFix | None = None
    sentences = read_sentences(document)
    for order, sentence in enumerate(sentences):
        if "#" not in sentence.text and "/pull/" not in sentence.text:
            continue
        after = sentences[order + 1] if order + 1 < len(sentences) else None
        if after is not None and after.source == sentence.source and after.low.startswith(_TAKEN_BACK):
            continue
        fix = _read(document, sentence, order)
        if fix is not None and (best is None or fix.rank > best.rank):
            best = fix
    return (best.fix, best.evidence) if best else (None, None)


def _read(document: Document, sentence: Sentence, order: int) -> _StatedFix | None:
    for rule in load_rule_set("stated_fix").meeting(sentence.text):
        match = rule.pattern.search(sentence.text)
        if match is None or not (found := _name(document, sentence.text, match.span(0))):
            continue
        if rule.id == "fix.submitted" and "issue" in match.group(0).lower():
            continue
        if rule["state"] == "no":
            return None
        return _stated(document, sentence, rule, found, order)
    return None


def _name(document: Document, text: str, span: tuple[int, int]) -> str | None:
    """The pull request that a part of a sentence names: `#1`, or `owner/name#1` of another repository."""
    own, repo = document.issue.number, document.issue.repo
    for match in _NUMBER.finditer(text):
        name = match.group(1) or match.group(3) or repo
        number = int(match.group(2) or match.group(4))
        if not span[0] <= match.end(0) <= span[1] or (number == own and name.lower() == repo.lower()):
            continue
        before = text[max(0, match.start(0) - _WORDS_BEFORE) : match.start(0)].lower().rstrip(" ([*_`")
        if name == repo and before.endswith(foreign_words(repo)):
            continue
        return f"#{number}" if name.lower() == repo.lower() else f"{name}#{number}"
    return None


def _stated(document: Document, sentence: Sentence, rule: Rule, name: str, order: int) -> _StatedFix:
    state = cast("FixState", rule["state"])
    version: Any = _VERSION.search(sentence.text) if rule.extra.get("releases") else None
    released = version.group(1) if version else None
    if state == "merged_unreleased" and released:
        state = "fixed"
    by_maintainer = document.speaker.get(sentence.source) == "maintainer"
    fix = Fix(state=state, pr=name, released_in=released, source=sentence.source)
    evidence = cite(
        document, "fix", name, sentence.span(0, len(sentence.text)), rule.id, 0.85 if by_maintainer else 0.75
    )
    return _StatedFix((_RANK.get(state, 0), int(rule["weight"]), order), fix, evidence)
