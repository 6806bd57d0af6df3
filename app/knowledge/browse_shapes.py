"""The shapes of a list of issues. Public contract of `GET /api/v1/issues`; all texts are masked."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from app.extract.facts import FailureKind, Frozen, Outcome
from app.knowledge.answers import FixView

IssueState = Literal["open", "closed"]
Sort = Literal["newest", "relevance"]
FacetName = Literal[
    "gpu", "arch", "model", "backend", "error_type", "kind", "vllm_version", "state", "has_workaround",
    "has_regression",
]  # fmt: skip


class IssueQuery(Frozen):
    """What a list is narrowed by; all of it must hold. A value that stands nowhere finds nothing."""

    q: str = Field("", description="words, an error line, a flag, or #number")
    gpu: str | None = None
    arch: str | None = Field(None, description="GPU architecture, such as Hopper")
    model: str | None = Field(None, description="a family such as qwen, or a name")
    backend: str | None = Field(None, description="any backend, quantization or platform")
    error_type: str | None = None
    kind: FailureKind | None = None
    vllm_version: str | None = Field(None, description="the version on which it is said to fail")
    state: IssueState | None = None
    label: str | None = None
    has_workaround: bool | None = None
    has_regression: bool | None = None
    since: datetime | None = Field(None, description="opened at or after this")
    sort: Sort | None = Field(None, description="by relevance where there are words, else the newest first")


class ListedRemedy(Frozen):
    action: str
    outcome: Outcome


class ListedIssue(Frozen):
    """An issue as lists tell it."""

    repo: str
    number: int
    title: str
    url: str
    state: str
    state_reason: str | None
    failure_kind: FailureKind
    labels: tuple[str, ...]
    comments: int
    reactions: int
    created_at: datetime | None
    updated_at: datetime | None
    dates_estimated: bool = Field(
        description="whether the file it came from says that its dates are estimates"
    )
    gpus: tuple[str, ...]
    models: tuple[str, ...]
    backends: tuple[str, ...]
    vllm_version: str | None
    error_type: str | None
    error: str = Field(description="the root-cause error in one line, cut; empty where none is told")
    has_regression: bool
    remedy: ListedRemedy | None = Field(description="the best that is told; none that is said to fail")
    fix: FixView | None
    summary: str


class FacetValue(Frozen):
    """A value and how many issues there are with it, beside all other filters."""

    value: str
    count: int


class Facet(Frozen):
    name: FacetName
    values: tuple[FacetValue, ...]


class IssuePage(Frozen):
    """A part of a list. `next` and `previous` are the issues after which the neighbouring parts begin.

    `start` counts the issues before this part. `previous` is 0 for the first part, null where this is it.
    """

    items: tuple[ListedIssue, ...]
    total: int
    start: int
    next: int | None
    previous: int | None
    sort: Sort
    ignored_words: tuple[str, ...] = ()
    facets: tuple[Facet, ...] = ()
