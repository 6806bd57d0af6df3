"""Extract mentions of issues and pull requests, and their relation to the issue.

In: a `Document`, or a pull request's title and body. Out: numbers of the same repository, `owner/name#n` of
others, and the quotes; the quote's rule names the relation stated around the mention (`related.duplicate`,
`.same`, `.similar`, `.culprit`, `.fix`, or `.mention`). Logs are skipped: a `#4` there is a frame or a build
step. The fix is the pull request that is said to help, with state and release.

A pull request may close issues, and revert or reland others. Closing keywords are GitHub's: close, fix and
resolve with their forms, before `#123`, `owner/name#123` or the issue's URL. GitHub's own button writes
`Revert "title (#7)"` and `Reverts owner/name#7`; people write `Reland "…"`, `Reapply #7`. A partial revert
does not count: the rest may be what fixed the failure.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from app.extract.evidence import cite
from app.extract.facts import Evidence, Fix, FixState
from app.extract.lists import load
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import Rule, load_rule_set
from app.extract.text.document import Document
from app.extract.text.sentences import Sentence, is_request, read_sentences

MIN_BARE_NUMBER = 20
"""A bare `#7` is a list item or a step; vLLM's first issues are hardly ever mentioned."""

MAX_LINK_CHARS = 120
RELATION_CHARS = 60
"""How many characters around a number, within its sentence, are searched for its relation."""

_LIST = load("related")
_NOT_BEFORE: tuple[str, ...] = tuple(_LIST["not_before"])
_NOTHING_BEFORE: tuple[str, ...] = tuple(_LIST["issue_words"])
_FOREIGN: tuple[str, ...] = tuple(_LIST["foreign_projects"])
_OWN = ("vllm", "vllm issue", "vllm pr")
"""Names of vLLM itself, which count as foreign in the issues of other projects."""
_HASH = pattern(r"(?:^|[^\w#&/.=-])((?:[Gg][Hh]-|#)(\d{1,6}))\b")
_FULL = pattern(r"\b([A-Za-z0-9][\w-]*/[A-Za-z0-9][\w.-]*)#(\d{1,6})\b")
_URL = pattern(
    r"(?:https?://)?(?:www\.)?(?:redirect\.)?github\.com/([\w-]+/[\w.-]+)/(?:issues|pull)/(\d{1,6})",
    ignore_case=True,
)
_LINK = pattern(
    r"^\]\((?:https?://)?(?:www\.)?github\.com/([\w-]+/[\w.-]+)/(?:(?:issues|pull)/(\d+))?", ignore_case=True
)
_Found = tuple[str, int, int, int]
"""Repository in lower case, number, start, end in the block."""


def find_related(document: Document) -> tuple[tuple[int, ...], tuple[str, ...], tuple[Evidence, ...]]:
    """Return the mentioned issues and pull requests, without duplicates, in reading order.

    Returns:
        Numbers of the same repository without the issue's own; `owner/name#n` of other repositories;
        evidence for both (fields `related` and `related_elsewhere`).
    """
    here: dict[int, Evidence] = {}
    elsewhere: dict[str, Evidence] = {}
    own, repo = document.issue.number, document.issue.repo.lower()
    for block in document.blocks:
        if block.kind == "code":
            continue
        for name, number, start, end in _mentions(block.text, repo):
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
def _foreign_words(repo: str) -> tuple[str, ...]:
    """Return lower-case words after which a bare number belongs to another project than `repo`."""
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
    for match in rule.finditer(text):
        name = match.group(1)
        yield (repo if name.lower() == repo else name), int(match.group(2)), match.start(), match.end()


def _relation(text: str, start: int, end: int) -> str:
    """Return the relation stated around a mention within its sentence; "mention" if none."""
    before = text[max(0, start - RELATION_CHARS) : start].rpartition("\n")[2].rpartition(". ")[2]
    after = text[end : end + RELATION_CHARS].partition("\n")[0].partition(". ")[0]
    words = f"{before} # {after}"
    for rule in load_rule_set("related").meeting(words):
        return str(rule["relation"])
    return "mention"


def _bare(text: str, repo: str) -> Iterator[_Found]:
    for match in _HASH.finditer(text):
        start, end = match.span(1)
        number = int(match.group(2))
        before = text[max(0, start - 24) : start].lower().rstrip(" ([*_`")
        if before.endswith(_NOT_BEFORE) or before.endswith(_foreign_words(repo)):
            continue
        if number < MIN_BARE_NUMBER and not before.endswith(_NOTHING_BEFORE):
            continue
        link = _LINK.search(text[end : end + MAX_LINK_CHARS]) if text[start - 1 : start] == "[" else None
        leads_away = link is not None and (
            link.group(1).lower() != repo or link.group(2) not in (None, match.group(2))
        )
        if not leads_away:
            yield repo, number, start, end


_NUMBER = pattern(
    r"((?:[a-z0-9][\w-]*/[a-z0-9][\w.-]*)?)#(\d{3,6})\b|github\.com/([\w-]+/[\w.-]+)/pull/(\d{1,6})",
    ignore_case=True,
)
_VERSION = pattern(r"\bv?(\d+\.\d+\.\d+(?:\.?(?:post|rc)\d+)?)\b")
_RANK = {"fixed": 3, "merged_unreleased": 2, "in_progress": 1}


@dataclass(frozen=True, slots=True)
class _StatedFix:
    rank: tuple[int, int, int]
    fix: Fix
    evidence: Evidence


def find_fix(document: Document) -> tuple[Fix | None, Evidence | None]:
    """Return the fix with the best reported state: one seen to help before one merely opened."""
    if is_request(document):
        return None, None
    best: _StatedFix | None = None
    for order, sentence in enumerate(read_sentences(document)):
        if "#" not in sentence.text and "/pull/" not in sentence.text:
            continue
        fix = _read(document, sentence, order)
        if fix is not None and (best is None or fix.rank > best.rank):
            best = fix
    return (best.fix, best.evidence) if best else (None, None)


def _read(document: Document, sentence: Sentence, order: int) -> _StatedFix | None:
    for rule in load_rule_set("stated_fix").meeting(sentence.text):
        match = rule.pattern.search(sentence.text)
        if match is None or not (found := _pull_request_in(document, sentence.text, match.span(0))):
            continue
        if rule["state"] == "no":
            return None
        return _as_stated_fix(document, sentence, rule, found, order)
    return None


def _pull_request_in(document: Document, text: str, span: tuple[int, int]) -> str | None:
    """Return the pull request in a part of a sentence: `#1`, or `owner/name#1` of another repository."""
    own, repo = document.issue.number, document.issue.repo
    for match in _NUMBER.finditer(text):
        name = match.group(1) or match.group(3) or repo
        number = int(match.group(2) or match.group(4))
        if not span[0] <= match.end(0) <= span[1] or (number == own and name.lower() == repo.lower()):
            continue
        return f"#{number}" if name.lower() == repo.lower() else f"{name}#{number}"
    return None


def _as_stated_fix(document: Document, sentence: Sentence, rule: Rule, name: str, order: int) -> _StatedFix:
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


MAX_CHARS = 60_000
MAX_BODY_CHARS = 4_000

_CHANGE = r"(?:([\w.-]+/[\w.-]+)?#(\d{1,7})\b|https?://github\.com/([\w.-]+/[\w.-]+)/%s/(\d{1,7})\b)"
_CLOSES = pattern(r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+" + _CHANGE % "issues", ignore_case=True)


def closed_issues(text: str, repo: str) -> tuple[int, ...]:
    """Return the issues of `repo` that a pull request's title or body says it closes."""
    named = _changes(_CLOSES, text[:MAX_CHARS], repo)
    return tuple(dict.fromkeys(number for name, number in named if name == repo))


def closed_elsewhere(text: str, repo: str) -> tuple[tuple[str, int], ...]:
    """Return the issues of other repositories that it says it closes, as (owner/name, number)."""
    return tuple(dict.fromkeys(one for one in _changes(_CLOSES, text[:MAX_CHARS], repo) if one[0] != repo))


def _changes(rule: Any, text: str, repo: str) -> Iterator[tuple[str, int]]:
    """Yield repository and number of the issues or pull requests that a rule finds."""
    for match in rule.finditer(text):
        short_repo, short, long_repo, long = match.groups()
        name = short_repo or long_repo or repo
        yield (repo if name.lower() == repo.lower() else name), int(short or long)


_TAGS = r"^(?:\s*\[[^\]]{0,40}\]){0,4}\s*"
_REVERT = pattern(_TAGS + r"\[?revert(?:s|ing|ed)?\]?\b", ignore_case=True)
_RELAND = pattern(_TAGS + r"\[?(?:re-?land|re-?apply|re-?introduce)(?:s|ing|ed)?\]?\b", ignore_case=True)
_PARTLY = pattern(r"\bpartial(?:ly)?\b|\bpart of\b", ignore_case=True)
_BODY_REVERT = pattern(
    r"(?:^|\n)\s*(?:this\s+)?reverts\s+(?:pr\s+|pull request\s+)?" + _CHANGE % "pull", ignore_case=True
)
_BODY_RELAND = pattern(
    r"\b(?:re-?land|re-?appl(?:y|ie)|re-?introduce)[sd]?\s+(?:of\s+)?(?:pr\s+|pull request\s+)?"
    + _CHANGE % "pull",
    ignore_case=True,
)
_NUMBER_IN_TITLE = pattern(r"#(\d{1,7})\b")


def reverted_pull(title: str, body: str, repo: str) -> int | None:
    """Return the pull request that this one fully reverts, or None."""
    named = _REVERT.search(title) is not None
    if _PARTLY.search(title) or (not named and "revert" not in body[:MAX_BODY_CHARS].lower()):
        return None
    return _in_body(_BODY_REVERT, body, repo) or (_last_number(title) if named else None)


def relanded_pull(title: str, body: str, repo: str) -> int | None:
    """Return the pull request that this one relands, or None."""
    if _RELAND.search(title) is None or _PARTLY.search(title):
        return None
    return _last_number(title) or _in_body(_BODY_RELAND, body, repo)


def _in_body(rule: Any, body: str, repo: str) -> int | None:
    named = _changes(rule, body[:MAX_BODY_CHARS], repo)
    return next((number for name, number in named if name == repo), None)


def _last_number(title: str) -> int | None:
    """Return the outermost number of a title: in `Revert "Revert "x (#7)" (#8)"` it is 8."""
    found = [int(match.group(1)) for match in _NUMBER_IN_TITLE.finditer(title)]
    return found[-1] if found else None
