"""Issues and pull requests that an issue's people mention.

In: a `Document`. Out: numbers of the same repository, `owner/name#n` of others, and the quotes.
Only prose, headings and quotes are looked at: a `#4` in a log is a frame, a build step or a comment.
"""

from __future__ import annotations

from collections.abc import Iterator

from app.extract.document import Document
from app.extract.evidence import cite
from app.extract.facts import Evidence
from app.extract.lists import load
from app.extract.patterns import pattern

MIN_BARE_NUMBER = 20
"""A bare `#7` is a list item or a step; vLLM's first issues are hardly ever meant."""

MAX_AHEAD = 40_000
"""How far above its own number an issue may point (later comments do); a typo points further."""

MAX_LINK_CHARS = 120
MAX_INDENT_CHARS = 60

_LIST = load("related")
_NOT_BEFORE: tuple[str, ...] = tuple(_LIST["not_before"])
_NOTHING_BEFORE: tuple[str, ...] = tuple(_LIST["issue_words"])
_FOREIGN: tuple[str, ...] = tuple(_LIST["foreign_projects"])
_HASH = pattern(r"(?:^|[^\w#&/.=-])((?:[Gg][Hh]-|#)(\d{1,6}))\b")
_FULL = pattern(r"\b([A-Za-z0-9][\w-]*/[A-Za-z0-9][\w.-]*)#(\d{1,6})\b")
_URL = pattern(
    r"(?:https?://)?(?:www\.)?(?:redirect\.)?github\.com/([\w-]+/[\w.-]+)/(?:issues|pull)/(\d{1,6})",
    ignore_case=True,
)
_LINK = pattern(r"^\]\((?:https?://)?(?:www\.)?github\.com/([\w-]+/[\w.-]+)/", ignore_case=True)
_Found = tuple[str, int, int, int, str]
"""Repository in lower case, number, start, end in the source, rule."""


def find_related(document: Document) -> tuple[tuple[int, ...], tuple[str, ...], tuple[Evidence, ...]]:
    """The issues and pull requests mentioned, each once, in reading order.

    Returns:
        Numbers of the same repository without the issue's own; `owner/name#n` of other repositories;
        evidence for both (fields `related` and `related_elsewhere`).
    """
    here: dict[int, Evidence] = {}
    elsewhere: dict[str, Evidence] = {}
    own, repo = document.issue.number, document.issue.repo.lower()
    for block in document.of_kind("prose", "heading", "quote"):
        if "#" not in block.text and "github.com/" not in block.text and "GH-" not in block.text:
            continue
        for name, number, start, end, rule in _mentions(block.text, repo):
            span = (block.source, block.start + start, block.start + end)
            if name != repo:
                key = f"{name}#{number}"
                if key not in elsewhere:
                    elsewhere[key] = cite(document, "related_elsewhere", key, span, rule)
            elif number != own and number not in here and (not own or number <= own + MAX_AHEAD):
                here[number] = cite(document, "related", str(number), span, rule, 0.95)
    return tuple(here), tuple(elsewhere), (*here.values(), *elsewhere.values())


def _mentions(text: str, repo: str) -> list[_Found]:
    found: list[_Found] = []
    if "github.com/" in text.lower():
        for match in _URL.finditer(text):
            name = match.group(1)
            kept = repo if name.lower() == repo else name
            found.append((kept, int(match.group(2)), match.start(), match.end(), "related.url"))
    if "#" in text or "GH-" in text:
        for match in _FULL.finditer(text):
            name = match.group(1)
            kept = repo if name.lower() == repo else name
            found.append((kept, int(match.group(2)), match.start(), match.end(), "related.full_name"))
        found.extend(_bare(text, repo))
    found.sort(key=lambda item: item[2])
    return found


def _bare(text: str, repo: str) -> Iterator[_Found]:
    for match in _HASH.finditer(text):
        start, end = match.span(1)
        number = int(match.group(2))
        before = text[max(0, start - 24) : start].lower().rstrip(" ([*_`")
        if before.endswith(_NOT_BEFORE) or before.endswith(_FOREIGN):
            continue
        if number < MIN_BARE_NUMBER and not before.endswith(_NOTHING_BEFORE):
            continue
        link = _LINK.search(text[end : end + MAX_LINK_CHARS]) if text[start - 1 : start] == "[" else None
        is_foreign = link is not None and link.group(1).lower() != repo
        if is_foreign or _is_stack_or_step(text, start, end):
            continue
        yield repo, number, start, end, "related.number"


def _is_stack_or_step(text: str, start: int, end: int) -> bool:
    """`#0 0x7f…`, `#4 3572.0 …` and `#12 [build 3/9]` at the start of a line."""
    before = text[max(0, start - MAX_INDENT_CHARS) : start]
    if before.rpartition("\n")[2].strip(" >\t-*`"):
        return False
    rest = text[end : end + 12].lstrip(" ")
    has_gap = text[end : end + 1] == " "
    return has_gap and (rest.startswith(("0x", "[")) or (rest[:1].isdigit() and "." in rest.split(" ")[0]))
