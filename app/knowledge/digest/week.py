"""The issues of a week and the lists of a digest that are computed from them.

`load_week` loads the issues opened in the week and their failures, each with all reports of its cluster. A
fix belongs to the period of its release or of its merge (`fixed_in`).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
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
from app.store.derived.clusters import find_clusters, members_of
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
from app.store.records import IssueRecord
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
    """A failure reported in the week."""

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

    cluster: str | None
    numbers: tuple[int, ...] = Field(description="issue numbers of the week's reports of this failure")
    hits: int = Field(description="reports plus their comments and reactions to date")


CHART_WEEKS = 13
"""A quarter; with more weeks the chart has no room for the numbers above its columns."""
ACTION_CHARS = 300
_FIXED = frozenset({"fixed", "merged_unreleased"})


@dataclass(frozen=True, slots=True)
class WeekFailure:
    """A failure of the week.

    Attributes:
        id: cluster id; None if it has no cluster yet. `text`: masked text of the cluster.
        canonical: its canonical issue; `title`: that issue's masked title.
        numbers: its reports of the week; `size`: number of its reports of all time.
        fix, remedies: merged over all its reports, best first.
    """

    id: str | None
    text: str
    canonical: int
    title: str
    numbers: tuple[int, ...]
    size: int
    fix: FixView | None
    remedies: tuple[Remedy, ...]

    @property
    def remedy(self) -> Remedy | None:
        """The best remedy that did not fail, if any."""
        return next((item for item in self.remedies if item.outcome != "fails"), None)


@dataclass(frozen=True, slots=True)
class WeekIssues:
    """The issues and failures of a week.

    Attributes:
        opened: issues opened in the `CHART_WEEKS` weeks up to and including this one.
        issues, reports: numbers of the week's issues, and of those that report a failure.
        candidates: by number, the week's reports and all other reports of their clusters.
        failures: failures of the week, most reports first.
    """

    repo: str
    week: IsoWeek
    opened: tuple[Opened, ...]
    issues: tuple[int, ...]
    reports: tuple[int, ...]
    candidates: Mapping[int, ListedFailure]
    failures: tuple[WeekFailure, ...]

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
    numbers: dict[str, list[int]] = defaultdict(list)
    for one in issues:
        if one.is_failure:
            numbers[one.cluster_id or f"#{one.number}"].append(one.number)
    reports = tuple(one.number for one in issues if one.is_failure)
    keys = list(numbers)
    records, members = find_clusters(session, repo_id, keys), members_of(session, repo_id, keys)
    wanted = {*reports, *(number for key in members for number in members[key])}
    candidates = {one.issue.number: one for one in load_failures(session, repo_id, repo, wanted)}
    failures = []
    for key, of_week in numbers.items():
        record = records.get(key)
        known = [candidates[number] for number in members.get(key, of_week) if number in candidates]
        canonical = record.canonical if record else of_week[0]
        remedies = (
            remedy for one in known for remedy in remedies_of(one.facts, repo=repo, url=one.issue.url)
        )
        failures.append(
            WeekFailure(
                id=record.id if record else None,
                text=mask_secrets(record.text) if record else "",
                canonical=canonical,
                title=mask_secrets(candidates[canonical].issue.title) if canonical in candidates else "",
                numbers=tuple(of_week),
                size=len(known) or len(of_week),
                fix=cluster_fix(canonical, known),
                remedies=tuple(listed_remedy(remedy) for remedy in rank_remedies(remedies)),
            )
        )
    failures.sort(key=lambda one: (-len(one.numbers), -one.size, one.numbers))
    return WeekIssues(
        repo=repo,
        week=week,
        opened=opened,
        issues=tuple(one.number for one in issues),
        reports=reports,
        candidates=candidates,
        failures=tuple(failures),
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


def issue_fields(repo: str, head: IssueRecord, facts: Facts) -> dict[str, Any]:
    """Return the masked fields of a `DigestIssue` that are not copied from the issue."""
    return {
        "repo": repo,
        "title": mask_secrets(head.title),
        "failure_kind": facts.failure_kind,
        "error": listed_error(facts.error),
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


def cluster_news(week: WeekIssues) -> tuple[ClusterNews, ...]:
    """Return the failures of the week that have other reports, most reports in the week first."""
    return tuple(
        ClusterNews.based_on(
            one,
            reports=len(one.numbers),
            is_new=len(one.numbers) == one.size,
            workarounds=(one.remedy,) if one.remedy else (),
        )
        for one in week.failures
        if one.id and one.size > 1
    )


def regression_news(week: WeekIssues) -> tuple[VersionNews, ...]:
    """Return the week's regressions grouped by first bad version, newest first."""
    found: dict[str | None, list[RegressionNews]] = defaultdict(list)
    for one in week.known(week.reports):
        since = one.facts.regression
        if since is not None and (since.first_failing or since.last_working or since.culprit):
            began = plain_version(since.first_failing) if since.first_failing else None
            fields = issue_fields(week.repo, one.issue, one.facts)
            found[began].append(RegressionNews.based_on(one.issue, **fields, regression=since))
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
        if known and not one.remedy and not (one.fix and one.fix.state in _FIXED):
            most = max(known, key=lambda report: (week.hits([report.issue.number]), -report.issue.number))
            fields = issue_fields(week.repo, most.issue, most.facts)
            fields |= {"numbers": one.numbers, "cluster": one.id, "hits": week.hits(one.numbers)}
            found.append(UnremediedNews.based_on(most.issue, **fields))
    return tuple(sorted(found, key=lambda one: (-one.hits, one.number)))


def alive_news(week: WeekIssues) -> tuple[AliveNews, ...]:
    """Return the failures reported again in the week although their canonical issue is closed."""
    found = []
    for one in week.failures:
        alive = closed_but_alive(week.candidates.get(one.canonical), week.known(one.numbers), one.fix)
        if one.id and alive:
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
                    **issue_fields(repo, one.issue, one.facts),
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
