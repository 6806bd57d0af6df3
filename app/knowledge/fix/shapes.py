"""Inputs and result of deciding the fix state of one issue. Data only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from pydantic import Field

from app.extract.facts import Fix, PullRequestName
from app.extract.versions import Version
from app.store.github.releases import History

ForYou = Literal["upgrade", "already_included", "not_fixed", "unknown"]
Authority = Literal["maintainer", "card", "other"]


class FixElsewhere(PullRequestName):
    """A pull request of another repository named as the fix, and the release of it that contains it."""

    repo: str
    state: Literal["merged", "open", "closed", "unknown"] = Field(
        description="state of the pull request; `unknown` if it is not stored"
    )
    released_in: str | None = Field(None, description="first release of `repo` known to contain the fix")


class FixView(Fix):
    """The fix of an issue, for the caller's version if given."""

    for_you: ForYou | None = None
    earliest_possible: str | None = Field(
        None, description="first release that can contain a merged, unreleased fix"
    )
    also_in: tuple[str, ...] = Field((), description="further releases with the fix, such as back-ports")
    elsewhere: FixElsewhere | None = Field(
        None,
        description="where the fix is another repository's: `released_in` is then null, since no release of "
        "this one is known to need it",
    )
    reason: str = Field("", description="one sentence: how this is known")


@dataclass(frozen=True, slots=True)
class Claim:
    """A stored pull request named as the fix of the issue."""

    number: int
    state: str
    merged_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class FixStatement:
    """What participants of the issue, or a starter card, state about the fix."""

    fix: Fix
    by: Authority = "other"
    quote: str = ""

    @property
    def is_trusted(self) -> bool:
        """True if the statement counts without a merged pull request: a card's, or a maintainer's quote."""
        return self.by == "card" or (self.by == "maintainer" and bool(self.quote))

    @property
    def number(self) -> int | None:
        """The number of the named pull request of the same repository, if any."""
        digits = (self.fix.pr or "").removeprefix("#")
        return int(digits) if digits.isdigit() else None


@dataclass(frozen=True, slots=True)
class FixCase:
    """What decides the fix state of one issue."""

    state: str
    state_reason: str | None = None
    reported_at: datetime | None = None
    labels: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    stated: FixStatement | None = None
    history: History = field(default_factory=History)

    @property
    def waiting(self) -> tuple[int, ...]:
        """The open pull requests among the claims, in their order."""
        return tuple(claim.number for claim in self.claims if claim.state == "open")


@dataclass(frozen=True, slots=True)
class Held:
    """Which versions contain the fix.

    Attributes:
        full, pre: releases and prereleases known to contain it, ascending.
        lacking: versions known not to contain it, or published before it was merged.
        released: all full releases, ascending.
        commits: by commit, whether it contains the fix; the merge commit does.
    """

    full: tuple[Version, ...] = ()
    pre: tuple[Version, ...] = ()
    lacking: frozenset[Version] = frozenset()
    released: tuple[Version, ...] = ()
    commits: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FixTruth:
    view: FixView
    held: Held = Held()
