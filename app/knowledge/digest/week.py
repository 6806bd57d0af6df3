"""The issues of a week and the lists of a digest that are computed from them.

`load_week` loads the issues opened in the week and their failures, each with all reports of its cluster. A
fix belongs to the period of its release or of its merge (`fixed_in`).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict, Field, computed_field
from sqlalchemy.orm import Session

from app.extract.facts import FORMER, ErrorLine, Facts, FailureKind, Frozen, Regression
from app.extract.redact import listed_error, mask_secrets
from app.extract.versions import ordered, plain_version
from app.knowledge.cluster.members import cluster_fix
from app.knowledge.cluster.timeline import ClosedButAlive, closed_but_alive
from app.knowledge.fix.shapes import FixView
from app.knowledge.iso_week import IsoWeek
from app.knowledge.issue.stored import IssueHead
from app.knowledge.remedies import OUTCOME_RANK, Remedy, rank_remedies, remedies_of
from app.knowledge.version.issues import ListedFailure, load_failures
from app.store.derived.clusters import ClusterRecord, find_clusters, members_of
from app.store.derived.weeks import (
    Opened,
    OpenedSpan,
    maybe_fixed_between,
    opened_between,
    opened_span,
    release_dates,
    remedies_between,
)
from app.store.github.issues import find_heads, find_repository
from app.store.github.sync_state import fresh_as_of
from app.store.session import Store

Fixing = Literal["released", "merged"]


Place = Literal["issue", "comment"]


class DigestIssue(IssueHead):
    """An issue as a row of the digest's lists; texts are masked."""

    model_config = ConfigDict(extra="ignore")  # former field names are computed, not parsed

    created_at: datetime | None
    failure_kind: FailureKind
    error: ErrorLine | None = None
    comments: int
    reactions: int

    @computed_field(description="former name of `failure_kind`", json_schema_extra=FORMER)
    def kind(self) -> FailureKind:
        return self.failure_kind


class WeekReport(Frozen):
    """A failure opened in the week, as a row of the full list."""

    number: int
    title: str
    cluster_id: str | None = None


class ClusterNews(Frozen):
    """A failure reported in the week; fix and remedies are those of all its reports."""

    model_config = ConfigDict(extra="ignore")  # former field names are computed, not parsed

    id: str
    text: str
    canonical: int
    title: str
    reports: int = Field(description="number of reports in the week")
    numbers: tuple[int, ...] = Field(description="issue numbers of the week's reports")
    size: int = Field(description="number of reports of all time")
    is_new: bool = Field(description="whether it was first reported in the week")
    workarounds: tuple[Remedy, ...] = Field((), description="best of all its reports; empty if none is known")
    fix: FixView | None = Field(None, description="as the report with the most certain fix state has it")

    @computed_field(description="former name of `workarounds[0]`", json_schema_extra=FORMER)
    def remedy(self) -> Remedy | None:
        """The best remedy, if any."""
        return next(iter(self.workarounds), None)


class RegressionNews(DigestIssue):
    """A failure of the week with a stated regression range."""

    regression: Regression


class VersionNews(Frozen):
    """The week's regressions with the same first bad version; null if none is stated."""

    version: str | None
    items: tuple[RegressionNews, ...]


class FixNews(DigestIssue):
    """A failure whose fix was released or merged in the week."""

    how: Fixing
    fix: FixView
    merged_at: datetime | None = None
    released_at: datetime | None = None


class RemedyNews(Frozen):
    """A remedy posted in the week."""

    remedy: Remedy
    title: str
    told_at: datetime
    told_in: Place


class AliveNews(Frozen):
    """A failure reported again in the week although its canonical issue is closed."""

    id: str
    text: str
    canonical: int
    title: str
    alive: ClosedButAlive = Field(description="reports of this week that came after it was closed")
    numbers: tuple[int, ...] = Field(description="issue numbers of the week's reports")


class UnremediedNews(DigestIssue):
    """A failure of the week without remedy or fix, represented by its most discussed report."""

    cluster: str
    numbers: tuple[int, ...] = Field(description="issue numbers of the week's reports of this failure")
    hits: int = Field(description="reports plus their comments and reactions to date")


CHART_WEEKS = 13
"""A quarter; with more weeks the chart has no room for the numbers above its columns."""
ACTION_CHARS = 300
REMEDIES_MAX = 3
_FIXED = frozenset({"fixed", "merged_unreleased"})


@dataclass(frozen=True, slots=True)
class WeekIssues:
    """The issues and failures of a week.

    Attributes:
        opened: issues opened in the `CHART_WEEKS` weeks up to and including this one.
        issues, reports: numbers of the week's issues, and of those that report a failure.
        candidates: by number, the week's reports and all other reports of their clusters.
        failures: failures of the week, most reports first.
    """

    week: IsoWeek
    opened: tuple[Opened, ...]
    issues: tuple[int, ...]
    reports: tuple[int, ...]
    candidates: Mapping[int, ListedFailure]
    failures: tuple[ClusterNews, ...]

    def known(self, numbers: Iterable[int]) -> list[ListedFailure]:
        """Return those of these reports that are loaded."""
        return [self.candidates[number] for number in numbers if number in self.candidates]

    def hits(self, numbers: Iterable[int]) -> int:
        """Count these reports plus their comments and reactions."""
        return sum(1 + one.issue.comments + one.issue.reactions for one in self.known(numbers))


def load_week(session: Session, repo_id: int, repo: str, week: IsoWeek) -> WeekIssues:
    """Load everything the digest's lists need."""
    opened = tuple(opened_between(session, repo_id, week.shifted(1 - CHART_WEEKS).start, week.end))
    issues = [one for one in opened if one.created_at >= week.start]
    reports = tuple(one.number for one in issues if one.is_failure)
    numbers: dict[str, list[int]] = defaultdict(list)
    for one in issues:
        if one.is_failure and one.cluster_id:
            numbers[one.cluster_id].append(one.number)
    records, members = find_clusters(session, repo_id, [*numbers]), members_of(session, repo_id, numbers)
    wanted = {*reports, *(number for key in members for number in members[key])}
    candidates = {one.issue.number: one for one in load_failures(session, repo_id, repo, wanted)}
    failures = [
        _cluster_news(
            records[key], of_week, [candidates[number] for number in members[key] if number in candidates]
        )
        for key, of_week in numbers.items()
    ]
    failures.sort(key=lambda one: (-one.reports, -one.size, one.numbers))
    return WeekIssues(
        week=week,
        opened=opened,
        issues=tuple(one.number for one in issues),
        reports=reports,
        candidates=candidates,
        failures=tuple(failures),
    )


def _cluster_news(
    cluster: ClusterRecord, of_week: Sequence[int], reports: Sequence[ListedFailure]
) -> ClusterNews:
    canonical = next((one for one in reports if one.issue.number == cluster.canonical), None)
    told = (remedy for one in reports for remedy in one.remedies)
    helping = [remedy for remedy in rank_remedies(told) if remedy.outcome != "fails"]
    return ClusterNews(
        id=cluster.id,
        text=mask_secrets(cluster.text),
        canonical=cluster.canonical,
        title=mask_secrets(canonical.issue.title) if canonical else "",
        reports=len(of_week),
        numbers=tuple(of_week),
        size=len(reports),
        is_new=len(reports) == len(of_week),
        workarounds=tuple(map(listed_remedy, helping[:REMEDIES_MAX])),
        fix=cluster_fix(cluster.canonical, reports),
    )


def one_line(text: str, chars: int) -> str:
    """Mask text from an issue, join its lines and cut it to `chars` characters."""
    words = " ".join(mask_secrets(text).split())
    return words if len(words) <= chars else f"{words[:chars].rstrip()}…"


def error_text(facts: Facts) -> str:
    """Return type and message of the error as far as known; "" without an error."""
    return facts.error.line if facts.error else ""


def listed_remedy(remedy: Remedy) -> Remedy:
    """Return a remedy with its action cut for lists."""
    return remedy.model_copy(update={"action": one_line(remedy.action, ACTION_CHARS)})


def issue_fields(one: ListedFailure) -> dict[str, Any]:
    """Return the masked fields of a `DigestIssue` that are not copied from the issue."""
    return {
        "repo": one.repo,
        "title": mask_secrets(one.issue.title),
        "failure_kind": one.facts.failure_kind,
        "error": listed_error(one.facts.error),
    }


def all_reports(week: WeekIssues) -> tuple[WeekReport, ...]:
    """Return every failure of the week, newest first."""
    ids = {number: one.id for one in week.failures for number in one.numbers}
    return tuple(
        WeekReport(
            number=number,
            title=mask_secrets(week.candidates[number].issue.title) if number in week.candidates else "",
            cluster_id=ids.get(number),
        )
        for number in sorted(week.reports, reverse=True)
    )


def regression_news(week: WeekIssues) -> tuple[VersionNews, ...]:
    """Return the week's regressions grouped by first bad version, newest first."""
    found: dict[str | None, list[RegressionNews]] = defaultdict(list)
    for one in week.known(week.reports):
        since = one.facts.regression
        if since is not None and (since.first_failing or since.last_working or since.culprit):
            began = plain_version(since.first_failing) if since.first_failing else None
            found[began].append(RegressionNews.based_on(one.issue, **issue_fields(one), regression=since))
    comparable = [(version, key) for key in found if key and (version := ordered(key)) is not None]
    newest_first = [key for _, key in sorted(comparable, reverse=True)]
    others = sorted(key for key in found if key is not None and key not in newest_first)
    keys = [*newest_first, *others, *([None] if None in found else [])]
    return tuple(VersionNews(version=key, items=tuple(found[key])) for key in keys)


def unremedied(week: WeekIssues) -> tuple[UnremediedNews, ...]:
    """Return the failures of the week without remedy or fix, most hits first."""
    found = []
    for one in week.failures:
        known = week.known(one.numbers)
        if known and not one.workarounds and not (one.fix and one.fix.state in _FIXED):
            most = max(known, key=lambda report: (week.hits([report.issue.number]), -report.issue.number))
            hits = week.hits(one.numbers)
            found.append(
                UnremediedNews.based_on(
                    most.issue, **issue_fields(most), numbers=one.numbers, cluster=one.id, hits=hits
                )
            )
    return tuple(sorted(found, key=lambda one: (-one.hits, one.number)))


def alive_news(week: WeekIssues) -> tuple[AliveNews, ...]:
    """Return the failures reported again in the week although their canonical issue is closed."""
    found = []
    for one in week.failures:
        alive = closed_but_alive(week.candidates.get(one.canonical), week.known(one.numbers), one.fix)
        if alive:
            found.append(AliveNews.based_on(one, alive=alive))
    return tuple(sorted(found, key=lambda one: (-one.alive.reports_since, one.canonical)))


def newest_whole_week(store: Store, repo: str) -> IsoWeek | None:
    """Return the newest completely stored week, else the newest with issues; None if there are none."""
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        return whole_week(opened_span(session, repo_id), fresh_as_of(session, repo_id))


def whole_week(span: OpenedSpan, as_of: datetime | None) -> IsoWeek | None:
    """As `newest_whole_week`, given the period with issues and the time of the newest complete sync."""
    if span.first is None or span.last is None:
        return None
    newest = IsoWeek.of(span.last)
    is_whole = data_end(span.last, as_of) >= newest.end
    return newest if is_whole or IsoWeek.of(span.first) == newest else newest.shifted(-1)


def data_end(last: datetime, as_of: datetime | None) -> datetime:
    """Return the end of the stored data: the newest complete sync, or the newest issue if later."""
    return max(last, as_of) if as_of else last


def fixed_in(
    session: Session, repo_id: int, repo: str, start: datetime, end: datetime
) -> tuple[tuple[FixNews, ...], dict[int, Facts]]:
    """Return the failures whose fix was released or merged in `[start, end)`, and their facts.

    Released fixes come first, then those with the most comments and reactions.
    """
    failures = load_failures(session, repo_id, repo, maybe_fixed_between(session, repo_id, repo, start, end))
    names = {one.issue.number: (one.fix.pr or "").removeprefix("#") for one in failures}
    pulls = {number: int(name) for number, name in names.items() if name.isdigit()}
    merges = {one.number: one.merged_at for one in find_heads(session, repo_id, sorted({*pulls.values()}))}
    releases = {ordered(one.tag): one.published_at for one in reversed(release_dates(session, repo_id))}
    found = []
    for one in failures:
        fix = one.fix
        merged_at = merges.get(pulls.get(one.issue.number, 0))
        release = ordered(fix.released_in)
        released_at = releases.get(release) if release is not None else None
        is_released = released_at is not None and start <= released_at < end
        if fix.state in _FIXED and (is_released or (merged_at is not None and start <= merged_at < end)):
            found.append(
                FixNews.based_on(
                    one.issue,
                    **issue_fields(one),
                    how="released" if is_released else "merged",
                    merged_at=merged_at,
                    released_at=released_at,
                    fix=fix.model_copy(update={"reason": mask_secrets(fix.reason)}),
                )
            )
    found.sort(key=lambda one: (one.how == "merged", -one.comments - one.reactions, one.number))
    return tuple(found), {one.issue.number: one.facts for one in failures}


def remedies_in(
    session: Session, repo_id: int, repo: str, start: datetime, end: datetime
) -> tuple[RemedyNews, ...]:
    """Return the remedies posted in `[start, end)` that work at least partly, best outcome first."""
    sources = remedies_between(session, repo_id, start, end)
    failures = load_failures(session, repo_id, repo, {one.number for one in sources})
    issues = {one.issue.number: one for one in failures}
    found = []
    for number, source, at in sources:
        if number not in issues:
            continue
        head, known = issues[number].issue, issues[number].facts
        own = tuple(one for one in known.workarounds if one.source == source and one.outcome != "fails")
        found += [
            RemedyNews(
                remedy=listed_remedy(one),
                title=mask_secrets(head.title),
                told_at=at,
                told_in="comment" if source.startswith("comment:") else "issue",
            )
            for one in remedies_of(known.model_copy(update={"workarounds": own}), repo=repo, url=head.url)
        ]
    found.sort(
        key=lambda one: (
            OUTCOME_RANK[one.remedy.outcome],
            one.remedy.refuted_by - one.remedy.confirmed_by,
            one.remedy.number,
            one.told_at,
            one.remedy.action,
        )
    )
    return tuple(found)
