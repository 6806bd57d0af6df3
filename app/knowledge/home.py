"""News for the front page: growing and new failures, and changes in the newest release.

"This week" means the seven days up to the newest stored issue, so that old data shows its own last week.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from app.extract.facts import Frozen
from app.extract.versions import is_same, ordered
from app.knowledge.cluster.timeline import WEEKS_BEFORE, cluster_fields, growths
from app.knowledge.digest.week import DigestIssue, FixNews, fixed_in, issue_fields, whole_week
from app.knowledge.iso_week import IsoWeek
from app.knowledge.possible_versions import REPORTED
from app.knowledge.version.issues import load_failures
from app.knowledge.version.regressions import basis_of, numbers_naming, standing_of
from app.store.derived.facts import find_estimated_dates, often_stated
from app.store.derived.weeks import Opened, opened_between, opened_span, release_dates
from app.store.github.issues import find_repository
from app.store.github.sync_state import fresh_as_of
from app.store.session import Store

WEEK, RECENT = timedelta(days=7), timedelta(days=28)
TRENDING, NEW, CHANGES = 5, 6, 4
REPORTS_MIN = 2
"""Fewest recent reports of a trending failure."""
MENTIONS_MIN = 3
_BEGAN = "regression.first_failing"


class TrendingCluster(Frozen):
    """A failure with several reports in the last 28 days."""

    id: str
    text: str
    canonical: int
    title: str
    size: int
    lately: int
    this_week: int
    is_growing: bool


class NewFailure(DigestIssue):
    has_remedy: bool
    dates_estimated: bool = False


class ReleaseFailure(DigestIssue):
    """A failure in a release; `began`: the release is its stated first bad version."""

    began: bool


class ReleaseNews(Frozen):
    """The newest release or, if none is stored, the newest version named in issues."""

    version: str
    is_release: bool
    failing: tuple[ReleaseFailure, ...]
    failing_total: int
    fixed: tuple[FixNews, ...]
    fixed_total: int


class Home(Frozen):
    trending: tuple[TrendingCluster, ...] = ()
    since: datetime | None = None
    new: tuple[NewFailure, ...] = ()
    new_total: int = 0
    release: ReleaseNews | None = None


def home(store: Store, repo: str) -> Home:
    """Return the news of a repository, empty if nothing of it is stored."""
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        span = opened_span(session, repo_id)
        if span.last is None:
            return Home()
        last, week = span.last, whole_week(span, fresh_as_of(session, repo_id))
        begin = last - timedelta(weeks=WEEKS_BEFORE + 2)
        opened = opened_between(session, repo_id, begin, last + timedelta(seconds=1))
        failures = [one for one in opened if one.is_failure]
        fresh = sorted((one.number for one in failures if one.created_at > last - WEEK), reverse=True)
        return Home(
            trending=_trending(session, repo_id, failures, last, week),
            since=last - WEEK,
            new=_new(session, repo_id, repo, fresh[:NEW]),
            new_total=len(fresh),
            release=_release(session, repo_id, repo),
        )


def _trending(
    session: Session, repo_id: int, failures: Sequence[Opened], last: datetime, week: IsoWeek | None
) -> tuple[TrendingCluster, ...]:
    """Return growing failures first, then those with the most recent reports."""
    growing = {one.id for one in growths(failures, week)} if week else set()
    lately, this_week = (
        Counter(one.cluster_id for one in failures if one.cluster_id and one.created_at > last - span)
        for span in (RECENT, WEEK)
    )
    ids = [key for key, count in lately.items() if key and count >= REPORTS_MIN]
    ids = sorted(ids, key=lambda key: (key not in growing, -lately[key], -this_week[key], key))[:TRENDING]
    return tuple(
        TrendingCluster(
            id=key, **known, lately=lately[key], this_week=this_week[key], is_growing=key in growing
        )
        for key, known in cluster_fields(session, repo_id, ids).items()
    )


def _new(session: Session, repo_id: int, repo: str, numbers: Sequence[int]) -> tuple[NewFailure, ...]:
    estimated = find_estimated_dates(session, repo_id, numbers)
    return tuple(
        NewFailure.based_on(
            one.issue,
            **issue_fields(one),
            dates_estimated=one.issue.number in estimated,
            has_remedy=any(item.outcome != "fails" for item in one.facts.workarounds),
        )
        for one in reversed(load_failures(session, repo_id, repo, numbers))
    )


def _release(session: Session, repo_id: int, repo: str) -> ReleaseNews | None:
    newest = next((one for one in reversed(release_dates(session, repo_id)) if not one.is_prerelease), None)
    version = newest.tag.removeprefix("v") if newest else _newest_named(session, repo_id)
    if version is None:
        return None
    failing = _failing(session, repo_id, repo, version)
    fixed: list[FixNews] = []
    if newest:
        end = newest.published_at + timedelta(seconds=1)
        released, _ = fixed_in(session, repo_id, repo, newest.published_at, end)
        fixed = [one for one in released if one.how == "released" and is_same(one.fix.released_in, version)]
    return ReleaseNews(
        version=version,
        is_release=newest is not None,
        failing=tuple(failing[:CHANGES]),
        failing_total=len(failing),
        fixed=tuple(fixed[:CHANGES]),
        fixed_total=len(fixed),
    )


def _newest_named(session: Session, repo_id: int) -> str | None:
    """Return the newest full release reported by at least `MENTIONS_MIN` issues; fewer may be mistakes."""
    named = map(ordered, often_stated(session, repo_id, REPORTED, MENTIONS_MIN))
    newest = max((one for one in named if one is not None and not one.is_prerelease), default=None)
    if newest is None:
        return None
    return str(newest) if len(newest.release) > 2 else f"{newest}.0"


def _failing(session: Session, repo_id: int, repo: str, version: str) -> list[ReleaseFailure]:
    """Return the unfixed failures reported in a version: those first bad in it first, then by weight."""
    began = numbers_naming(session, repo_id, _BEGAN, version)
    numbers = began | numbers_naming(session, repo_id, REPORTED, version)
    issues = [
        one
        for one in load_failures(session, repo_id, repo, numbers, version)
        if standing_of(one, version) not in {None, "closed"}
        and basis_of(version, one.facts.regression, is_reported=True) == "reported"
    ]
    issues.sort(key=lambda one: (one.issue.number not in began, -one.weight, -one.issue.number))
    return [
        ReleaseFailure.based_on(one.issue, **issue_fields(one), began=one.issue.number in began)
        for one in issues
    ]
