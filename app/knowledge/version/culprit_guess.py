"""Which pull requests may have begun a failure: a guess, from what was merged between two versions.

Named are those whose title names what the error's frame or the backends name. No guess is made where people
name the culprit, where the two versions lie far apart, or where too many titles fit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from functools import lru_cache

from sqlmodel import Session

from app.extract.facts import Facts
from app.extract.lists import load
from app.extract.redaction.redact import mask_secrets
from app.extract.versions import ordered
from app.knowledge.version.issues import ListedFailure
from app.knowledge.version.shapes import CulpritGuess
from app.store.derived.versions import Merged, merged_between
from app.store.github.fix_containment import ReleaseDay, full_releases

_LISTS = load("culprit_guess")
GUESSES_MAX = 3
FITTING_MAX = 3
"""Of more that fit equally well none is named: one would be as good as another."""
LONGEST = timedelta(days=120)
BACKENDS: tuple[str, ...] = tuple(_LISTS["backends"])

_FRAME_WEIGHT, _BACKEND_WEIGHT = 2, 1
_GENERAL = frozenset(_LISTS["general"])
_BESIDE = re.compile(r"\s*\[(?:docs?|ci|ci/build|test|misc)\b", re.IGNORECASE)
_SEPARATORS = re.compile(r"[^a-z0-9]+")


class CulpritGuesser:
    """Guesses for the issues of one page; what was merged between two releases is asked once."""

    def __init__(self, session: Session, repo_id: int) -> None:
        self._session, self._repo_id = session, repo_id
        self._releases: list[ReleaseDay] | None = None
        self._merged: dict[tuple[str, str], list[Merged]] = {}

    def guesses(self, one: ListedFailure) -> tuple[CulpritGuess, ...]:
        """The likeliest pull requests; none where there is nothing to go by."""
        issue, span, names = one.issue, one.facts.regression, names_of(one.facts)
        if span is None or span.culprit or not span.last_working or not span.first_failing or not names:
            return ()
        merged = self._between(span.last_working, span.first_failing)
        created = issue.created_at
        before = [p for p in merged if p.number < issue.number and (not created or p.merged_at <= created)]
        return guess(before, names)

    def _between(self, working: str, failing: str) -> list[Merged]:
        if self._releases is None:
            self._releases = full_releases(self._session, self._repo_id)
        good, bad = ordered(working), ordered(failing)
        if good is None or bad is None or good >= bad:
            return []
        days = [(found, day) for day in self._releases if (found := ordered(day.tag)) is not None]
        first = max((pair for pair in days if pair[0] <= good), key=lambda pair: pair[0], default=None)
        last = min((pair for pair in days if pair[0] >= bad), key=lambda pair: pair[0], default=None)
        if first is None or last is None or not first[1].published_at or not last[1].published_at:
            return []
        start, end = first[1].published_at, last[1].published_at
        if end - start > LONGEST:
            return []
        key = (first[1].tag, last[1].tag)
        if key not in self._merged:
            tags = [day.tag for found, day in days if first[0] < found <= last[0]]
            self._merged[key] = merged_between(
                self._session, self._repo_id, after=start, before=end, tags=tags, lacking=[first[1].tag]
            )
        return self._merged[key]


def names_of(facts: Facts) -> dict[str, int]:
    """What the error's frame and the backends name, in words, with their weight."""
    names: dict[str, int] = {}
    for key in BACKENDS:
        for value in facts.backends.get(key, ()):
            names |= dict.fromkeys(_title_words(value), _BACKEND_WEIGHT)
    frame = facts.error.frame if facts.error and facts.error.frame else ""
    path, _, function = frame.partition(":")
    stem = path.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    for part in (stem, function):
        names |= dict.fromkeys(_title_words(part), _FRAME_WEIGHT)
    return names


def guess(merged: Sequence[Merged], names: dict[str, int]) -> tuple[CulpritGuess, ...]:
    """The pull requests whose titles name the most of it."""
    titles = ((pull, f" {_plain(pull.title)} ") for pull in merged if not _BESIDE.match(pull.title))
    hits = ((pull, tuple(name for name in names if f" {name} " in title)) for pull, title in titles)
    scored = [(sum(names[name] for name in hit), pull, hit) for pull, hit in hits if hit]
    scored.sort(key=lambda item: (-item[0], -item[1].number))
    if sum(score == scored[0][0] for score, _, _ in scored) > FITTING_MAX:
        return ()
    return tuple(
        CulpritGuess(
            number=pull.number,
            title=mask_secrets(pull.title),
            url=pull.url,
            merged_at=pull.merged_at,
            names=hit,
            of=len(merged),
        )
        for _, pull, hit in scored[:GUESSES_MAX]
    )


def _title_words(name: str) -> list[str]:
    """A name as titles write it; none if all its words are general ones."""
    plain = _plain(name)
    words = plain.split()
    if len(plain) < 3 or plain.isdigit() or all(word in _GENERAL or len(word) < 3 for word in words):
        return []
    return [plain]


@lru_cache(maxsize=4096)
def _plain(text: str) -> str:
    return _SEPARATORS.sub(" ", text.lower()).strip()
