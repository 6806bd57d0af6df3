"""The known issues of a version: what fails in it and was open, or was fixed only later.

An issue fails in the version by its reporter's environment or by its range; or it fails since an earlier
version and is open. A duplicate counts for its original and is not listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from app.extract.facts import Regression
from app.extract.versions import is_before, is_same, last_failing, ordered, plain_version
from app.knowledge.version.issues import REPORTED, ListedFailure, listed_fields, load_failures, load_words
from app.knowledge.version.shapes import Basis, KnownIssue, KnownPage, Standing
from app.store.derived.facts import (
    REGRESSION_FIELDS,
    StatedRange,
    known_values,
    numbers_with,
    stated_regressions,
)
from app.store.derived.readings import duplicates_of
from app.store.github.issues import find_repository
from app.store.session import Store

_RANK: dict[Basis, int] = {"reported": 0, "in_range": 0, "since": 1}


def known_issues(
    store: Store, repo: str, version: str, *, closed: bool = False, after: int = 0, limit: int = 50
) -> KnownPage:
    """A page of a version's known issues from place `after` on; `closed`: also those without a known fix."""
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        if repo_id is None:
            return _page(version, (), 0, 0)
        keys = [key for key in known_values(session, REPORTED) if is_same(key, version)]
        reported = set(numbers_with(session, repo_id, REPORTED, keys))
        ranges = stated_regressions(session, repo_id)
        bases = _bases(ranges, version, reported)
        found = load_failures(session, repo_id, repo, bases, version)
        originals = duplicates_of(session, repo_id, repo, list(bases))
        standing = _standings(found, version, bases)
        known = [one for one in found if one.issue.number in standing]
        known = [one for one in known if originals.get(one.issue.number) not in standing]
        ended = sum(standing[one.issue.number] == "closed" for one in known)
        listed = [one for one in known if closed or standing[one.issue.number] != "closed"]
        listed.sort(key=lambda one: (_RANK[bases[one.issue.number]], -one.weight, -one.issue.number))
        part = listed[after : after + limit]
        words = load_words(session, repo_id, part)
        items = tuple(
            KnownIssue(
                **listed_fields(one, words, repo, _fields(one, version)),
                basis=bases[one.issue.number],
                standing=standing[one.issue.number],
            )
            for one in part
        )
    return _page(version, items, len(listed), 0 if closed else ended)


def _page(version: str, items: tuple[KnownIssue, ...], total: int, closed: int) -> KnownPage:
    plain, is_ordered = plain_version(version), ordered(version) is not None
    return KnownPage(version=plain, is_ordered=is_ordered, items=items, total=total, closed=closed)


def _bases(ranges: Mapping[int, StatedRange], version: str, reported: set[int]) -> dict[int, Basis]:
    """Why each issue is one of the version's; of an earlier one's failures only those that are open."""
    bases: dict[int, Basis] = {}
    for number in reported | ranges.keys():
        stated = ranges.get(number)
        basis = basis_of(stated.span if stated else None, version, number in reported)
        if basis and (basis != "since" or (stated is not None and stated.is_open)):
            bases[number] = basis
    return bases


def _standings(
    found: Iterable[ListedFailure], version: str, bases: Mapping[int, Basis]
) -> dict[int, Standing]:
    """How each issue stands; left out are those of which the version has the fix."""
    states = {one.issue.number: standing_of(one, version) for one in found}
    return {
        number: state
        for number, state in states.items()
        if state is not None and (bases[number] != "since" or state == "open")
    }


def basis_of(span: Regression | None, version: str, is_reported: bool) -> Basis | None:
    """Why a version is said to have a failure; None if it is not, or is reported to work."""
    if span is None:
        return "reported" if is_reported else None
    works = is_same(span.last_working, version) or is_before(version, span.last_working)
    fixed = is_same(span.fixed_in, version) or is_before(span.fixed_in, version)
    if works or fixed:
        return None
    if is_reported or any(is_same(item, version) for item in (span.first_failing, *span.still_failing)):
        return "reported"
    if not is_before(span.first_failing, version):
        return None
    end = is_before(version, span.fixed_in) or is_before(version, last_failing(span))
    return "in_range" if end else "since"


def standing_of(candidate: ListedFailure, version: str) -> Standing | None:
    """How an issue stands, seen from a version; None if the version has its fix already."""
    fix, span = candidate.fix, candidate.facts.regression
    if fix.for_you == "already_included":
        return None
    if (fix.state == "fixed" and fix.released_in) or (span and is_before(version, span.fixed_in)):
        return "fixed_later"
    if fix.state in {"fixed", "merged_unreleased"}:
        return "merged"
    return "open" if candidate.issue.state == "open" else "closed"


def _fields(candidate: ListedFailure, version: str) -> tuple[str, ...]:
    own = candidate.facts.versions.get("vllm")
    return (REPORTED, *REGRESSION_FIELDS) if is_same(own, version) else REGRESSION_FIELDS
