"""What ties two issues to one failure, and what keeps them apart.

A high pair score alone ties nothing: reports of one week that share a form or a model are alike, too. A tie
needs a title or an error message in common, and conditions as well where many unlike failures have that line.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.match.pairs.features import MESSAGE, TITLE, PairFeatures
from app.match.pairs.score import load_pair_weights, overlap
from app.match.search.agreement import DISTINCTIVE_BACKENDS
from app.store.derived.clusters import FailureTraits

CLAIM_LEAST = 0.5
"""How much of a title or a message a tie needs in common, as a cosine."""
MESSAGE_LEAST = 0.8
"""How much of both messages, where the score says no more than likely."""
ERRORS_APART = 0.4
"""Below this likeness of both messages two issues report different errors."""
COMMON_FROM = 2.0
"""From how common a message on (ln of the number of issues with it) unlike failures share it."""
NEAR_DAYS = 180
FAR_DAYS = 365
"""Further apart the same line comes from another era; nearer for a line that unlike failures share."""
LATE_AGREEMENTS = 2
"""How many conditions two faults of a device need in common, for neither line says what failed."""
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
    """An issue with all that decides on its ties."""

    traits: FailureTraits
    features: PairFeatures


def is_tied(one: Member, two: Member, score: float) -> bool:
    """Whether likeness ties two issues.

    A pair that is the same by its score needs a claim in common; one that is only likely, the same message.
    """
    weights = load_pair_weights()
    mine, theirs = one.traits, two.traits
    messages = _messages_alike(one, two)
    if score >= weights.same_from and max(messages, _titles_alike(one, two)) >= CLAIM_LEAST:
        return why_apart(one, two) is None
    has_message = mine.message == theirs.message != "" or messages >= MESSAGE_LEAST
    is_likely = score >= weights.likely_from and has_message and not _is_shared_line(one, two)
    return is_likely and why_apart(one, two) is None


def why_apart(one: Member, two: Member) -> str | None:
    """What keeps two issues out of one cluster; None if nothing does."""
    return _other_failure(one, two) or _other_conditions(one, two) or _other_era(one, two)


def _messages_alike(one: Member, two: Member) -> float:
    if not (one.traits.message and two.traits.message):
        return 0.0
    return overlap(one.features, two.features, MESSAGE, MESSAGE)


def _titles_alike(one: Member, two: Member) -> float:
    """How much of its title one shares with the other's title or message; a title of a test is no claim."""
    if one.traits.names_test or two.traits.names_test:
        return 0.0
    crossed = ((TITLE, MESSAGE), (MESSAGE, TITLE)) if one.traits.message or two.traits.message else ()
    return max(overlap(one.features, two.features, *bags) for bags in ((TITLE, TITLE), *crossed))


def _other_failure(one: Member, two: Member) -> str | None:
    if one.features.platforms.isdisjoint(two.features.platforms):
        return "they failed on other platforms"
    mine, theirs = one.traits.message, two.traits.message
    if mine and theirs and _messages_alike(one, two) < ERRORS_APART:
        return "they report other errors"
    named, others = _architectures(mine), _architectures(theirs)
    if named and others and named.isdisjoint(others):
        return "their errors name other models"
    return None


def _other_conditions(one: Member, two: Member) -> str | None:
    if not _is_shared_line(one, two):
        return None
    needed = LATE_AGREEMENTS if one.traits.late or two.traits.late else 1
    agreed = agreements(one, two)
    if len(agreed) >= needed:
        return None
    found = f"only their {agreed[0]}" if agreed else "no condition"
    return f"many unlike failures have this line, and {found} agrees"


def _other_era(one: Member, two: Member) -> str | None:
    mine, theirs = one.features.day, two.features.day
    days = abs(mine - theirs) if mine and theirs else 0
    most = NEAR_DAYS if _is_shared_line(one, two) else FAR_DAYS
    return f"{days} days lie between them" if days > most else None


def agreements(one: Member, two: Member) -> list[str]:
    """The conditions that both name: model family, backend, frame, what the titles name."""
    mine, theirs = one.features, two.features
    # Conditions that the error line itself names come with the line and say nothing of the circumstances.
    in_error = {*one.traits.in_error, *two.traits.in_error}
    found = {
        "family": (mine.families & theirs.families) - in_error,
        "backend": {
            name for name in mine.backends & theirs.backends if name.split("=")[0] in DISTINCTIVE_BACKENDS
        },
        "frame": one.traits.frame is not None and one.traits.frame == two.traits.frame,
        "title": (mine.title_conditions & theirs.title_conditions) - in_error,
    }
    return [name for name, shared in found.items() if shared]


def _architectures(message: str) -> set[str]:
    return {word for word in message.split() if word.endswith(ARCHITECTURE_ENDINGS) and word != "model"}


def _is_shared_line(one: Member, two: Member) -> bool:
    """Whether many unlike failures share the line that says what failed."""
    is_common = min(one.features.commonness, two.features.commonness) >= COMMON_FROM
    return one.traits.generic or two.traits.generic or is_common
