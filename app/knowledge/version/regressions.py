"""Regressions: failures that were not there before, by the range their issues tell.

In: a version, or none. Out: each issue's range in its own words, where the version lies in it, the remedy,
the fix state, and a guess at the culprit where nobody names it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from app.extract.facts import Regression
from app.extract.versions import is_before, is_same, last_failing, ordered, plain_version
from app.knowledge.version.culprit_guess import CulpritGuesser
from app.knowledge.version.issues import ListedFailure, listed_fields, load_failures, load_words
from app.knowledge.version.known_issues import standing_of
from app.knowledge.version.shapes import Place, RegressionItem, RegressionPage, VersionCount
from app.store.derived.versions import REGRESSION_FIELDS, StatedRange, stated_regressions
from app.store.github.issues import find_repository
from app.store.session import Store

_RANK: dict[Place, int] = {"began": 0, "may_have_begun": 1, "failing": 2, "since": 3, "fixed": 4, "told": 0}


def regressions(
    store: Store, repo: str, version: str | None = None, *, after: int = 0, limit: int = 50
) -> RegressionPage:
    """A page of the regressions that touch a version, or of all, the newest first; from place `after` on."""
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        if repo_id is None:
            return _page(version, (), 0)
        told = stated_regressions(session, repo_id)
        places = _places(told, version)
        if version is None:
            part = load_failures(session, repo_id, repo, sorted(told, reverse=True)[after : after + limit])
            part.sort(key=lambda one: -one.issue.number)
            total = len(told)
        else:
            found = load_failures(session, repo_id, repo, places, version)
            found = [one for one in found if _is_current(one, places[one.issue.number], version)]
            found.sort(key=lambda one: (_RANK[places[one.issue.number]], -one.weight, -one.issue.number))
            part, total = found[after : after + limit], len(found)
        words = load_words(session, repo_id, part)
        guesser = CulpritGuesser(session, repo_id)
        items = tuple(
            RegressionItem(
                **listed_fields(one, words, repo, REGRESSION_FIELDS),
                place=places[one.issue.number],
                culprit_guesses=guesser.guesses(one),
            )
            for one in part
        )
    return _page(version, items, total)


def regression_versions(store: Store, repo: str) -> tuple[VersionCount, ...]:
    """The versions in which failures are said to have begun, the newest first; those without order last."""
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        told = stated_regressions(session, repo_id) if repo_id is not None else {}
    begun = [one.span.first_failing for one in told.values() if one.span.first_failing]
    known = Counter(version for text in begun if (version := ordered(text)) is not None)
    apart = Counter(plain_version(text) for text in begun if ordered(text) is None)
    names = {version: str(version) for version in known}
    for version in (found for text in begun if (found := ordered(text)) is not None):
        names[version] = max(names[version], str(version), key=len)  # 0.22 and 0.22.0 are one
    return (
        *(VersionCount(version=names[key], regressions=known[key]) for key in sorted(known, reverse=True)),
        *(VersionCount(version=text, regressions=count) for text, count in apart.most_common()),
    )


def _places(told: Mapping[int, StatedRange], version: str | None) -> dict[int, Place]:
    """Where the version lies in each range; of those that began earlier only the open ones."""
    if version is None:
        return dict.fromkeys(told, "told")
    places = {number: place_of(one.span, version) for number, one in told.items()}
    return {
        number: place
        for number, place in places.items()
        if place is not None and (place != "since" or told[number].is_open)
    }


def place_of(told: Regression, version: str) -> Place | None:
    """Where a version lies in a range; None if it lies outside, or nothing is told of it."""
    said: tuple[tuple[Place, tuple[str | None, ...]], ...] = (
        ("began", (told.first_failing,)),
        ("fixed", (told.fixed_in,)),
        ("failing", told.still_failing),
    )
    for place, versions in said:
        if any(is_same(item, version) for item in versions):
            return place
    if is_before(told.fixed_in, version) or is_same(told.last_working, version):
        return None
    if is_before(told.last_working, version) and is_before(version, told.first_failing):
        return "may_have_begun"
    if not is_before(told.first_failing, version):
        return None
    end = is_before(version, told.fixed_in) or is_before(version, last_failing(told))
    return "failing" if end else "since"


def _is_current(candidate: ListedFailure, place: Place, version: str) -> bool:
    """Whether the fix state leaves it where its range puts it.

    A fix that the version has ends what went on before it, but not what began in it.
    """
    standing = standing_of(candidate, version)
    if place == "since":
        return standing == "open"
    return standing is not None or place in {"began", "fixed"}


def _page(version: str | None, items: tuple[RegressionItem, ...], total: int) -> RegressionPage:
    told = plain_version(version) if version else None
    return RegressionPage(version=told, is_ordered=ordered(version) is not None, items=items, total=total)
