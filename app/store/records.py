"""Frozen records of GitHub's data, passed into and out of the store; and of the progress of a long run.

`raw` is GitHub's JSON object, unchanged except that NUL characters and lone surrogates, which databases
reject, become U+FFFD; offsets stay valid.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

CARD = "card"
GITHUB = "github"


Pair = tuple[int, int]
"""Two issues of one repository, the lower number first."""


def pair_of(one: int, two: int) -> Pair:
    return min(one, two), max(one, two)


@dataclass(frozen=True, slots=True)
class IssueRecord:
    """An issue or pull request. `origin` is "github", or "card" if only a starter card describes it."""

    number: int
    title: str
    body: str
    state: str
    url: str
    origin: str = GITHUB
    is_pull_request: bool = False
    state_reason: str | None = None
    author: str | None = None
    author_association: str | None = None
    labels: tuple[str, ...] = ()
    comments: int = 0
    reactions: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None
    closed_at: datetime | None = None
    gone_at: datetime | None = None
    gone_reason: str | None = None
    fetched_at: datetime | None = None
    raw: Mapping[str, Any] | None = None
    merged_at: datetime | None = None
    merge_commit_sha: str | None = None
    is_draft: bool = False


@dataclass(frozen=True, slots=True)
class CommentRecord:
    id: int
    issue_number: int
    body: str
    author: str | None = None
    author_association: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    raw: Mapping[str, Any] | None = None
    gone_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ReleaseRecord:
    """A release. `pulls` are the pull requests mentioned in its notes."""

    tag: str
    name: str | None
    notes: str
    is_prerelease: bool
    published_at: datetime | None
    pulls: tuple[int, ...] = ()
    raw: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class LinkRecord:
    """A directed relation from one stored issue."""

    target_repo: str
    target_number: int
    kind: str
    reason: str
    score: float | None = None
    channel: str | None = None


@dataclass(frozen=True, slots=True)
class SyncRunRecord:
    """The result of one sync run."""

    repo: str
    started_at: datetime
    ended_at: datetime | None
    outcome: str
    requests: int
    not_modified: int
    remaining: int | None
    stored: int
    fault: str | None


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run.

    Attributes:
        stage: releases, issues, comments, facts, fixes, comparing, file, copying, fetching or waiting.
        done: rows or bytes so far; when waiting, seconds to wait.
        total: what is expected, if known.
        note: further information for the user, or empty.
    """

    stage: str
    done: int
    total: int | None = None
    note: str = ""


Report = Callable[[Progress], None]


def quiet(_progress: Progress) -> None:
    """Ignore progress."""
