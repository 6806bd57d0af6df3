"""What ties two issues to one failure, and what keeps them apart.

In: two issues as `Member`s, and how likely the pair is the same (`app.match.pairs.score`). Out: the
strength of a
tie or none, and a reason against one cluster or none. A high score alone ties nothing: reports of one week
that share a form or a model are alike, too. A tie needs a claim in common - a title or an error message -
and where that claim is one that many unlike failures make, conditions in common as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.match.pairs.features import View
from app.match.pairs.score import load_pair_weights, shared_claims

CLAIM_LEAST = 0.5
"""How much of a title or a message a tie needs in common, as a cosine."""
MESSAGE_LEAST = 0.8
"""How much of both messages, where the score says no more than likely."""
ERRORS_APART = 0.4
"""Below this likeness of both messages two issues tell different errors."""
COMMON_FROM = 2.0
"""From how common a message on (ln of the number of issues that tell it) unlike failures share it."""
NEAR_DAYS = 180
FAR_DAYS = 365
"""Further apart the same line comes from another era; nearer for a line that unlike failures share."""
LATE_AGREEMENTS = 2
"""How many conditions two faults of a device need in common, for neither line says what failed."""
TELLING_BACKENDS = ("attention", "moe", "all2all", "quantization", "kv_cache_dtype", "speculative")
ARCHITECTURE_ENDINGS = (
    "forcausallm",
    "forconditionalgeneration",
    "forsequenceclassification",
    "formaskedlm",
    "model",
    "processor",
)
"""How names of model classes end, in lower case: an error that names one is about that model."""


@dataclass(frozen=True, slots=True)
class Member:
    """An issue as clusters see it.

    Attributes:
        message: the masked words of its error message; empty if it tells none.
        frame: where its error was raised, `file.py:function`.
        is_generic: its error is one that many unlike failures share; `is_late`: one told by a later call.
        names_test: its title names a test and not a failure.
        in_error: conditions and families that the error line itself names: they come with the line and say
            nothing of the circumstances.
    """

    number: int
    view: View
    message: str = ""
    frame: str | None = None
    is_generic: bool = False
    is_late: bool = False
    names_test: bool = False
    in_error: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Claims:
    """What one issue claims in common with others, as cosines, one for each of them."""

    titles: np.ndarray
    messages: np.ndarray
    best: np.ndarray


def claims_of(one: Member, others: Sequence[Member]) -> Claims:
    """The claims that count: titles that name a test and messages that say nothing do not."""
    titles, messages, crossed = shared_claims(one.view, [other.view for other in others])
    by_title = np.array([not (one.names_test or other.names_test) for other in others], dtype=bool)
    by_message = np.array([bool(one.message and other.message) for other in others], dtype=bool)
    by_either = np.array([bool(one.message or other.message) for other in others], dtype=bool) & by_title
    titles = np.where(by_title, titles, 0.0)
    messages = np.where(by_message, messages, 0.0)
    return Claims(titles, messages, np.maximum.reduce([titles, messages, np.where(by_either, crossed, 0.0)]))


def tied(one: Member, others: Sequence[Member], scores: Sequence[float]) -> list[bool]:
    """Which of the others one is tied to by likeness.

    A pair that is the same by its score needs a claim in common; one that is only likely, the same message.
    """
    weights = load_pair_weights()
    claims = claims_of(one, others)
    found = []
    for at, (other, score) in enumerate(zip(others, scores, strict=True)):
        is_same = score >= weights.same_from and claims.best[at] >= CLAIM_LEAST
        is_telling = not _is_shared_line(one, other)
        has_message = one.message == other.message != "" or claims.messages[at] >= MESSAGE_LEAST
        is_likely = score >= weights.likely_from and has_message and is_telling
        found.append((is_same or is_likely) and why_apart(one, other, float(claims.messages[at])) is None)
    return found


def why_apart(one: Member, two: Member, messages: float) -> str | None:
    """What keeps two issues out of one cluster; None if nothing does.

    Args:
        one: an issue.
        two: another one.
        messages: how much of their messages they share, as `Claims` tells.
    """
    return _other_failure(one, two, messages) or _other_conditions(one, two) or _other_era(one, two)


def _other_failure(one: Member, two: Member, messages: float) -> str | None:
    if one.view.platforms.isdisjoint(two.view.platforms):
        return "they failed on other platforms"
    if one.message and two.message and messages < ERRORS_APART:
        return "they tell other errors"
    named, others = _architectures(one.message), _architectures(two.message)
    if named and others and named.isdisjoint(others):
        return "their errors name other models"
    return None


def _other_conditions(one: Member, two: Member) -> str | None:
    if not _is_shared_line(one, two):
        return None
    needed = LATE_AGREEMENTS if one.is_late or two.is_late else 1
    agreed = agreements(one, two)
    if len(agreed) >= needed:
        return None
    found = f"only their {agreed[0]}" if agreed else "no condition"
    return f"many unlike failures tell this line, and {found} agrees"


def _other_era(one: Member, two: Member) -> str | None:
    days = abs(one.view.day - two.view.day) if one.view.day and two.view.day else 0
    most = NEAR_DAYS if _is_shared_line(one, two) else FAR_DAYS
    return f"{days} days lie between them" if days > most else None


def agreements(one: Member, two: Member) -> list[str]:
    """The conditions that both name: model family, backend, frame, what the titles name."""
    mine, theirs = one.view, two.view
    backends = {item for item in mine.backends & theirs.backends if item.split("=")[0] in TELLING_BACKENDS}
    in_error = one.in_error | two.in_error
    found = {
        "family": (mine.families & theirs.families) - in_error,
        "backend": backends,
        "frame": one.frame is not None and one.frame == two.frame,
        "title": (mine.title_conditions & theirs.title_conditions) - in_error,
    }
    return [name for name, shared in found.items() if shared]


def _architectures(message: str) -> set[str]:
    return {word for word in message.split() if word.endswith(ARCHITECTURE_ENDINGS) and word != "model"}


def _is_shared_line(one: Member, two: Member) -> bool:
    """Whether what failed is told by a line that many unlike failures share."""
    is_common = min(one.view.commonness, two.view.commonness) >= COMMON_FROM
    return one.is_generic or two.is_generic or is_common
