"""The shapes of an answer: a diagnosis of a pasted log. Public contract of `POST /api/v1/diagnose`."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from app.extract.facts import Cause, Frozen, Regression, Signature
from app.knowledge.fix.shapes import FixView
from app.knowledge.launch import ComposedCommand
from app.knowledge.remedies import Remedy
from app.match.search.ranking import Band as MatchBand

Band = Literal["same", "likely", "related", "unknown"]
OPEN: frozenset[Band] = frozenset(("unknown", "related"))
"""The verdicts by which no issue is known to report the failure."""
RemedySource = Literal["matches", "cluster", "same_frame"]
RunOutcome = Literal["stopped", "not_started", "refused", "none"]
LineRole = Literal["error", "frame", "wrapper", "before"]
MAX_QUOTE_CHARS = 400
READABLE_FROM = 0.05
"""Matches below this chance are noise to a reader; the JSON has them."""


class RootCause(Frozen):
    """The line that names the cause: `line` counts from 1 in the log as pasted, `quote` lacks its prefix.

    `is_wrapper`: the log holds nothing but errors that announce another one, of which this is the innermost.
    """

    type: str | None
    message: str
    frame: str | None = None
    process: str | None = None
    line: int
    quote: str
    is_wrapper: bool = False

    @property
    def excerpt(self) -> str:
        """The quote, with a mark where it was cut."""
        return self.quote + "…" * (len(self.quote) >= MAX_QUOTE_CHARS)


class OtherError(Frozen):
    type: str | None
    message: str
    line: int


class LogEnvironment(Frozen):
    """Where the log's program ran, as far as the log says."""

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


class MatchLine(Frozen):
    """A line of a stored issue's own text, secrets masked."""

    number: int = Field(description="counts from 1 in the issue's body")
    text: str
    role: LineRole = Field(description="the root error's line, its frame, a wrapper, or a line before it")


class CommonIssue(Frozen):
    """An issue that holds the error's message."""

    number: int
    repo: str
    title: str
    url: str
    state: str


class Match(CommonIssue):
    """A stored issue that may be the same failure."""

    score: float = Field(ge=0, le=1, description="calibrated chance that it is the same failure")
    band: MatchBand
    why: Why
    workarounds: tuple[Remedy, ...] = ()
    fix: FixView | None = None
    regression: Regression | None = None
    signature_id: str | None = None
    excerpt: tuple[MatchLine, ...] = Field(
        (),
        description="the issue's lines that name the error, to be read beside the log's; only for the first "
        "match and only if the verdict is not `unknown`, empty otherwise and where the body does not name it",
    )


class NextStep(Frozen):
    """What to do now; `command` is exactly what to type, empty where there is nothing to type."""

    text: str
    command: str = ""


class QuotedAdvice(Frozen):
    """What to do by the message itself; `source` is `rule` where it was made out of the message's values."""

    text: str
    source: Literal["log", "rule"] = "log"


class Failure(Frozen):
    """The kind of failure: a stable id, and its name in words."""

    kind: str
    name: str


class IndexState(Frozen):
    issues: int
    as_of: datetime | None = None


class CommonCause(Cause):
    """What an issue names as the cause."""

    repo: str
    number: int
    url: str


class CommonError(Frozen):
    """A known kind of error: many issues share the message, no single one is known to be the same failure."""

    reports: int = Field(description="issues whose text holds the message")
    text: str = Field(description="the message, secrets masked")
    issues: tuple[CommonIssue, ...] = Field((), description="those that share most with the log first")
    causes: tuple[CommonCause, ...] = Field((), description="what they name as cause, stated ones first")
    workarounds: tuple[Remedy, ...] = Field((), description="what helped in most of them first")
    signature_id: str | None = Field(None, description="the cluster that most of them are in")


class ModelValue(Frozen):
    """A value that the operator's model named, and the line of the log that proves it; counted from 1."""

    field: str = Field(description="error.message, cause, versions.vllm, models, backends.…")
    value: str
    quote: str = Field(description="the line, which holds the model's words letter by letter")
    line: int
    certainty: str = Field("", description="of a cause: stated or hypothesis")


class ModelReading(Frozen):
    """What the operator's language model adds to the answer."""

    model: str | None = None
    values: tuple[ModelValue, ...] = Field((), description="those that the rest of the answer does not have")
    fault: str = Field("", description="why it was not asked in time or gave no answer; empty otherwise")


class Diagnosis(Frozen):
    """The answer to a pasted log."""

    verdict: Band
    root_cause: RootCause | None
    wrappers: tuple[str, ...] = ()
    other_errors: tuple[OtherError, ...] = ()
    environment: LogEnvironment
    signature: Signature | None = None
    redactions: tuple[Redaction, ...] = ()
    matches: tuple[Match, ...] = ()
    workarounds: tuple[Remedy, ...] = ()
    remedies_from: RemedySource = Field(
        "matches",
        description="whose the remedies are: the matches', other reports' of the first match's cluster, or "
        "those of another failure that was raised at the same place",
    )
    next_steps: tuple[NextStep, ...] = ()
    composed: tuple[ComposedCommand, ...] = Field(
        (),
        description="the command that was run, as in the log, with a remedy's or a step's change in it",
    )
    stack: str = Field(
        "", description="version, GPU, model and arguments of the run, as `stack=` of lists takes them"
    )
    index: IndexState
    took_ms: float
    headline: str = Field(description="what failed and the verdict, in one line of at most 240 characters")
    outcome: RunOutcome = Field(
        "none",
        description="stopped: the program ended; not_started: it never came up; refused: a request failed",
    )
    failure: Failure | None = Field(None, description="the kind of failure, where one of about 60 is known")
    is_vllm: bool | None = Field(
        None, description="whether vLLM printed the log; null where it is too short to know"
    )
    common: CommonError | None = Field(
        None, description="for `unknown` and `related`: the kind of error, where many issues share it"
    )
    chain: tuple[OtherError, ...] = Field(
        (), description="errors that were raised on top of the root cause, the nearest first"
    )
    advice: tuple[QuotedAdvice, ...] = Field((), description="what the error's own message says to do")
    repo: str = Field(
        "", description="the default repository: its releases are what `vllm_version` is compared with"
    )
    is_question: bool = Field(
        False, description="a question in words, answered by words and not by a log: never `same`"
    )
    issue_draft: str = Field(
        "",
        description="for `unknown` and `related`: Markdown for a new issue in the form of a bug report, with "
        "the log's lines around the error and its environment, secrets masked; empty otherwise, and for a "
        "kind of failure that the caller corrects, such as an unknown argument: `next_steps` say how",
    )
    model_reading: ModelReading | None = Field(
        None,
        exclude_if=lambda value: value is None,
        description="with `read_by_model`, where the operator allows it: what a language model adds",
    )

    @property
    def readable_matches(self) -> tuple[Match, ...]:
        """The first match, and those that are likely enough to be worth reading."""
        return self.matches[:1] + tuple(one for one in self.matches[1:] if one.score >= READABLE_FROM)
