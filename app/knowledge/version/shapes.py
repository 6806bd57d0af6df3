"""The shapes of what is known of a version. Public contract of the regressions and known-issues routes."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from app.extract.facts import Frozen, Regression
from app.knowledge.fix.shapes import FixView
from app.knowledge.issue.shapes import Quote
from app.knowledge.remedies import Remedy

Basis = Literal["reported", "in_range", "since"]
Standing = Literal["open", "fixed_later", "merged", "closed"]
Place = Literal["began", "may_have_begun", "failing", "since", "fixed", "told"]


class StatedValue(Quote):
    """A value in the words that say it."""

    field: str
    value: str
    at: datetime | None = Field(description="when it was written")


class StatedRemedy(Remedy):
    """A remedy with the words that tell it."""

    quote: StatedValue


class CulpritGuess(Frozen):
    """A pull request that may have begun it. A guess: nobody said so."""

    is_guess: Literal[True] = True
    number: int
    title: str
    url: str
    merged_at: datetime
    names: tuple[str, ...] = Field(description="what its title names of the error's frame or the backends")
    of: int = Field(description="how many merged between the two versions")


class VersionIssue(Frozen):
    """An issue as lists by version tell it."""

    repo: str
    number: int
    title: str
    url: str
    state: str
    state_reason: str | None
    created_at: datetime | None
    updated_at: datetime | None
    error: str = ""
    weight: int = Field(
        description="of its reports: 1, and for each other report of the failure 4, reaction 2, comment 1"
    )
    duplicates: int
    reports: int = Field(1, description="of its cluster, itself among them")
    comments: int
    reactions: int
    fix: FixView
    regression: Regression | None = None
    remedy: StatedRemedy | None = Field(None, description="the one to try first")
    quotes: tuple[StatedValue, ...] = Field((), description="the words that put it here")
    newest: StatedValue | None = Field(None, description="newest of version, range, remedy and fix")


class KnownIssue(VersionIssue):
    """A failure of a version that was open in it, or was fixed later.

    `basis`: reported to fail in the version; between a version reported to fail and one
    reported to work; or failing since an earlier version, without a report on a later one.
    """

    basis: Basis
    standing: Standing = Field(description="`merged`: no release is known to hold the fix")


class RegressionItem(VersionIssue):
    """A failure that was not there before, as its own issue tells it.

    `place`: where the version asked for lies in its range; `told` without a version.
    """

    place: Place
    culprit_guesses: tuple[CulpritGuess, ...] = ()


class KnownPage(Frozen):
    """Known issues of a version; those reported to fail in it first, each part by weight."""

    version: str
    is_ordered: bool = Field(description="false for a commit or a build without a tag: only its own reports")
    items: tuple[KnownIssue, ...]
    total: int
    closed: int = Field(description="further ones, closed without a known fix")


class RegressionPage(Frozen):
    version: str | None
    is_ordered: bool
    items: tuple[RegressionItem, ...]
    total: int


class VersionCount(Frozen):
    """How many issues say that they first fail in a version."""

    version: str
    regressions: int
