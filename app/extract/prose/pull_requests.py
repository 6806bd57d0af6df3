"""What a pull request's title and body say of issues it closes and of pull requests it takes or brings back.

Closing keywords are GitHub's: close, fix and resolve with their forms, before `#123`, `owner/name#123` or the
issue's address. GitHub's own button writes `Revert "title (#7)"` and `Reverts owner/name#7`; people write
`Reland "…"`, `Reapply #7`. A revert of only a part is none: the rest may well be what fixed the failure.
"""

from __future__ import annotations

from typing import Any

from app.extract.rules.patterns import pattern

MAX_CHARS = 60_000
MAX_BODY_CHARS = 4_000

_CLOSES = pattern(
    r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+"
    r"(?:([\w.-]+/[\w.-]+)?#(\d{1,7})\b|https?://github\.com/([\w.-]+/[\w.-]+)/issues/(\d{1,7})\b)",
    ignore_case=True,
)


def closed_issues(text: str, repo: str) -> tuple[int, ...]:
    """Numbers of the issues of `repo` that a pull request's title or body says it closes."""
    return tuple(number for name, number in _closed(text, repo) if name.lower() == repo.lower())


def closed_elsewhere(text: str, repo: str) -> tuple[tuple[str, int], ...]:
    """The issues of other repositories that it says it closes, as (owner/name, number)."""
    return tuple(item for item in _closed(text, repo) if item[0].lower() != repo.lower())


def _closed(text: str, repo: str) -> tuple[tuple[str, int], ...]:
    if "#" not in text and "/issues/" not in text:
        return ()
    found: dict[tuple[str, int], None] = {}
    for match in _CLOSES.finditer(text[:MAX_CHARS]):
        short_repo, short, long_repo, long = match.groups()
        name = short_repo or long_repo or repo
        found[repo if name.lower() == repo.lower() else name, int(short or long)] = None
    return tuple(found)


_TAGS = r"^(?:\s*\[[^\]]{0,40}\]){0,4}\s*"
_REVERT = pattern(_TAGS + r"\[?revert(?:s|ing|ed)?\]?\b", ignore_case=True)
_AGAIN = pattern(_TAGS + r"\[?(?:re-?land|re-?apply|re-?introduce)(?:s|ing|ed)?\]?\b", ignore_case=True)
_PARTLY = pattern(r"\bpartial(?:ly)?\b|\bpart of\b", ignore_case=True)
_BODY_REVERT = pattern(
    r"(?:^|\n)\s*(?:this\s+)?reverts\s+(?:pr\s+|pull request\s+)?"
    r"(?:([\w.-]+/[\w.-]+)?#(\d{1,7})\b|https?://github\.com/([\w.-]+/[\w.-]+)/pull/(\d{1,7})\b)",
    ignore_case=True,
)
_BODY_AGAIN = pattern(
    r"\b(?:re-?land|re-?appl(?:y|ie)|re-?introduce)[sd]?\s+(?:of\s+)?(?:pr\s+|pull request\s+)?"
    r"(?:([\w.-]+/[\w.-]+)?#(\d{1,7})\b|https?://github\.com/([\w.-]+/[\w.-]+)/pull/(\d{1,7})\b)",
    ignore_case=True,
)
_NUMBER = pattern(r"#(\d{1,7})\b")


def reverted_pull(title: str, body: str, repo: str) -> int | None:
    """The pull request that this one takes back as a whole, or None."""
    named = _REVERT.search(title) is not None
    if _PARTLY.search(title) or (not named and "revert" not in body[:MAX_BODY_CHARS].lower()):
        return None
    return _in_body(_BODY_REVERT, body, repo) or (_last_number(title) if named else None)


def relanded_pull(title: str, body: str, repo: str) -> int | None:
    """The pull request that this one brings back, or None."""
    if _AGAIN.search(title) is None or _PARTLY.search(title):
        return None
    return _last_number(title) or _in_body(_BODY_AGAIN, body, repo)


def _in_body(rule: Any, body: str, repo: str) -> int | None:
    for match in rule.finditer(body[:MAX_BODY_CHARS]):
        short_repo, short, long_repo, long = match.groups()
        if (short_repo or long_repo or repo).lower() == repo.lower():
            return int(short or long)
    return None


def _last_number(title: str) -> int | None:
    """The outermost number of a title: in `Revert "Revert "x (#7)" (#8)"` it is 8."""
    found = [int(match.group(1)) for match in _NUMBER.finditer(title)]
    return found[-1] if found else None
