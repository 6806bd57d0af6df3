"""The values of this package: a failure as a case, its standing in a version, its relation to a stack."""

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from app.extract.facts import Facts, Frozen
from app.knowledge.fix.shapes import FixTruth

Answer = Literal["affects", "not", "unknown"]
Fails = Literal["yes", "no", "unknown"]
HARDWARE_KINDS = frozenset({"crash", "oom", "slowdown", "hang"})
"""Kinds of failures that may depend on the hardware."""
DIFFERENCES_MAX = 2
"""Maximum number of differences of a failure that may be the stack's."""


class Affects(Frozen):
    """Whether a failure affects a stack."""

    state: Answer
    reason: str = Field(description="one sentence: how this is known, or what is missing")


@dataclass(frozen=True, slots=True)
class FailureCase:
    """The known data on one failure.

    `titled_*`: GPUs and models named in its title. `patches`: releases that only mend a few things in the
    reported one. `unresolved_until`: the newest release that came before a robot could have closed it.
    """

    facts: Facts
    truth: FixTruth
    state: str
    title: str = ""
    labels: tuple[str, ...] = ()
    titled_gpus: tuple[str, ...] = ()
    titled_models: tuple[str, ...] = ()
    patches: tuple[str, ...] = ()
    unresolved_until: str | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a version has a failure, with the reason.

    `is_near`: for "unknown", the version is at most `standing.NEAR_MINORS` after the reported one.
    """

    answer: Fails
    reason: str
    is_near: bool = False


@dataclass(frozen=True, slots=True)
class Sign:
    """What one part of a report says of a stack.

    `is_specific`: not every stack has what agrees. `is_slight`: what differs seldom decides.
    """

    kind: Literal["agrees", "differs", "rules_out"]
    words: str
    is_specific: bool = False
    is_slight: bool = False


@dataclass(frozen=True, slots=True)
class Relation:
    """What agrees and what differs, in words; `ruled_out` says why the failure cannot be the stack's.

    `is_specific`: the model or a feature agrees. `slight`: those of `differs` that seldom decide.
    """

    agrees: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()
    ruled_out: str | None = None
    is_specific: bool = False
    slight: frozenset[str] = frozenset()

    @property
    def answer(self) -> Fails:
        if self.ruled_out is not None:
            return "no"
        return "yes" if self.is_specific and self.is_like_it else "unknown"

    @property
    def is_like_it(self) -> bool:
        """True if nothing that is known differs, but for one thing that seldom decides."""
        return len(self.differs) <= 1 and self.slight.issuperset(self.differs)

    @property
    def is_near(self) -> bool:
        """True if it may be the stack's: something specific agrees, and little differs."""
        return self.ruled_out is None and self.is_specific and len(self.differs) <= DIFFERENCES_MAX

    @property
    def reason(self) -> str:
        if self.ruled_out is not None:
            return self.ruled_out
        nothing = () if self.is_specific else ("neither its model nor a feature is known to be yours",)
        return "; ".join((*self.agrees, *(self.differs or nothing)))


def affects_of(standing: Standing, relation: Relation | None) -> Affects:
    """Combine both: two times yes affects, any no does not; without a relation the version decides."""
    if standing.answer == "no":
        return Affects(state="not", reason=standing.reason)
    if relation is None or relation.answer == "yes":
        reason = "; ".join([standing.reason, *([relation.reason] if relation else [])])
        return Affects(state="affects" if standing.answer == "yes" else "unknown", reason=reason)
    return Affects(state="not" if relation.answer == "no" else "unknown", reason=relation.reason)
