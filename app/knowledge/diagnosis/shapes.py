"""The shapes of an answer: a diagnosis of a pasted log. Public contract of `POST /api/v1/diagnose`."""

import re
from datetime import datetime
from typing import Literal

from pydantic import Field

from app.extract.facts import Cause, Frozen, Regression, Signature
from app.knowledge.fix.shapes import FixView
from app.knowledge.launch import ComposedCommand, alone
from app.knowledge.remedies import Remedy
from app.match.search.ranking import Band as MatchBand

Band = Literal["same", "likely", "related", "unknown"]
OPEN: frozenset[Band] = frozenset(("unknown", "related"))
"""Verdicts for which no issue is known to report the failure."""
RemedySource = Literal["matches", "cluster", "same_frame"]
RunOutcome = Literal["stopped", "not_started", "refused", "none"]
LineRole = Literal["error", "frame", "wrapper", "before"]
MAX_QUOTE_CHARS = 400
READABLE_FROM, CANDIDATE_FROM, MAX_CANDIDATES = 0.05, 0.08, 3
"""After the first, matches with a lower score are hidden on the page; the JSON includes them."""
_SPECIFIC = re.compile(r"the whole signature|frame |error type |(?:error )?words .*“[^“”]*\w[ _.]\w")
"""What `Why.shared` says of a signature, a frame, a type, a name or words in a row."""


class RootCause(Frozen):
    """The line that names the cause: `line` is its number in the log, from 1; `quote` omits its prefix.

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
    """The environment that the log describes."""

    gpus: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    backends: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)


class Redaction(Frozen):
    kind: str
    count: int


class Why(Frozen):
    """Reasons for a match as short phrases, strongest first."""

    shared: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()

    @property
    def is_specific(self) -> bool:
        """Whether more is shared than single words, and GPU, model or version."""
        return any(_SPECIFIC.match(phrase) for phrase in self.shared)


class MatchLine(Frozen):
    """A line of a stored issue's own text, secrets masked."""

    number: int = Field(description="line number in the issue's body, from 1")
    text: str
    role: LineRole = Field(description="root error, its frame, a wrapper, or context before it")


class CommonIssue(Frozen):
    """An issue that contains the error message."""

    number: int
    repo: str
    title: str
    url: str
    state: str


class Match(CommonIssue):
    """A stored issue that may be the same failure."""

    score: float = Field(ge=0, le=1, description="calibrated probability that it is the same failure")
    band: MatchBand
    why: Why
    workarounds: tuple[Remedy, ...] = ()
    fix: FixView | None = None
    regression: Regression | None = None
    signature_id: str | None = None
    excerpt: tuple[MatchLine, ...] = Field(
        (),
        description="the issue's lines that name the error; only for the first match; empty if the verdict "
        "is `unknown` or the body does not name the error",
    )


class NextStep(Frozen):
    """A recommended action; `command` is the exact command, empty if there is none."""

    text: str
    command: str = ""


class QuotedAdvice(Frozen):
    """Advice in the message itself; `source` is `rule` if it was derived from the message's values."""

    text: str
    source: Literal["log", "rule"] = "log"


class Failure(Frozen):
    """The kind of failure: stable id and readable name."""

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
    """An error message shared by many issues, none of which is known to be the same failure."""

    reports: int = Field(description="number of issues whose text contains the message")
    text: str = Field(description="error message, secrets masked")
    issues: tuple[CommonIssue, ...] = Field((), description="most similar to the log first")
    causes: tuple[CommonCause, ...] = Field((), description="causes they name, stated ones first")
    workarounds: tuple[Remedy, ...] = Field((), description="most often reported first")
    signature_id: str | None = Field(None, description="cluster of most of these issues")


class ModelValue(Frozen):
    """A value named by the language model, with the log line (from 1) that supports it."""

    field: str = Field(description="error.message, cause, versions.vllm, models, backends.…")
    value: str
    quote: str = Field(description="line of the log that contains the model's words verbatim")
    line: int
    certainty: str = Field("", description="for a cause: `stated` or `hypothesis`")


class ModelReading(Frozen):
    """What the operator's language model adds to the answer."""

    model: str | None = None
    values: tuple[ModelValue, ...] = Field((), description="values that the rest of the answer lacks")
    fault: str = Field("", description="why the model gave no answer; empty if it did")


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
        description="source of `workarounds`: the matches, other reports in the first match's cluster, or "
        "another failure raised at the same place",
    )
    next_steps: tuple[NextStep, ...] = ()
    composed: tuple[ComposedCommand, ...] = Field(
        (),
        description="the command that was run with the change of a workaround or step applied",
    )
    stack: str = Field(
        "", description="version, GPU, model and arguments of the run, in the format of the `stack` parameter"
    )
    index: IndexState
    took_ms: float
    headline: str = Field(description="one-line summary of failure and verdict, at most 240 characters")
    outcome: RunOutcome = Field(
        "none",
        description="stopped: the program ended; not_started: start-up failed; refused: a request failed",
    )
    failure: Failure | None = Field(None, description="kind of failure, one of about 60; null if unknown")
    is_vllm: bool | None = Field(
        None, description="whether vLLM printed the log; null if it is too short to decide"
    )
    common: CommonError | None = Field(
        None, description="error shared by many issues; only for `unknown` and `related`"
    )
    chain: tuple[OtherError, ...] = Field(
        (), description="errors raised as a consequence of the root cause, nearest first"
    )
    advice: tuple[QuotedAdvice, ...] = Field((), description="instructions in the error message itself")
    repo: str = Field("", description="default repository, with whose releases `vllm_version` is compared")
    is_question: bool = Field(
        False, description="whether the input is a question rather than a log; its verdict is never `same`"
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
        description="reading by the operator's language model; only with `read_by_model`",
    )

    @property
    def readable_matches(self) -> tuple[Match, ...]:
        """The matches worth reading: those that are likely enough, and the first unless nothing is known.

        Of an unknown failure only those that share more than single words.
        """
        if self.verdict == "unknown":
            likely = (one for one in self.matches if one.score >= CANDIDATE_FROM)
            return tuple(one for one in likely if one.why.is_specific)[:MAX_CANDIDATES]
        return self.matches[:1] + tuple(one for one in self.matches[1:] if one.score >= READABLE_FROM)

    @property
    def steps_first(self) -> bool:
        """Whether the next steps stand above the remedies: unless a change to type is known to help.

        What people say without a change to type is weaker than a step that this very log proves.
        """
        helpful = [one for one in self.workarounds if one.outcome != "fails"]
        is_known = self.verdict in ("same", "likely")
        return not (is_known and helpful and (helpful[0].command or not self.next_steps))

    def composed_for(self, change: str) -> ComposedCommand | None:
        """The caller's whole command with this change of a remedy or step, if it was composed."""
        return next((one for one in self.composed if one.change == alone(change)), None)
