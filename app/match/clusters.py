"""Cluster issues that report one failure, and choose the canonical issue.

Constrained agglomerative clustering in a fixed order, so that the result depends only on the ties:

1. People's judgements. `different` always keeps two issues apart, also transitively. `same` joins them, the
   newest judgement first, unless that would join issues judged different.
2. Duplicates that people named: joined unless a judgement keeps the two apart.
3. Ties by similarity, the strongest first: two blocks join if their mean pair score is high (average
   linkage), no pair scores too low, and few pairs contradict each other (`why_apart`). A block contains only
   issues joined by similarity; issues that people added to the group are not compared.

A high pair score alone makes no tie: reports from the same week with the same form or model are similar, too.
A tie needs a common title or error message, and common conditions if unrelated failures share that message.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from app.extract.facts import Facts
from app.match.pairs.features import MESSAGE, TITLE, PairFeatures
from app.match.pairs.score import load_pair_weights, similarity
from app.match.search.agreement import DISTINCTIVE_BACKENDS
from app.store.derived.clusters import FailureTraits
from app.store.records import Pair

MEAN_LEAST = 0.6
"""Minimum mean score of the pairs between two blocks."""
PAIR_LEAST = 0.4
"""Minimum score of each of these pairs."""
APART_MOST = 0.1
"""Maximum share of these pairs that contradict each other."""
COMPARED_MAX = 32
"""Maximum number of issues compared per block, evenly sampled: bounds the cost of joining large blocks."""

BY_PEOPLE = 1.0
"""Strength of a tie made by people; ties by similarity are below."""

Scores = Callable[[int, Sequence[int]], Sequence[float]]
"""Returns the pair scores of one issue with each of the others, 0 to 1."""


def cluster_issues(
    members: Mapping[int, Member],
    ties: Mapping[Pair, float],
    same: Sequence[Pair],
    different: Collection[Pair],
    scores: Scores,
) -> list[tuple[int, ...]]:
    """Partition issues into groups, each sorted ascending.

    Args:
        ties: pairs of members with the strength of their tie, `BY_PEOPLE` if people made it.
        same: pairs of members judged to be the same failure, the newest judgement first.
        different: pairs judged to be different failures.
        scores: called only when two blocks may join by similarity.
    """
    group_of = {number: [number] for number in members}
    block_of = {number: [number] for number in members}

    def may_join(a: int, b: int) -> bool:
        pairs = product(group_of[a], group_of[b]) if different else ()
        return not any((one, two) in different or (two, one) in different for one, two in pairs)

    for a, b in same:
        if may_join(a, b):
            _unite(group_of, a, b)
    for (a, b), strength in sorted(ties.items(), key=lambda tie: (-tie[1], tie[0])):
        if strength >= BY_PEOPLE:
            if may_join(a, b):
                _unite(group_of, a, b)
        elif (
            block_of[a] is not block_of[b]
            and may_join(a, b)
            and _may_join_blocks(members, block_of[a], block_of[b], scores)
        ):
            _unite(group_of, a, b)
            _unite(block_of, a, b)
    return sorted({tuple(sorted(group)) for group in group_of.values()})


def _unite(of: dict[int, list[int]], a: int, b: int) -> None:
    one, two = of[a], of[b]
    if one is not two:
        one.extend(two)
        of.update(dict.fromkeys(two, one))


def _may_join_blocks(members: Mapping[int, Member], one: list[int], two: list[int], scores: Scores) -> bool:
    few, many = sorted((_sample(one), _sample(two)), key=lambda numbers: (len(numbers), numbers))
    found = [score for number in few for score in scores(number, many)]
    if min(found) < PAIR_LEAST or round(sum(found) / len(found), 6) < MEAN_LEAST:
        return False
    apart = sum(why_apart(members[a], members[b]) is not None for a, b in product(few, many))
    return apart <= APART_MOST * len(found)


def _sample(block: list[int]) -> list[int]:
    return sorted(block)[:: -(-len(block) // COMPARED_MAX)]


COMMENTS_MOST = 20
REACTIONS_MOST = 10
REPEATED_POINTS = 3
"""Points for each issue that people closed as a duplicate of this one."""


def evidence_points(facts: Facts, comments: int, reactions: int) -> int:
    """Score how much evidence an issue contains."""
    works = [item for item in facts.workarounds if item.outcome == "works"]
    confirmed = sum(min(item.confirmed_by, 5) for item in facts.workarounds)
    fix = 0 if facts.fix is None else 8 if facts.fix.pr else 2
    error = facts.error
    log = 0 if error is None else 2 + (2 if error.frame else 0) + (1 if facts.signatures else 0)
    known = sum(map(bool, (facts.models, facts.gpus, facts.backends, facts.versions, facts.reproduction)))
    talk = min(comments, COMMENTS_MOST) // 2 + min(reactions, REACTIONS_MOST)
    return 4 * len(works[:3]) + 3 * confirmed + fix + log + known + talk


def choose_canonical(members: Sequence[FailureTraits]) -> FailureTraits:
    """Return the member with the most evidence of the failure, the oldest among equals.

    Deleted issues and closed duplicates are chosen only if there are no others.
    """
    repeated = [target for member in members for target in member.repeats]

    def rank(member: FailureTraits) -> tuple[bool, bool, int, int]:
        points = member.evidence + REPEATED_POINTS * repeated.count(member.number)
        return member.gone, member.closed and bool(member.repeats), -points, member.number

    return min(members, key=rank)


CLAIM_LEAST = 0.5
"""Minimum cosine similarity of titles or messages for a tie."""
MESSAGE_LEAST = 0.8
"""Minimum cosine similarity of messages if the score is only `likely`."""
ERRORS_APART = 0.4
"""Below this cosine similarity of their messages, two issues report different errors."""
COMMON_FROM = 2.0
"""Commonness (ln(1 + number of issues with the message)) from which on unrelated failures share a message."""
NEAR_DAYS = 180
FAR_DAYS = 365
"""Maximum number of days between two tied issues; `NEAR_DAYS` if unrelated failures share the message."""
LATE_AGREEMENTS = 2
"""Conditions that asynchronous device errors need in common: their messages do not say what failed."""
ARCHITECTURE_ENDINGS = (
    "forcausallm",
    "forconditionalgeneration",
    "forsequenceclassification",
    "formaskedlm",
    "model",
    "processor",
)
"""Suffixes of model class names, in lower case: an error that names such a class is about that model."""


@dataclass(frozen=True, slots=True)
class Member:
    """An issue with the data that decide its ties."""

    traits: FailureTraits
    features: PairFeatures


def is_tied(one: Member, two: Member, score: float) -> bool:
    """True if two issues are tied by similarity.

    A pair with a `same` score needs a similar title or message; one with a `likely` score, the same message.
    """
    weights = load_pair_weights()
    mine, theirs = one.traits, two.traits
    messages = _message_similarity(one, two)
    if score >= weights.same_from and max(messages, _title_similarity(one, two)) >= CLAIM_LEAST:
        return why_apart(one, two) is None
    has_message = mine.message == theirs.message != "" or messages >= MESSAGE_LEAST
    is_likely = score >= weights.likely_from and has_message and not _is_shared_line(one, two)
    return is_likely and why_apart(one, two) is None


def why_apart(one: Member, two: Member) -> str | None:
    """Return the reason that keeps two issues out of one cluster, or None."""
    return _other_failure(one, two) or _other_conditions(one, two) or _other_era(one, two)


def _message_similarity(one: Member, two: Member) -> float:
    if not (one.traits.message and two.traits.message):
        return 0.0
    return similarity(one.features, two.features, MESSAGE, MESSAGE)


def _title_similarity(one: Member, two: Member) -> float:
    """Return the best cosine similarity of one's title with the other's title or message; 0 for tests."""
    if one.traits.names_test or two.traits.names_test:
        return 0.0
    crossed = ((TITLE, MESSAGE), (MESSAGE, TITLE)) if one.traits.message or two.traits.message else ()
    return max(similarity(one.features, two.features, *bags) for bags in ((TITLE, TITLE), *crossed))


def _other_failure(one: Member, two: Member) -> str | None:
    if one.features.platforms.isdisjoint(two.features.platforms):
        return "they failed on other platforms"
    mine, theirs = one.traits.message, two.traits.message
    if mine and theirs and _message_similarity(one, two) < ERRORS_APART:
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
    """Return the kinds of condition that agree: model family, backend, frame, conditions in titles."""
    mine, theirs = one.features, two.features
    # Conditions named in the error line come with the line and are no independent evidence.
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
    """True if many unrelated failures share the error message."""
    is_common = min(one.features.commonness, two.features.commonness) >= COMMON_FROM
    return one.traits.generic or two.traits.generic or is_common
