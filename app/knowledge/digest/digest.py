"""The digest of a week: what broke, what got fixed and what to do.

The same week and database give the same digest, whenever it is asked for.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime
from itertools import groupby, islice
from typing import Any

from sqlmodel import Session

from app.errors import NotFoundError
from app.extract.facts import BACKEND_KEYS
from app.extract.redaction.redact import mask_secrets
from app.knowledge.cluster.timeline import WEEKS_BEFORE, describe_growing, growths, weeks_covered
from app.knowledge.digest.advice import advice, headline
from app.knowledge.digest.shapes import ArchivePage, AreaCount, DataState, Digest, ValueCount, WeekCount
from app.knowledge.digest.week import (
    CHART_WEEKS,
    WeekIssues,
    alive_news,
    cluster_news,
    data_end,
    fixed_in,
    load_week,
    regression_news,
    remedies_in,
    unremedied,
)
from app.knowledge.iso_week import IsoWeek
from app.knowledge.text.markdown import render_markdown
from app.store.derived.facts import find_estimated_dates
from app.store.derived.weeks import (
    Opened,
    OpenedSpan,
    nearest_opened,
    opened_between,
    opened_span,
    release_dates,
    values_in_reports,
)
from app.store.github.issues import find_repository
from app.store.github.sync_state import fresh_as_of
from app.store.session import Store

CLUSTERS_LISTED = 15
FIXED_LISTED = 20
REMEDIES_LISTED = 15
UNREMEDIED_LISTED = 8
GROWING_LISTED = 10
AREA_FIELDS = ("failure_kind", "gpus", *(f"backends.{key}" for key in BACKEND_KEYS))
AREA_VALUES_LISTED = 6
AREA_REPORTS_MIN = 2
"""What one report only names is no area."""


def make_digest(store: Store, repo: str, week: IsoWeek) -> Digest:
    """The digest of a week; a week without issues has an empty one.

    Raises:
        NotFoundError: nothing of the repository is stored.
    """
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        if repo_id is None:
            raise NotFoundError(f"Nothing of {repo} is stored: run `triage sync` first.")
        return _digest(session, repo_id, repo, week)


def _digest(session: Session, repo_id: int, repo: str, week: IsoWeek) -> Digest:
    span, loaded = opened_span(session, repo_id), load_week(session, repo_id, repo, week)
    data, covered = _data_state(session, repo_id, span, loaded), weeks_covered(span.first, week)
    weeks = count_weeks(loaded.opened, [week.shifted(n - CHART_WEEKS + 1) for n in range(CHART_WEEKS)])
    fixed, facts_of_fixed = fixed_in(session, repo_id, repo, week.start, week.end)
    remedies = remedies_in(session, repo_id, repo, week.start, week.end)
    clusters, regressions, without = cluster_news(loaded), regression_news(loaded), unremedied(loaded)
    tested = growths(loaded.opened, week) if covered == WEEKS_BEFORE else []
    grown = [one for one in tested if one.is_growing]
    growing = describe_growing(session, repo_id, grown[:GROWING_LISTED])
    earlier = nearest_opened(session, repo_id, week.start, before=True)
    later = nearest_opened(session, repo_id, week.end, before=False)
    before = weeks[-2].failures if data.is_over else None
    return Digest(
        repo=repo,
        week=str(week),
        days=week.days,
        start=week.start,
        end=week.end,
        previous=str(IsoWeek.of(earlier)) if earlier else None,
        next=str(IsoWeek.of(later)) if later else None,
        headline=headline(loaded, clusters, len(grown), fixed, before),
        advice=advice(loaded, fixed, facts_of_fixed, regressions, growing, without),
        data=data,
        issues=len(loaded.issues),
        failures=len(loaded.reports),
        issues_before=weeks[-2].issues,
        failures_before=weeks[-2].failures,
        weeks_before=covered,
        weeks=weeks,
        **_counts(session, repo_id, loaded, covered),
        clusters=clusters[:CLUSTERS_LISTED],
        repeated_total=len(clusters),
        failures_total=len(loaded.failures),
        growing=growing,
        growing_tested=len(tested),
        regressions=regressions,
        fixed=fixed[:FIXED_LISTED],
        fixed_total=len(fixed),
        remedies=remedies[:REMEDIES_LISTED],
        remedies_total=len(remedies),
        unremedied=without[:UNREMEDIED_LISTED],
        unremedied_total=len(without),
        alive=alive_news(loaded),
    )


def _data_state(session: Session, repo_id: int, span: OpenedSpan, loaded: WeekIssues) -> DataState:
    until, end = data_end(span.last, fresh_as_of(session, repo_id)) if span.last else None, loaded.week.end
    releases = release_dates(session, repo_id)
    full = [one for one in releases if not one.is_prerelease and one.published_at < end]
    return DataState(
        until=until,
        is_over=until is not None and until >= end,
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


def _counts(session: Session, repo_id: int, loaded: WeekIssues, covered: int) -> dict[str, Any]:
    """The fields of a digest that tell in how many of the week's reports each value stands."""
    week = loaded.week
    spellings: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    numbers: dict[tuple[str, str], set[int]] = defaultdict(set)
    for field, value, key, number in _values(session, repo_id, loaded, week.start, week.end):
        spellings[field, key][value] += 1
        numbers[field, key].add(number)
    earlier = _values(session, repo_id, loaded, week.shifted(-WEEKS_BEFORE).start, week.start)
    before = Counter(name for name, _ in {((field, key), number) for field, _, key, number in earlier})
    areas = [
        AreaCount(
            field=name[0],
            value=mask_secrets(min(spelled, key=lambda value: (-spelled[value], value))),
            reports=len(numbers[name]),
            before=before[name],
            mean_before=before[name] / WEEKS_BEFORE if covered == WEEKS_BEFORE else None,
        )
        for name, spelled in spellings.items()
    ]
    areas.sort(key=lambda area: (AREA_FIELDS.index(area.field), -area.reports, area.value))
    counts: dict[str, list[ValueCount]] = defaultdict(list)
    for area in areas:
        counts[area.field].append(ValueCount(value=area.value, reports=area.reports))
    with_hardware = {number for (field, _), named in numbers.items() if field == "gpus" for number in named}
    return {
        "kinds": counts["failure_kind"],
        "hardware": counts["gpus"],
        "without_hardware": len(loaded.reports) - len(with_hardware),
        "areas": [
            area
            for _, of_field in groupby(areas, key=lambda area: area.field)
            for area in islice(of_field, AREA_VALUES_LISTED)
            if area.reports >= AREA_REPORTS_MIN
        ],
    }


def _values(
    session: Session, repo_id: int, loaded: WeekIssues, start: datetime, end: datetime
) -> list[tuple[str, str, str, int]]:
    """The values in the reports of a time: field, value, value in lower case, number."""
    kinds = [
        (AREA_FIELDS[0], one.kind, one.kind, one.number)
        for one in loaded.opened
        if one.is_failure and start <= one.created_at < end
    ]
    return kinds + values_in_reports(session, repo_id, start, end, AREA_FIELDS[1:])


def archive(store: Store, repo: str) -> ArchivePage:
    """All weeks with issues, the newest first; empty where nothing is stored."""
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        span = opened_span(session, repo_id) if repo_id is not None else OpenedSpan(None, None, 0)
        if repo_id is None or span.first is None or span.last is None:
            return ArchivePage(repo=repo, weeks=(), undated=span.undated)
        opened = opened_between(session, repo_id, IsoWeek.of(span.first).start, IsoWeek.of(span.last).end)
    weeks = sorted({IsoWeek.of(one.created_at) for one in opened}, reverse=True)
    return ArchivePage(repo=repo, weeks=count_weeks(opened, weeks), undated=span.undated)


def digest_markdown(digest: Digest) -> str:
    """The digest as Markdown; ends with a line end."""
    return render_markdown("digest.md", digest=digest)
