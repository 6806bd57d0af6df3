"""The shapes of a cluster: one failure, all its reports. Public contract of the signatures routes."""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal

from pydantic import Field

from app.extract.facts import FailureKind, Frozen, Regression
from app.knowledge.fix.shapes import FixView
from app.knowledge.remedies import Remedy
from app.knowledge.version.shapes import StatedValue

Role = Literal["canonical", "member"]
ChainKind = Literal["circular", "dead"]
ByChance = Literal["more_often", "less_often", "no_difference", "too_few"]
Period = Literal["week", "month", "quarter", "year"]


class ClusterFix(FixView):
    """The fix of the cluster: that of the member that knows most of it."""

    number: int = Field(description="the issue whose fix it is")
    also: tuple[str, ...] = Field((), description="where other members differ, a sentence each")


class ClusterSummary(Frozen):
    """A cluster as lists tell it."""

    id: str
    text: str = Field(description="the signature in readable form, secrets masked")
    repo: str
    canonical: int = Field(description="number of the issue with the most evidence, not the oldest")
    title: str = Field(description="the canonical issue's")
    size: int = Field(description="reports, the canonical one among them")
    open_count: int
    first_seen: datetime | None
    last_seen: datetime | None
    kind: FailureKind = Field(description="that of most of its reports")
    fix: ClusterFix | None = None
    workaround_count: int = Field(description="actions reported to work or to help in part, each once")
    is_alive: bool = Field(False, description="its issues are closed, and new reports came after that")
    recent: int = Field(0, description="reports of the newest 28 days of the base")


class ClusterMember(Frozen):
    """A report of the failure and why it belongs here."""

    repo: str
    number: int
    title: str
    url: str
    state: str
    state_reason: str | None
    created_at: datetime | None
    closed_at: datetime | None
    comments: int
    reactions: int
    vllm: str | None = None
    gpus: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    role: Role
    why: str = Field(description="one sentence: what ties it to the cluster")


class DuplicateChain(Frozen):
    """Issues closed as duplicates of each other with no living end."""

    kind: ChainKind = Field(description="`dead`: ends in an issue that is gone, not stored, or no failure")
    numbers: tuple[int, ...] = Field(description="in the order in which each names the next")
    reason: str


class ValueReports(Frozen):
    """In how many reports a value stands."""

    value: str
    reports: int


class BackendReports(ValueReports):
    key: str = Field(description="the backend's role, such as `attention`")


class ArchitectureLift(Frozen):
    """How a GPU architecture's share in the cluster compares with its share in all other failures."""

    architecture: str
    reports: int
    of: int = Field(description="reports of the cluster that name a GPU")
    all_reports: int
    all_of: int = Field(description="failures of the repository that name a GPU")
    lift: float | None = Field(description="share here by share in all; null where too few to say")
    p: float | None = Field(description="Fisher's exact test, two-sided; null where too few to say")
    q: float | None = Field(description="p after Benjamini-Hochberg over all clusters")
    by_chance: ByChance


class ClusterRemedy(Remedy):
    """An action merged over the reports that tell it; the fields are those of the best telling."""

    quote: StatedValue
    told_in: tuple[int, ...] = Field(description="numbers of the issues that report it, the best first")
    works_in: tuple[int, ...] = ()
    fails_in: tuple[int, ...] = ()
    cost: str | None = Field(None, description="what it costs, in the words that say it")
    votes: int = Field(0, description="works, less those against it, where one issue has one remedy only")
    reactions: int = Field(0, description="thumbs up, less thumbs down, on the comment that reports it")
    superseded_by: str | None = Field(None, description="the released fix that makes it needless")


class RangeWitness(Frozen):
    """What one report says of when the failure began."""

    number: int
    url: str
    span: Regression
    agrees: bool
    reason: str = Field("", description="where it does not agree, or names no version: with what, or what")
    quotes: tuple[StatedValue, ...] = ()


class NearCluster(Frozen):
    """A cluster that is alike and was not merged."""

    id: str
    text: str
    canonical: int
    title: str
    size: int
    score: float | None = Field(description="of the likest pair between the two")
    pair: tuple[int, int] = Field(description="that pair: ours, theirs")
    reason: str


class ClosedButAlive(Frozen):
    """The canonical issue is closed, and reports came after that."""

    closed_at: datetime
    state_reason: str | None
    reports_since: int
    newest: int = Field(description="number of the newest of them")
    newest_at: datetime | None
    reason: str


class TimelineBucket(Frozen):
    start: date
    label: str
    reports: int


class Timeline(Frozen):
    """Reports by time; `buckets` have no holes between the first and the last."""

    unit: Period
    buckets: tuple[TimelineBucket, ...]


class ClusterDetail(ClusterSummary):
    """All that is known of a cluster."""

    canonical_reason: str
    also: tuple[str, ...] = Field((), description="other clusters that hold the signature asked for")
    signature_ids: tuple[str, ...] = Field((), description="root signatures of its reports")
    members: tuple[ClusterMember, ...] = Field(description="the canonical one first, then the newest first")
    chains: tuple[DuplicateChain, ...] = ()
    versions: tuple[ValueReports, ...] = ()
    gpus: tuple[ArchitectureLift, ...] = ()
    models: tuple[ValueReports, ...] = Field((), description="model families")
    backends: tuple[BackendReports, ...] = ()
    workarounds: tuple[ClusterRemedy, ...] = ()
    regression: Regression | None = Field(None, description="the narrowest range its reports agree on")
    witnesses: tuple[RangeWitness, ...] = Field((), description="reports that state a range")
    disagreements: tuple[RangeWitness, ...] = ()
    not_merged: tuple[NearCluster, ...] = ()
    closed_but_alive: ClosedButAlive | None = None
    timeline: Timeline | None = None


class ClusterPage(Frozen):
    """A part of a list of clusters."""

    items: tuple[ClusterSummary, ...]
    total: int
