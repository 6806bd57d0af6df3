"""Failures of a version: its regressions, by their stated regression range, and its known issues.

A known issue fails in the version according to the reporter's environment or its range, or has failed since
an earlier version and is open. A duplicate is not listed if its original is.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache, partial
from typing import Literal

import numpy as np
from pydantic import Field
from sqlalchemy.orm import Session

from app.extract.facts import Frozen, Regression
from app.extract.redact import mask_secrets
from app.extract.versions import Version, is_before, is_same, last_failing, ordered, plain_version
from app.knowledge.fix.state import is_vllm
from app.knowledge.issue.facets import IssueFacets
from app.knowledge.possible_versions import REPORTED, can_be, check_possible, known_releases, numbers_of
from app.knowledge.version.issues import (
    ListedFailure,
    VersionIssue,
    listed_fields,
    load_failures,
    load_words,
)
from app.store.derived.facts import (
    REGRESSION_FIELDS,
    Numbers,
    StatedRange,
    numbers_by_value,
    stated_regressions,
)
from app.store.derived.readings import duplicates_of
from app.store.github.issues import find_repository
from app.store.session import Store

Basis = Literal["reported", "in_range", "since"]


Standing = Literal["open", "fixed_later", "merged", "closed"]


Place = Literal["began", "may_have_begun", "failing", "since", "fixed", "told"]


class KnownIssue(VersionIssue):
    """A failure that a version has, whether still open or fixed later.

    `basis`: reported in the version; between a version reported as failing and a later one
    reported as failing or fixed; or failing since an earlier version, with no later report.
    """

    basis: Basis
    standing: Standing = Field(description="`merged`: no release is known to contain the fix")


class RegressionItem(VersionIssue):
    """A regression, as stated in its issue.

    `place`: where the requested version lies in its range; `told` if no version was requested.
    """

    place: Place


class KnownPage(Frozen):
    """Known issues of a version: those reported in it first, then the others, each by weight."""

    version: str
    is_ordered: bool = Field(description="false for a commit or untagged build: only its own reports")
    items: tuple[KnownIssue, ...]
    total: int
    reported: int = Field(0, description="number of failures reported in exactly this version")
    began: int = Field(0, description="number of failures that began in this version, closed ones too")
    closed: int = Field(description="number of further failures, closed without a known fix")


class VersionCount(Frozen):
    """Number of issues that state a version as the first bad one."""

    version: str
    regressions: int


class RegressionPage(Frozen):
    version: str | None
    is_ordered: bool
    items: tuple[RegressionItem, ...]
    total: int
    versions: tuple[VersionCount, ...] = Field(
        (), description="without `version`: the stated first bad versions, newest first"
    )


_RANK: dict[Place, int] = {"began": 0, "may_have_begun": 1, "failing": 2, "since": 3, "fixed": 4, "told": 0}


def regressions(
    store: Store,
    repo: str,
    version: str | None = None,
    *,
    only: Place | None = None,
    after: int = 0,
    limit: int = 50,
) -> RegressionPage:
    """Return a page of the regressions that affect a version, or of all, newest first, from offset `after`.

    Args:
        only: with a version, only those at this place.

    Raises:
        UnknownVersionError: `version` is not a release.
    """
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        if is_vllm(repo):
            check_possible(session, repo_id, "version", version)
        stated = stated_regressions(session, repo_id)
        place_in = cache(partial(place_of, version=version))  # many issues state the same range
        places: dict[int, Place] = {
            number: place
            for number, one in stated.items()
            if (place := place_in(one.span)) is not None
            and (place != "since" or one.is_open)
            and only in {None, place}
        }
        if version is None:
            part = load_failures(session, repo_id, repo, sorted(stated, reverse=True)[after : after + limit])
            part.sort(key=lambda one: -one.issue.number)
            total = len(stated)
        else:
            found = load_failures(session, repo_id, repo, places, version)
            found = [one for one in found if _is_current(one, places[one.issue.number], version)]
            found.sort(key=lambda one: (_RANK[places[one.issue.number]], -one.weight, -one.issue.number))
            part, total = found[after : after + limit], len(found)
        words = load_words(session, repo_id, part)
        items = tuple(
            RegressionItem.based_on(
                one.issue,
                **listed_fields(one, words, REGRESSION_FIELDS),
                place=places[one.issue.number],
            )
            for one in part
        )
    plain = plain_version(version) if version else None
    return RegressionPage(
        version=plain,
        is_ordered=ordered(version) is not None,
        items=items,
        total=total,
        versions=() if version else _first_bad(stated.values()),
    )


def _first_bad(stated: Iterable[StatedRange]) -> tuple[VersionCount, ...]:
    """Count the stated first bad versions, newest first; versions that cannot be ordered last."""
    known: Counter[Version] = Counter()
    apart: Counter[str] = Counter()
    names: dict[Version, str] = {}
    for text, count in Counter(filter(None, (one.span.first_failing for one in stated))).items():
        if (version := ordered(text)) is None:
            apart[plain_version(text)] += count
        else:
            known[version] += count
            names[version] = max(names.get(version, ""), str(version), key=len)  # 0.22 and 0.22.0 are equal
    return (
        *(VersionCount(version=names[key], regressions=known[key]) for key in sorted(known, reverse=True)),
        *(VersionCount(version=text, regressions=count) for text, count in apart.most_common()),
    )


class HeatMap(Frozen):
    """Issues by release and GPU: rows are releases, newest first; columns the most common GPUs."""

    gpus: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int, ...]], ...]


HEAT_RELEASES, HEAT_GPUS = 14, 10


def release_heat(store: Store, repo: str) -> HeatMap:
    """Count the issues of the newest releases on their most common GPUs; each count is that of a list."""
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        facets, known = IssueFacets(session, repo_id), numbers_of(known_releases(session, repo_id))
        reported: dict[Version, list[Numbers]] = defaultdict(list)  # 0.22 and 0.22.0 are equal
        for text, numbers in facets.groups("vllm_version").items():
            version = ordered(text)
            if version and not version.is_prerelease and can_be(text, known):
                reported[version].append(numbers)
        newest = sorted(reported, reverse=True)[:HEAT_RELEASES]
        masks = [(str(v) if len(v.release) > 2 else f"{v}.0", facets.mask(*reported[v])) for v in newest]
        among = facets.mask(*(numbers for version in newest for numbers in reported[version]))
        gpus = [gpu for _, gpu in facets.counts("gpu", among)[:HEAT_GPUS]]
        columns = [facets.mask(facets.groups("gpu")[gpu]) for gpu in gpus]
        rows = [(name, tuple(int(np.count_nonzero(mask & one)) for one in columns)) for name, mask in masks]
    return HeatMap(gpus=tuple(map(mask_secrets, gpus)), rows=tuple(rows))


def place_of(span: Regression, version: str | None) -> Place | None:
    """Return where a version lies in a range, `told` if it is None; None if outside or nothing is stated."""
    if version is None:
        return "told"
    stated: tuple[tuple[Place, tuple[str | None, ...]], ...] = (
        ("began", (span.first_failing,)),
        ("fixed", (span.fixed_in,)),
        ("failing", span.still_failing),
    )
    for place, versions in stated:
        if any(is_same(item, version) for item in versions):
            return place
    if is_before(span.fixed_in, version) or is_same(span.last_working, version):
        return None
    if is_before(span.last_working, version) and is_before(version, span.first_failing):
        return "may_have_begun"
    if not is_before(span.first_failing, version):
        return None
    end = is_before(version, span.fixed_in) or is_before(version, last_failing(span))
    return "failing" if end else "since"


def _is_current(candidate: ListedFailure, place: Place, version: str) -> bool:
    """True if the failure is listed at this place, given its fix state.

    A fix contained in the version removes failures from earlier versions, but not those first bad in it.
    """
    standing = standing_of(candidate, version)
    if place == "since":
        return standing == "open"
    return standing is not None or place in {"began", "fixed"}


_BASIS_RANK: dict[Basis, int] = {"reported": 0, "in_range": 0, "since": 1}


def known_issues(
    store: Store, repo: str, version: str, *, closed: bool = False, after: int = 0, limit: int = 50
) -> KnownPage:
    """Return a page of a version's known issues; `closed`: include those closed without a known fix."""
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        if is_vllm(repo):
            check_possible(session, repo_id, "version", version)
        reported = numbers_naming(session, repo_id, REPORTED, version)
        ranges = stated_regressions(session, repo_id)
        basis_in = cache(partial(basis_of, version))  # many issues state the same range
        bases: dict[int, Basis] = {}
        for number in reported | ranges.keys():
            stated = ranges.get(number)
            basis = basis_in(stated.span if stated else None, is_reported=number in reported)
            if basis and (basis != "since" or (stated is not None and stated.is_open)):
                bases[number] = basis
        found = load_failures(session, repo_id, repo, bases, version)
        originals = duplicates_of(session, repo_id, repo, list(bases))
        standing = {
            one.issue.number: state
            for one in found
            if (state := standing_of(one, version)) is not None
            and (bases[one.issue.number] != "since" or state == "open")
        }
        known = [one for one in found if one.issue.number in standing]
        known = [one for one in known if originals.get(one.issue.number) not in standing]
        ended = sum(standing[one.issue.number] == "closed" for one in known)
        listed = [one for one in known if closed or standing[one.issue.number] != "closed"]
        listed.sort(key=lambda one: (_BASIS_RANK[bases[one.issue.number]], -one.weight, -one.issue.number))
        part = listed[after : after + limit]
        words = load_words(session, repo_id, part)
        items = tuple(
            KnownIssue.based_on(
                one.issue,
                **listed_fields(one, words, _quoted_fields(one, version)),
                basis=bases[one.issue.number],
                standing=standing[one.issue.number],
            )
            for one in part
        )
        reported_here = sum(bases[one.issue.number] == "reported" for one in listed)
        spans = (one.facts.regression for one in known)
        began = sum(is_same(span.first_failing, version) for span in spans if span)
    return KnownPage(
        version=plain_version(version),
        is_ordered=ordered(version) is not None,
        items=items,
        total=len(listed),
        reported=reported_here,
        began=began,
        closed=0 if closed else ended,
    )


def numbers_naming(session: Session, repo_id: int, field: str, version: str) -> set[int]:
    """Return the issues with this version in a field, in any spelling."""
    values = numbers_by_value(session, repo_id, [field])
    return {n for _, text, found in values if is_same(text, version) for n in found.tolist()}


def basis_of(version: str, span: Regression | None, *, is_reported: bool) -> Basis | None:
    """Return why a version is considered to have a failure; None if it does not."""
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
    """Return the state of an issue as seen from a version; None if the version contains its fix."""
    fix, span = candidate.fix, candidate.facts.regression
    if fix.for_you == "already_included":
        return None
    if (fix.state == "fixed" and fix.released_in) or (span and is_before(version, span.fixed_in)):
        return "fixed_later"
    if fix.state in {"fixed", "merged_unreleased"}:
        return "merged"
    return "open" if candidate.issue.state == "open" else "closed"


def _quoted_fields(candidate: ListedFailure, version: str) -> tuple[str, ...]:
    own = candidate.facts.versions.get("vllm")
    return (REPORTED, *REGRESSION_FIELDS) if is_same(own, version) else REGRESSION_FIELDS
