"""Issues and pull requests that an issue's people mention.

In: a `Document`. Out: numbers of the same repository, `owner/name#n` of others, and the quotes; the quote's
rule names the relation that the words around state (`related.duplicate`, `.same`, `.similar`, `.culprit`,
`.fix`, or `.mention`). Only what people say is looked at: a `#4` in a log is a frame or a build step.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from app.extract.evidence import cite
from app.extract.facts import Evidence
from app.extract.lists import load
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import load_rule_set
from app.extract.text.document import Block, Document

MIN_BARE_NUMBER = 20
"""A bare `#7` is a list item or a step; vLLM's first issues are hardly ever meant."""

MAX_LINK_CHARS = 120
MIN_SENTENCE_WORDS = 3
RELATION_CHARS = 60
"""How far around a number the words of its relation are looked for, within its sentence."""
SENTENCE_WORD_CHARS = 3
"""What stands behind a full stop is a sentence if it has a word of so many letters."""

_LIST = load("related")
_NOT_BEFORE: tuple[str, ...] = tuple(_LIST["not_before"])
_NOTHING_BEFORE: tuple[str, ...] = tuple(_LIST["issue_words"])
_FOREIGN: tuple[str, ...] = tuple(_LIST["foreign_projects"])
_OWN = ("vllm", "vllm issue", "vllm pr")
"""Names of vLLM itself, which are foreign in the issues of another project."""
_HASH = pattern(r"(?:^|[^\w#&/.=-])((?:[Gg][Hh]-|#)(\d{1,6}))\b")
_FULL = pattern(r"\b([A-Za-z0-9][\w-]*/[A-Za-z0-9][\w.-]*)#(\d{1,6})\b")
_URL = pattern(
    r"(?:https?://)?(?:www\.)?(?:redirect\.)?github\.com/([\w-]+/[\w.-]+)/(?:issues|pull)/(\d{1,6})",
    ignore_case=True,
)
_LINK = pattern(
    r"^\]\((?:https?://)?(?:www\.)?github\.com/([\w-]+/[\w.-]+)/(?:(?:issues|pull)/(\d+))?", ignore_case=True
)
_LOG_LINE = pattern(r"^(?:\s|\[|\(|\||#|>>>|\w+Error|(?:INFO|WARNING|ERROR|DEBUG|CRITICAL)\b|\d|File \")")
_Found = tuple[str, int, int, int]
"""Repository in lower case, number, start, end in the block."""


def find_related(document: Document) -> tuple[tuple[int, ...], tuple[str, ...], tuple[Evidence, ...]]:
    """The issues and pull requests mentioned, each once, in reading order.

    Returns:
        Numbers of the same repository without the issue's own; `owner/name#n` of other repositories;
        evidence for both (fields `related` and `related_elsewhere`).
    """
    here: dict[int, Evidence] = {}
    elsewhere: dict[str, Evidence] = {}
    own, repo = document.issue.number, document.issue.repo.lower()
    for block in document.blocks:
        if "#" not in block.text and "github.com/" not in block.text and "GH-" not in block.text:
            continue
        found = _below_code(document, block, repo) if block.kind == "code" else _mentions(block.text, repo)
        for name, number, start, end in found:
            span = (block.source, block.start + start, block.start + end)
            rule = f"related.{_relation(block.text, start, end)}"
            if name != repo:
                key = f"{name}#{number}"
                if key not in elsewhere:
                    elsewhere[key] = cite(document, "related_elsewhere", key, span, rule)
            elif number != own and number not in here:
                here[number] = cite(document, "related", str(number), span, rule, 0.95)
    return tuple(here), tuple(elsewhere), (*here.values(), *elsewhere.values())


@lru_cache(maxsize=64)
def foreign_words(repo: str) -> tuple[str, ...]:
    """Words in lower case after which a bare number is another project's than that of `repo`."""
    name = repo.lower().rpartition("/")[2]
    words = _FOREIGN if name == "vllm" else (*_FOREIGN, *_OWN)
    return tuple(word for word in words if word.partition(" ")[0] != name)


def _mentions(text: str, repo: str) -> list[_Found]:
    found: list[_Found] = []
    if "github.com/" in text.lower():
        found.extend(_named(_URL, text, repo))
    if "#" in text or "GH-" in text:
        found.extend(_named(_FULL, text, repo))
        found.extend(_bare(text, repo))
    found.sort(key=lambda item: item[2])
    return found


def _named(rule: Any, text: str, repo: str) -> Iterator[_Found]:
    """Mentions that name their repository."""
    for match in rule.finditer(text):
        name = match.group(1)
        yield (repo if name.lower() == repo else name), int(match.group(2)), match.start(), match.end()


def _below_code(document: Document, block: Block, repo: str) -> Iterator[_Found]:
    """Full addresses in lines of people that run on below a log without a fence."""
    above = document.sources[block.source][: block.start]
    if "github.com/" not in block.text or above.rstrip().endswith("```"):
        return
    for name, number, start, end in _named(_URL, block.text, repo):
        head = block.text.rfind("\n", 0, start) + 1
        line = block.text[head : block.text.find("\n", start) if "\n" in block.text[start:] else None]
        if name == repo and len(line.split()) >= MIN_SENTENCE_WORDS and not _LOG_LINE.match(line):
            yield name, number, start, end


def _relation(text: str, start: int, end: int) -> str:
    """What the words around a mention, within its sentence, say of it; "mention" if nothing."""
    before = _last_sentence(text[max(0, start - RELATION_CHARS) : start].rpartition("\n")[2])
    after = text[end : end + RELATION_CHARS].partition("\n")[0].partition(". ")[0]
    words = f"{before} # {after}"
    for rule in load_rule_set("related").meeting(words):
        return str(rule["relation"])
    return "mention"


def _last_sentence(text: str) -> str:
    """What stands behind the last full stop; all of it where only a sign or an abbreviation does."""
    last = text.rpartition(". ")[2]
    return last if any(len(word) >= SENTENCE_WORD_CHARS for word in last.split()) else text


def _bare(text: str, repo: str) -> Iterator[_Found]:
    for match in _HASH.finditer(text):
        start, end = match.span(1)
        number = int(match.group(2))
        before = text[max(0, start - 24) : start].lower().rstrip(" ([*_`")
        if before.endswith(_NOT_BEFORE) or before.endswith(foreign_words(repo)):
            continue
        if number < MIN_BARE_NUMBER and not before.endswith(_NOTHING_BEFORE):
            continue
        link = _LINK.search(text[end : end + MAX_LINK_CHARS]) if text[start - 1 : start] == "[" else None
        leads_away = link is not None and (
            link.group(1).lower() != repo or link.group(2) not in (None, match.group(2))
        )
        if not leads_away:
            yield repo, number, start, end
