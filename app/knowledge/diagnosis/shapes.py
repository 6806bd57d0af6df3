"""The shapes of an answer: what a diagnosis says and shows. Public contract of `POST /api/v1/diagnose`."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from app.extract.facts import (
    Conditions,
    Facts,
    Fix,
    Frozen,
    Outcome,
    Regression,
    Signature,
    Speaker,
    WorkaroundKind,
)
from app.knowledge.issue.votes import Signal, VoteCount

Band = Literal["same", "likely", "related", "unknown"]
MatchBand = Literal["same", "likely", "related"]
LineRole = Literal["error", "frame", "wrapper", "before"]
ForYou = Literal["upgrade", "already_included", "not_fixed", "unknown"]


class FixElsewhere(Frozen):
    """A pull request of another repository that is said to be the fix; so is its release."""

    repo: str
    pr: str = Field(description="owner/name#number")
    state: Literal["merged", "open", "closed", "unknown"] = Field(
        description="unknown while it is not stored"
    )
    released_in: str | None = Field(None, description="first release of `repo` whose notes name it")


class FixView(Fix):
    """The fix of an issue, seen from the caller's version when one is known."""

    for_you: ForYou | None = None
    earliest_possible: str | None = Field(
        None, description="merged, but no release is known to hold it: the first one that can"
    )
    also_in: tuple[str, ...] = Field((), description="further releases known to hold it, such as back-ports")
    elsewhere: FixElsewhere | None = Field(
        None,
        description="where the fix is another repository's: `released_in` is then null, since no release of "
        "this one is known to need it",
    )
    reason: str = Field("", description="one sentence: how this is known")


class RootCause(Frozen):
    """The line that names the cause; `line` counts from 1 in the log as pasted."""

    type: str | None
    message: str
    frame: str | None = None
    process: str | None = None
    line: int
    quote: str


class OtherError(Frozen):
    type: str | None
    message: str
    line: int


class Environment(Frozen):
    """What the log itself tells of where it ran."""

    gpus: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    backends: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)


class Redaction(Frozen):
    kind: str
    count: int


class Why(Frozen):
    """Why a match is one, in short phrases, the weightiest first."""

    shared: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()


class Remedy(Frozen):
    """A workaround with the issue it comes from."""

    action: str
    kind: WorkaroundKind
    outcome: Outcome
    conditions: Conditions = Conditions()
    by: Speaker = "reporter"
    confirmed_by: int = 0
    refuted_by: int = 0
    repo: str
    number: int
    url: str


class MatchLine(Frozen):
    """A line of a stored issue's own text, secrets masked."""

    number: int = Field(description="counts from 1 in the issue's body")
    text: str
    role: LineRole = Field(description="the root error's line, its frame, a wrapper, or a line before it")


class Match(Frozen):
    """A stored issue that may be the same failure."""

    number: int
    repo: str
    title: str
    url: str
    state: str
    score: float = Field(ge=0, le=1, description="calibrated chance that it is the same failure")
    band: MatchBand
    why: Why
    workarounds: tuple[Remedy, ...] = ()
    fix: FixView | None = None
    regression: Regression | None = None
    signature_id: str | None = None
    excerpt: tuple[MatchLine, ...] = Field(
        (),
        description="the issue's telling lines, to be read beside the log's; only for the first match and "
        "only if the verdict is not `unknown`, empty otherwise and where the body does not tell the error",
    )


class NextStep(Frozen):
    """What to do now; `command` is exactly what to type, empty where there is nothing to type."""

    text: str
    command: str = ""


class IndexState(Frozen):
    issues: int
    as_of: datetime | None = None


class Diagnosis(Frozen):
    """The answer to a pasted log."""

    verdict: Band
    root_cause: RootCause | None
    wrappers: tuple[str, ...] = ()
    other_errors: tuple[OtherError, ...] = ()
    environment: Environment
    signature: Signature | None = None
    redactions: tuple[Redaction, ...] = ()
    matches: tuple[Match, ...] = ()
    workarounds: tuple[Remedy, ...] = ()
    next_steps: tuple[NextStep, ...] = ()
    index: IndexState
    took_ms: float
    headline: str = Field(description="the verdict in one sentence")
    repo: str = Field(
        "", description="the default repository: its releases are what `vllm_version` is compared with"
    )
    is_question: bool = Field(
        False, description="a question in words, answered by words and not by a log: never `same`"
    )
    issue_draft: str = Field(
        "",
        description="for `unknown` and `related`: Markdown for a new issue in the form of a bug report, with "
        "the log's telling part and its environment, secrets masked; empty otherwise",
    )


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
