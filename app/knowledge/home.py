"""What the first page tells below its paste box: what grows, what is new, what the newest release changed.

In: an archive and a repository. Out: a `Home`. "This week" are the seven days up to the newest stored issue,
so that a copy that is not synced tells of its own last days and not of none.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from sqlmodel import Session

from app.extract.facts import Facts, Frozen
from app.extract.redaction.redact import mask_secrets
from app.extract.versions import Version, is_same, ordered
from app.knowledge.cluster.growth import WEEKS_BEFORE, growth_of, whole_week
from app.knowledge.fix.shapes import FixView
from app.knowledge.fix.state import fix_states
from app.knowledge.version.issues import Candidate, load_candidates
from app.knowledge.version.known_issues import standing_of
from app.store.derived.clusters import cluster_of, find_clusters, members_of
from app.store.derived.facets import find_estimated_dates, issues_fixed_in, newest_day, told_values_of
from app.store.derived.readings import find_facts_without_evidence
from app.store.derived.versions import numbers_with, told_values
from app.store.derived.weeks import Opened, opened_between
from app.store.github.issues import find_heads, find_repository
from app.store.github.releases import newest_release
from app.store.github.sync_state import fresh_as_of
from app.store.session import Store

WEEK, LATELY = timedelta(days=7), timedelta(days=28)
TRENDING, NEW, CHANGES = 5, 6, 4
REPORTS_MIN = 2
"""One report is no trend."""
TELLERS_MIN = 3
_ERROR_CHARS = 160
_REPORTED, _BEGAN = "versions.vllm", "regression.first_failing"


class TrendingCluster(Frozen):
    """A failure that was reported more than once lately."""

    id: str
    text: str
    canonical: int
    title: str
    size: int
    lately: int
    this_week: int
    is_growing: bool


class NewFailure(Frozen):
    number: int
    title: str
    error: str
    created_at: datetime | None
    state: str
    has_remedy: bool
    dates_estimated: bool = False


class ReleaseIssue(Frozen):
    """A failure that a release brought or mended; `began`: it is said to fail there first."""

    number: int
    title: str
    state: str
    began: bool = False
    pr: str | None = None


class ReleaseNews(Frozen):
    """The newest release, or while none is stored the newest version that issues speak of."""

    version: str
    is_release: bool
    failing: tuple[ReleaseIssue, ...]
    failing_total: int
    fixed: tuple[ReleaseIssue, ...]
    fixed_total: int


class Home(Frozen):
    trending: tuple[TrendingCluster, ...] = ()
    since: datetime | None = None
    new: tuple[NewFailure, ...] = ()
    new_total: int = 0
    release: ReleaseNews | None = None


def home(store: Store, repo: str) -> Home:
    """The news of a repository; empty where nothing is stored of it."""
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        last = newest_day(session, repo_id) if repo_id is not None else None
        if repo_id is None or last is None:
            return Home()
        begin = last - timedelta(weeks=WEEKS_BEFORE + 2)
        opened = opened_between(session, repo_id, begin, last + timedelta(seconds=1))
        failures = [one for one in opened if one.is_failure]
        fresh = sorted((one.number for one in failures if one.created_at > last - WEEK), reverse=True)
        return Home(
            trending=_trending(session, repo_id, failures, last),
            since=last - WEEK,
            new=_new(session, repo_id, fresh[:NEW]),
            new_total=len(fresh),
            release=_release(session, repo_id, repo),
        )


def _trending(
    session: Session, repo_id: int, failures: Sequence[Opened], last: datetime
) -> tuple[TrendingCluster, ...]:
    """What grows first, then what was reported most lately."""
    clusters = cluster_of(session, repo_id, [one.number for one in failures])
    week = whole_week(failures[0].created_at, last, fresh_as_of(session, repo_id)) if failures else None
    told = growth_of(failures, clusters, week) if week else []
    growing = {one.cluster_id for one in told if one.is_growing}
    lately, this_week = (_reports(failures, clusters, last - span) for span in (LATELY, WEEK))
    ids = [key for key, count in lately.items() if count >= REPORTS_MIN]
    ids.sort(key=lambda key: (key not in growing, -lately[key], -this_week[key], key))
    ids = ids[:TRENDING]
    records, members = find_clusters(session, repo_id, ids), members_of(session, repo_id, ids)
    canonical = [record.canonical for record in records.values()]
    titles = {head.number: mask_secrets(head.title) for head in find_heads(session, repo_id, canonical)}
    return tuple(
        TrendingCluster(
            id=key,
            text=mask_secrets(records[key].text),
            canonical=records[key].canonical,
            title=titles.get(records[key].canonical, ""),
            size=len(members.get(key, ())),
            lately=lately[key],
            this_week=this_week[key],
            is_growing=key in growing,
        )
        for key in ids
        if key in records
    )


def _reports(failures: Iterable[Opened], clusters: Mapping[int, str], since: datetime) -> Counter[str]:
    return Counter(
        clusters[one.number] for one in failures if one.created_at > since and one.number in clusters
    )


def _new(session: Session, repo_id: int, numbers: Sequence[int]) -> tuple[NewFailure, ...]:
    facts = find_facts_without_evidence(session, repo_id, numbers)
    estimated = find_estimated_dates(session, repo_id, numbers)
    return tuple(
        NewFailure(
            number=head.number,
            title=mask_secrets(head.title),
            state=head.state,
            created_at=head.created_at,
            error=_error(facts.get(head.number)),
            dates_estimated=head.number in estimated,
            has_remedy=_has_remedy(facts.get(head.number)),
        )
        for head in find_heads(session, repo_id, numbers)
    )


def _has_remedy(facts: Facts | None) -> bool:
    return facts is not None and any(one.outcome != "fails" for one in facts.workarounds)


def _error(facts: Facts | None) -> str:
    error = facts.error if facts else None
    told = ": ".join(part for part in (error.type, error.message) if part) if error else ""
    return mask_secrets(told)[:_ERROR_CHARS]


def _release(session: Session, repo_id: int, repo: str) -> ReleaseNews | None:
    tag = newest_release(session, repo_id)
    version = tag.removeprefix("v") if tag else _newest_told(session, repo_id)
    if version is None:
        return None
    failing = _failing(session, repo_id, repo, version)
    fixed = _fixed(session, repo_id, repo, tag) if tag else []
    return ReleaseNews(
        version=version,
        is_release=tag is not None,
        failing=tuple(failing[:CHANGES]),
        failing_total=len(failing),
        fixed=tuple(fixed[:CHANGES]),
        fixed_total=len(fixed),
    )


def _newest_told(session: Session, repo_id: int) -> str | None:
    """The newest full release that several issues name as theirs: one alone may say anything."""
    told: dict[Version, set[int]] = defaultdict(set)
    for _, text, number in told_values_of(session, repo_id, [_REPORTED]):
        version = ordered(text)
        if version is not None and not version.is_prerelease:
            told[version].add(number)
    newest = max((key for key, numbers in told.items() if len(numbers) >= TELLERS_MIN), default=None)
    if newest is None:
        return None
    return str(newest) if len(newest.release) > 2 else f"{newest}.0"


def _failing(session: Session, repo_id: int, repo: str, version: str) -> list[ReleaseIssue]:
    """What is said to fail in it and is not fixed in it: what began there first, then by weight."""
    found: dict[str, list[int]] = {}
    for field in (_REPORTED, _BEGAN):
        named = [text for text in told_values(session, field) if is_same(text, version)]
        found[field] = numbers_with(session, repo_id, field, named) if named else []
    numbers = {number for told in found.values() for number in told}
    began = set(found[_BEGAN])
    issues = [
        one
        for one in load_candidates(session, repo_id, repo, numbers, version)
        if standing_of(one, version) not in {None, "closed"}
    ]
    issues.sort(key=lambda one: (one.issue.number not in began, -one.weight, -one.issue.number))
    return [_changed(one, began=one.issue.number in began) for one in issues]


def _changed(one: Candidate, *, began: bool) -> ReleaseIssue:
    return ReleaseIssue(
        number=one.issue.number, title=mask_secrets(one.issue.title), state=one.issue.state, began=began
    )


def _fixed(session: Session, repo_id: int, repo: str, tag: str) -> list[ReleaseIssue]:
    """The failures whose fix came out with it; a fix that was in an earlier one is none of its own."""
    numbers = issues_fixed_in(session, repo_id, repo, tag)
    heads = [head for head in find_heads(session, repo_id, numbers) if head.gone_at is None]
    facts = find_facts_without_evidence(session, repo_id, numbers)
    views: Mapping[int, FixView] = fix_states(session, repo_id, repo, heads, facts)
    return [
        ReleaseIssue(number=head.number, title=mask_secrets(head.title), state=head.state, pr=view.pr)
        for head in heads
        if (view := views[head.number]).state == "fixed" and is_same(view.released_in, tag)
    ]
