"""Schemas of requests, and of responses not defined in `knowledge`."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from app.extract.facts import Facts, Frozen
from app.extract.versions import check_version
from app.knowledge.fix.shapes import FixView
from app.knowledge.freshness import Freshness
from app.knowledge.issue.relations import RelatedItem
from app.knowledge.issue.view import ClusterLine, GitHubFacts, IssueAnswer
from app.knowledge.issue.votes import Signal, VoteCount

LIMIT_DEFAULT = 10
BATCH_LOGS = 100
NUMBER_MAX = 2**31 - 1

IssueNumber = Annotated[int, Field(ge=1, le=NUMBER_MAX)]


def none_if_blank(value: str | None) -> str | None:
    """Strip the text; return None if it is empty."""
    return (value or "").strip() or None


VersionText = Annotated[
    str | None, Field(max_length=100), AfterValidator(none_if_blank), AfterValidator(check_version)
]
HintText = Annotated[str | None, Field(max_length=300), AfterValidator(none_if_blank)]


class DiagnoseOptions(BaseModel):
    """What a caller may add to a log; as JSON keys, or as query parameters beside a text/plain log."""

    model_config = ConfigDict(frozen=True)

    vllm_version: VersionText = Field(None, description="version that failed, if the log does not print it")
    gpu: HintText = Field(None, description="GPU, if the log does not print it")
    model: HintText = Field(None, description="model, if the log does not print it")
    limit: int = Field(LIMIT_DEFAULT, ge=1, le=50, description="maximum number of matches to return")
    exclude: list[IssueNumber] = Field([], max_length=1000, description="issue numbers to exclude")
    keep: bool = Field(
        False, description="keep the masked log and its answer for some days on an unlisted page"
    )
    read_by_model: bool = Field(
        False, description="also have the operator's language model read the masked log, if configured"
    )


class DiagnoseRequest(DiagnoseOptions):
    """A crash log and details of the run."""

    model_config = ConfigDict(extra="forbid")

    log: str = Field(
        min_length=1, pattern=r"\S", description="the log as text; at most 10 MiB of UTF-8 after decoding"
    )


class BatchedLog(DiagnoseRequest):
    """One of several logs; for a bad log or version the answer is a `Problem`, the others are diagnosed."""

    vllm_version: HintText = Field(None, description="version that failed, if the log does not print it")
    log: str = Field(description="the log as text; at most 10 MiB of UTF-8 after decoding")


class DiagnoseBatch(BaseModel):
    """Several crash logs, each with details of its run."""

    model_config = ConfigDict(extra="forbid")

    logs: list[BatchedLog] = Field(min_length=1, max_length=BATCH_LOGS)


class IssueDocument(Facts, GitHubFacts):
    """An issue: GitHub's fields and the facts extracted from its text.

    `read` is false while no rule has read it, or none could; our fields are empty then.
    """

    read: bool
    fix: FixView | None
    cluster: ClusterLine | None = Field(None, description="null if the issue reports no failure")
    votes: dict[Signal, VoteCount] = Field(
        default_factory=dict, description="votes for and against, by signal"
    )


class RelatedList(Frozen):
    """A list of relations, complete in one page."""

    items: tuple[RelatedItem, ...]
    next_cursor: str | None = None
    total: int


def issue_document(answer: IssueAnswer) -> IssueDocument:
    """Merge GitHub's fields and the facts into one flat document; both are already validated."""
    theirs = dict(answer)
    facts = theirs.pop("facts")
    ours = dict(facts or Facts(number=answer.number))
    return IssueDocument.model_construct(**{**ours, **theirs, "read": facts is not None})


class FieldFault(BaseModel):
    field: str
    fault: str


class Problem(BaseModel):
    """An error in the format of RFC 9457 (`application/problem+json`)."""

    type: str = Field(description="problem type, as a URI reference", examples=["about:blank"])
    title: str = Field(description="short summary of the problem type")
    status: int
    detail: str = Field(description="what happened, which limit applies, and how to fix it")
    errors: list[FieldFault] | None = Field(None, description="invalid fields, if any")


class Alive(BaseModel):
    status: Literal["alive"] = "alive"
    version: str


class ApiIndex(BaseModel):
    """The routes of the API and the addresses of their documentation."""

    version: str = Field(description="version of vLLM Triage")
    openapi: str = "/openapi.json"
    docs: str = "/docs"
    guide: str = "/guide"
    routes: dict[str, str] = Field(description="method and path by operation id")


class Ready(BaseModel):
    """The state of the server and the age of its data."""

    status: Literal["ready"] = "ready"
    as_of: datetime | None = Field(
        description="end of the newest complete sync of the default repository; null before the first"
    )
    age_s: int | None = Field(description="seconds since `as_of`")
    is_stale: bool = Field(False, description="whether `as_of` is null or more than 24 hours ago")
    issues: int = Field(0, description="number of stored issues of the default repository")
    is_syncing: bool = Field(False, description="whether a sync is running, in any process")
    repositories: tuple[Freshness, ...] = Field(
        (), description="freshness, latest sync outcome and progress of each configured repository"
    )


class Taken(BaseModel):
    """The result of a webhook delivery."""

    status: Literal["stored", "seen", "ignored", "accepted"] = Field(
        description="`stored`, already received, ignored, or waiting for the database"
    )
