"""The shapes of a report on one issue. Public contract of `GET /api/v1/issues/{number}/report`.

A report holds nothing that has no source: every part carries the words it rests on, with their address.
All texts are masked for display.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from app.extract.facts import (
    Cause,
    Conditions,
    ErrorFact,
    Facts,
    Frozen,
    Outcome,
    Reproduction,
    Speaker,
    WorkaroundKind,
)
from app.knowledge import labels
from app.knowledge.fix.shapes import FixView
from app.knowledge.issue.votes import Signal, VoteCount
from app.match.search.ranking import Band as MatchBand

EdgeKind = Literal[
    "duplicate", "same", "introduced_by", "fixed_by", "fixes", "similar", "mentions", "moved_to"
]
"""Read from `source` to `target`: #1 `introduced_by` #2."""
Basis = Literal["said", "timeline", "likeness"]
NodeKind = Literal["issue", "pull_request", "unknown"]


class GitHubFacts(Frozen):
    """What GitHub tells of an issue; `body` is masked for display."""

    repo: str
    number: int
    url: str
    title: str
    state: str
    state_reason: str | None
    is_pull_request: bool
    origin: Literal["card", "github"]
    author: str | None
    labels: tuple[str, ...]
    comments: int
    reactions: int
    created_at: datetime | None
    updated_at: datetime | None
    closed_at: datetime | None
    fetched_at: datetime | None
    gone_at: datetime | None = None
    gone_reason: str | None = None
    participants: int | None = Field(
        None, description="people who wrote the issue and its comments; null unless all of them are stored"
    )
    dates_estimated: bool = Field(
        False, description="whether the file it came from says that its dates are estimates"
    )
    body: str


class ClusterLine(Frozen):
    """The failure that an issue reports; `size` counts its reports, this one among them."""

    id: str
    text: str
    canonical: int
    size: int


class IssueAnswer(GitHubFacts):
    """One issue: GitHub's facts and ours, with evidence. All texts are masked for display."""

    facts: Facts | None
    fix: FixView
    cluster: ClusterLine | None = Field(None, description="null for what reports no failure")
    votes: dict[Signal, VoteCount] = Field(
        default_factory=dict, description="for each signal how many visitors are for it, and against"
    )


class Quote(Frozen):
    """The words that say a thing; `text` stands so in its source, `…` where it was cut."""

    text: str
    source: str = Field(description='"title", "body", "comment:<id>", "card", or "#<number>" of another text')
    url: str


class ReportFact(Frozen):
    """One value with its sentences."""

    field: str
    label: str
    value: str
    is_literal: bool = Field(description="whether the value's figures stand so in its quotes; else derived")
    quotes: tuple[Quote, ...] = ()


class ReportError(ErrorFact):
    quotes: tuple[Quote, ...] = ()


class StatedCause(Cause):
    quotes: tuple[Quote, ...] = ()


class CommandExample(Reproduction):
    """A command of the issue and what it is reported to do."""

    quotes: tuple[Quote, ...] = ()


class ReportRemedy(Frozen):
    """A remedy; `conditions` are empty where nobody names any."""

    action: str
    kind: WorkaroundKind
    outcome: Outcome
    conditions: Conditions
    by: Speaker
    confirmed_by: int
    refuted_by: int
    quotes: tuple[Quote, ...] = ()


class GraphNode(Frozen):
    """An issue or pull request of the graph; `unknown` while nothing of it is stored."""

    key: str = Field(description="owner/name#number")
    repo: str
    number: int
    kind: NodeKind
    title: str
    state: str = Field(description="open, closed, merged, draft, gone or unknown")
    url: str
    released_in: str | None = Field(None, description="first release whose notes name the pull request")


class GraphEdge(Frozen):
    """One relation and how it is known; `band` and `score` belong to likeness only."""

    source: str
    target: str
    kind: EdgeKind
    basis: Basis
    reason: str
    quote: Quote | None = None
    band: MatchBand | None = None
    score: float | None = None


class Graph(Frozen):
    """The issue (the first node) and what belongs to it, weightiest first."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...] = ()

    def node(self, key: str) -> GraphNode:
        """The node of a key."""
        return next(node for node in self.nodes if node.key == key)

    def other_end(self, edge: GraphEdge) -> GraphNode:
        """The end of an edge that is not the issue itself."""
        return self.node(edge.target if edge.source == self.nodes[0].key else edge.source)

    def words(self, edge: GraphEdge) -> str:
        """The relation as seen from the issue itself."""
        if edge.basis == "likeness":
            return labels.LIKENESS[edge.band or "related"]
        return (labels.OUTGOING if edge.source == self.nodes[0].key else labels.INCOMING)[edge.kind]


class Moment(Frozen):
    """Something that happened, dated by its source."""

    at: datetime
    text: str
    source: str
    url: str
    quote: str = ""


class NotKnown(Frozen):
    """A field that the sources do not fill."""

    field: str
    text: str


class Report(GitHubFacts):
    """All that is known of one issue, with its sources."""

    failure_kind: str | None
    summary: str
    facts: tuple[ReportFact, ...] = ()
    error: ReportError | None = None
    cause: tuple[StatedCause, ...] = ()
    examples: tuple[CommandExample, ...] = ()
    remedies: tuple[ReportRemedy, ...] = ()
    fix: FixView
    fix_quotes: tuple[Quote, ...] = ()
    regression: tuple[ReportFact, ...] = ()
    graph: Graph
    timeline: tuple[Moment, ...] = ()
    not_known: tuple[NotKnown, ...] = ()
    as_of: datetime | None = Field(description="when the repository's newest complete sync ended")
