"""Which change people blame: a pull request, an issue's number or a commit.

In: a `Sentence` that a rule of `lists/regression.toml` meets. Out: what it blames, and commits said to be the
last that works, the first that fails, or a head that still fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from app.extract.document import Document
from app.extract.evidence import cite
from app.extract.facts import Evidence
from app.extract.lists import load
from app.extract.narrative import Sentence
from app.extract.patterns import pattern
from app.extract.rules import Rule

_LIST = load("regression")
_FAILURE_WORDS: tuple[str, ...] = tuple(_LIST["failure_words"])
_SUBJECTS: tuple[str, ...] = tuple(_LIST["subjects"])
_CURED: tuple[str, ...] = tuple(_LIST["cured_words"])
_NO_BLAME: tuple[str, ...] = tuple(_LIST["no_blame"])
_TOKEN = pattern(
    r"#(\d{3,6})\b|/(?:pull|issues)/(\d{1,6})|\b[Pp][Rr] ?(\d{4,6})\b"
    r"|\b([0-9a-f]{7,40})\b|/commit/([0-9a-f]{7,40})"
)
_COMMIT_FIELD = {
    "commit_works": "last_working", "commit_fails": "first_failing", "commit_still": "still_failing",
}  # fmt: skip
NO_BLAME_CHARS = 24
"""How far before the blaming words a word that takes the blame away may stand."""


def find_culprit(
    document: Document, sentence: Sentence, rules: Iterable[Rule]
) -> Iterator[tuple[str, Evidence]]:
    """The changes that a sentence blames, at most one per rule: `#12345` or a commit."""
    low = sentence.low
    for rule in rules:
        match = rule.pattern.search(sentence.text)
        if match is None:
            continue
        around = low[max(0, match.start() - NO_BLAME_CHARS) : match.end()]
        if any(word in around for word in _NO_BLAME):
            continue
        if rule.extra.get("needs_failure") and not tells_failure(low):
            continue
        if rule.extra.get("needs_subject") and not any(word in low[: match.end()] for word in _SUBJECTS):
            continue
        for token in _TOKEN.finditer(match.group(0)):
            value = _name_of(token.groups(), document.issue.number)
            if value is not None:
                start, end = match.start() + token.start(), match.start() + token.end()
                yield (
                    value,
                    cite(document, "regression.culprit", value, sentence.span(start, end), rule.id, 0.8),
                )
                break


def find_commits(
    document: Document, sentence: Sentence, rules: Iterable[Rule]
) -> Iterator[tuple[str, str, Evidence]]:
    """(part, commit, evidence) of the commits that a sentence says to work, to fail or to fail still."""
    for rule in rules:
        match = rule.pattern.search(sentence.text)
        if match is None:
            continue
        group = next(g for g in range(1, rule.pattern.groups + 1) if match.group(g))
        sha = match.group(group)
        if not sha.isdigit() and not sha.isalpha():
            field = f"regression.{_COMMIT_FIELD[rule['part']]}"
            yield (
                rule["part"],
                sha,
                cite(document, field, sha, sentence.span(*match.span(group)), rule.id, 0.75),
            )


def tells_failure(low: str) -> bool:
    """Whether a sentence speaks of a failure, not of its cure."""
    return any(word in low for word in _FAILURE_WORDS) and not any(word in low for word in _CURED)


def _name_of(groups: tuple[str | None, ...], own: int) -> str | None:
    """What a token names; None for the issue itself and for words that only look like a commit."""
    number = groups[0] or groups[1] or groups[2]
    sha = groups[4] or groups[3]
    if number:
        return f"#{number}" if int(number) != own else None
    return None if sha is None or sha.isdigit() or sha.isalpha() else sha
