"""What a pull request's text says it closes.

GitHub's closing keywords, as its documentation lists them: close, fix and resolve with their forms,
before `#123`, `owner/name#123` or the issue's address.
"""

from __future__ import annotations

from app.extract.patterns import pattern

MAX_CHARS = 60_000

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
