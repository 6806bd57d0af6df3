"""The shapes of a week's digest. Public contract of `GET /api/v1/digest/{yyyy-Www}` and `triage digest`.

A report is an issue that reports a failure. A list that is cut says how many there are beside it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from app.extract.facts import FailureKind, Frozen, Regression
from app.knowledge.cluster.timeline import ClosedButAlive, GrowingCluster
from app.knowledge.fix.shapes import FixView
from app.knowledge.remedies import Remedy

AdviceKind = Literal["upgrade", "remedy", "stay", "watch"]
Fixing = Literal["released", "merged"]
Place = Literal["issue", "comment"]


class WeekCount(Frozen):
    """A week's issues, and those of them that report a failure."""

    week: str
    issues: int
    failures: int


class ValueCount(Frozen):
    value: str
    reports: int


class AreaCount(ValueCount):
    """In how many reports a fact stands, this week and before."""

    field: str = Field(description="the fact: `failure_kind`, `gpus`, or `backends.` and a backend's role")
    before: int = Field(description="reports of the 8 weeks before, together")
    mean_before: float | None = Field(description="a week, of the 8 before; null where the base is younger")


class DataState(Frozen):
    """What the stored data can tell of the week."""

    until: datetime | None = Field(description="up to when there is data: newest whole sync or newest issue")
    is_over: bool = Field(description="the data covers the whole week")
    estimated: int = Field(description="issues of the week whose source calls their date an estimate")
    undated: int = Field(description="stored issues without a date; they are in no week")
    newest_release: str | None = Field(description="newest full release published by the end of the week")
    newest_release_at: datetime | None = None


class DigestIssue(Frozen):
    """An issue as the digest's lists tell it; texts are masked."""

    repo: str
    number: int
    title: str
    url: str
    state: str
    created_at: datetime | None
    kind: FailureKind
    error: str = ""
    comments: int
    reactions: int


class ClusterNews(Frozen):
    """A failure that was reported in the week."""

    id: str
    text: str
    canonical: int
    title: str
    reports: int = Field(description="of the week")
    numbers: tuple[int, ...] = Field(description="of the week's reports")
    size: int = Field(description="reports of all time")
    is_new: bool = Field(description="first reported in the week")
    remedy: Remedy | None = Field(None, description="the one to try first, of any of its reports")
    fix: FixView | None = Field(None, description="of the report that knows most of it")


class RegressionNews(DigestIssue):
    """A failure of the week that tells since when it fails."""

    regression: Regression


class VersionNews(Frozen):
    """The regressions of the week that are said to have begun in one version; null where none is said."""

    version: str | None
    items: tuple[RegressionNews, ...]


class FixNews(DigestIssue):
    """A failure whose fix came out in the week, or was merged in it."""

    how: Fixing
    fix: FixView
    merged_at: datetime | None = None
    released_at: datetime | None = None


class RemedyNews(Frozen):
    """A remedy that was told in the week."""

    remedy: Remedy
    title: str
    told_at: datetime
    told_in: Place


class AliveNews(Frozen):
    """A failure whose canonical issue is closed, and that was reported again in the week."""

    id: str
    text: str
    canonical: int
    title: str
    alive: ClosedButAlive = Field(description="what came after it was closed, of the week only")
    numbers: tuple[int, ...] = Field(description="of the week's reports")


class UnremediedNews(DigestIssue):
    """A failure of the week without a remedy or a fix: its most hit report of the week."""

    cluster: str | None
    numbers: tuple[int, ...] = Field(description="of all the week's reports of this failure")
    hits: int = Field(description="1 for each of these reports, and their comments and reactions to date")


class Advice(Frozen):
    """What a reader should do: one line."""

    kind: AdviceKind
    whom: str = Field(description="whom it concerns")
    action: str = Field(description="what to do, in words")
    command: str = Field("", description="what to write, where there is something to write")
    number: int
    url: str


class Digest(Frozen):
    """A week of one repository."""

    repo: str
    week: str
    days: str = Field(description="the week's days in words")
    start: datetime
    end: datetime = Field(description="the first moment after the week")
    previous: str | None = Field(description="the nearest earlier week with issues")
    next: str | None = Field(description="the nearest later week with issues")
    headline: str
    advice: tuple[Advice, ...] = ()
    data: DataState
    issues: int
    failures: int
    issues_before: int = Field(description="of the week before")
    failures_before: int
    weeks_before: int = Field(description="whole weeks that the base has before this one, at most 8")
    weeks: tuple[WeekCount, ...] = Field(description="the newest last: this week")
    kinds: tuple[ValueCount, ...] = ()
    hardware: tuple[ValueCount, ...] = Field((), description="in how many reports each GPU or CPU is named")
    without_hardware: int
    areas: tuple[AreaCount, ...] = ()
    clusters: tuple[ClusterNews, ...] = Field((), description="those with other reports, the most new first")
    repeated_total: int = Field(description="failures of the week that have other reports")
    failures_total: int = Field(description="failures of the week, each once, however often it was reported")
    growing: tuple[GrowingCluster, ...] = ()
    growing_tested: int
    regressions: tuple[VersionNews, ...] = ()
    fixed: tuple[FixNews, ...] = ()
    fixed_total: int
    remedies: tuple[RemedyNews, ...] = ()
    remedies_total: int
    unremedied: tuple[UnremediedNews, ...] = ()
    unremedied_total: int
    alive: tuple[AliveNews, ...] = ()


class ArchivePage(Frozen):
    """All weeks with issues, the newest first."""

    repo: str
    weeks: tuple[WeekCount, ...]
    undated: int
