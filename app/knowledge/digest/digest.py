"""The digest of a week: what broke, what got fixed and what to do.

In: a repository and a week. Out: a `Digest`. The same week and database give the same digest: nothing in it
depends on when it is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypedDict

from sqlmodel import Session

from app.errors import NotFoundError
from app.extract.facts import BACKEND_KEYS
from app.extract.redaction.redact import mask_secrets
from app.knowledge.cluster.growth import (
    WEEKS_BEFORE,
    data_end,
    growth_of,
    reports_by_cluster,
    show_growing,
    weeks_covered,
)
from app.knowledge.digest.advice import advice, headline
from app.knowledge.digest.sections import (
    CLUSTERS_SHOWN,
    Span,
    alive_news,
    cluster_news,
    fixed_in,
    regression_news,
    remedies_in,
    unremedied,
)
from app.knowledge.digest.shapes import ArchivePage, AreaCount, DataState, Digest, ValueCount, WeekCount
from app.knowledge.digest.week import CHART_WEEKS, WeekIssues, load_week
from app.knowledge.iso_week import IsoWeek
from app.store.derived.facets import find_estimated_dates
from app.store.derived.weeks import (
    Opened,
    OpenedSpan,
    nearest_opened,
    opened_between,
    opened_span,
    release_dates,
    told_in_reports,
)
from app.store.github.issues import find_repository
from app.store.github.sync_state import fresh_as_of
from app.store.session import Store

FIXED_SHOWN = 20
REMEDIES_SHOWN = 15
UNREMEDIED_SHOWN = 8
GROWING_SHOWN = 10
AREA_FIELDS = ("failure_kind", "gpus", *(f"backends.{key}" for key in BACKEND_KEYS))
AREA_VALUES_SHOWN = 6
AREA_REPORTS_MIN = 2
"""What one report only names is no area."""


def make_digest(store: Store, repo: str, week: IsoWeek) -> Digest:
    """The digest of a week; one without issues is told as empty.

    Raises:
        NotFoundError: nothing of the repository is stored.
        StoreError: the database cannot be read.
    """
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        if repo_id is None:
            raise NotFoundError(f"Nothing of {repo} is stored: run `triage sync` first.")
        return _digest(session, repo_id, repo, week)


def _digest(session: Session, repo_id: int, repo: str, week: IsoWeek) -> Digest:
    span, loaded = opened_span(session, repo_id), load_week(session, repo_id, repo, week)
    data, covered = _data_state(session, repo_id, week, span, loaded), weeks_covered(span.first, week)
    weeks = count_weeks(loaded.opened, [week.shifted(n - CHART_WEEKS + 1) for n in range(CHART_WEEKS)])
    then = Span(week.start, week.end)
    fixed, fixed_facts = fixed_in(session, repo_id, repo, then)
    remedies = remedies_in(session, repo_id, repo, loaded.issues, then)
    clusters, regressions, without = cluster_news(loaded), regression_news(loaded), unremedied(loaded)
    tested = growth_of(loaded.opened, loaded.clusters, week) if covered == WEEKS_BEFORE else []
    named = [one for one in tested if one.is_growing]
    rising = show_growing(
        session, repo_id, named[:GROWING_SHOWN], reports_by_cluster(loaded.opened, loaded.clusters, week)
    )
    earlier = nearest_opened(session, repo_id, week.start, before=True)
    later = nearest_opened(session, repo_id, week.end, before=False)
    return Digest(
        repo=repo,
        week=str(week),
        days=week.days,
        start=week.start,
        end=week.end,
        previous=str(IsoWeek.of(earlier)) if earlier else None,
        next=str(IsoWeek.of(later)) if later else None,
        headline=headline(
            loaded,
            clusters=clusters,
            growing=len(named),
            fixed=fixed,
            before=weeks[-2].failures if data.is_over else None,
        ),
        advice=advice(
            loaded,
            fixed=fixed,
            regressions=regressions,
            growing=rising,
            without=without,
            facts_of_fixed=fixed_facts,
        ),
        data=data,
        issues=len(loaded.issues),
        failures=len(loaded.reports),
        issues_before=weeks[-2].issues,
        failures_before=weeks[-2].failures,
        weeks_before=covered,
        weeks=weeks,
        **_counts(session, repo_id, loaded, covered),
        clusters=clusters[:CLUSTERS_SHOWN],
        repeated_total=len(clusters),
        failures_total=len(loaded.groups),
        growing=rising,
        growing_tested=len(tested),
        regressions=regressions,
        fixed=fixed[:FIXED_SHOWN],
        fixed_total=len(fixed),
        remedies=remedies[:REMEDIES_SHOWN],
        remedies_total=len(remedies),
        unremedied=without[:UNREMEDIED_SHOWN],
        unremedied_total=len(without),
        alive=alive_news(loaded),
    )


def _data_state(
    session: Session, repo_id: int, week: IsoWeek, span: OpenedSpan, loaded: WeekIssues
) -> DataState:
    until = data_end(span.last, fresh_as_of(session, repo_id)) if span.last else None
    full = [
        release
        for release in release_dates(session, repo_id)
        if not release.is_prerelease and release.published_at < week.end
    ]
    return DataState(
        until=until,
        is_over=until is not None and until >= week.end,
        undated=span.undated,
        estimated=len(find_estimated_dates(session, repo_id, loaded.issues)),
        newest_release=full[-1].tag.removeprefix("v") if full else None,
        newest_release_at=full[-1].published_at if full else None,
    )


def count_weeks(opened: Iterable[Opened], weeks: Iterable[IsoWeek]) -> tuple[WeekCount, ...]:
    """How many issues and failures were opened in each of these weeks."""
    issues: Counter[IsoWeek] = Counter()
    failures: Counter[IsoWeek] = Counter()
    for one in opened:
        week = IsoWeek.of(one.created_at)
        issues[week] += 1
        failures[week] += one.is_failure
    return tuple(WeekCount(week=str(week), issues=issues[week], failures=failures[week]) for week in weeks)


class _Counts(TypedDict):
    kinds: tuple[ValueCount, ...]
    hardware: tuple[ValueCount, ...]
    without_hardware: int
    areas: tuple[AreaCount, ...]


def _counts(session: Session, repo_id: int, loaded: WeekIssues, covered: int) -> _Counts:
    """In how many of the week's reports each kind of failure, each GPU and each backend stands."""
    told = _told(session, repo_id, loaded.of_week())
    past = _issues_by_value(_told(session, repo_id, loaded.before()))
    written = Counter((field, key, value) for field, value, key, _ in told)
    areas = []
    for (field, key), numbers in _issues_by_value(told).items():
        spellings = Counter({name[2]: n for name, n in written.items() if name[:2] == (field, key)})
        before = len(past.get((field, key), ()))
        areas.append(
            AreaCount(
                field=field,
                value=mask_secrets(_most(spellings)[0][0]),
                reports=len(numbers),
                before=before,
                mean_before=before / WEEKS_BEFORE if covered == WEEKS_BEFORE else None,
            )
        )
    areas.sort(key=lambda area: (AREA_FIELDS.index(area.field), -area.reports, area.value))
    named = {number for field, _, _, number in told if field == "gpus"}
    return _Counts(
        kinds=_of_field(areas, "failure_kind"),
        hardware=_of_field(areas, "gpus"),
        without_hardware=len(set(loaded.reports) - named),
        areas=tuple(
            area
            for field in AREA_FIELDS
            for area in _field(areas, field)[:AREA_VALUES_SHOWN]
            if area.reports >= AREA_REPORTS_MIN
        ),
    )


Told = tuple[str, str, str, int]
"""What stands in an issue's facts: field, value, value in lower case, number."""


def _told(session: Session, repo_id: int, reports: Sequence[Opened]) -> list[Told]:
    numbers = [one.number for one in reports]
    kinds = [(AREA_FIELDS[0], one.kind, one.kind, one.number) for one in reports]
    return kinds + told_in_reports(session, repo_id, numbers, AREA_FIELDS[1:])


def _issues_by_value(told: Iterable[Told]) -> dict[tuple[str, str], set[int]]:
    """The issues in which each value stands, however it is spelled."""
    found: dict[tuple[str, str], set[int]] = {}
    for field, _, key, number in told:
        found.setdefault((field, key), set()).add(number)
    return found


def _field(areas: Iterable[AreaCount], field: str) -> list[AreaCount]:
    return [area for area in areas if area.field == field]


def _of_field(areas: Iterable[AreaCount], field: str) -> tuple[ValueCount, ...]:
    return tuple(ValueCount(value=area.value, reports=area.reports) for area in _field(areas, field))


def _most(counts: Counter[str]) -> list[tuple[str, int]]:
    """The most frequent first; equals by their name, so that the order is the same each time."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def archive(store: Store, repo: str) -> ArchivePage:
    """All weeks with issues, the newest first; empty where nothing is stored.

    Raises:
        StoreError: the database cannot be read.
    """
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        span = opened_span(session, repo_id) if repo_id is not None else OpenedSpan(None, None, 0)
        if repo_id is None or span.first is None or span.last is None:
            return ArchivePage(repo=repo, weeks=(), undated=span.undated)
        last = IsoWeek.of(span.last)
        opened = opened_between(session, repo_id, IsoWeek.of(span.first).start, last.end)
    weeks = sorted({IsoWeek.of(one.created_at) for one in opened}, reverse=True)
    return ArchivePage(repo=repo, weeks=count_weeks(opened, weeks), undated=span.undated)
