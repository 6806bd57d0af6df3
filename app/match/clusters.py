"""Which issues report one failure, which of them shows it best, and where chains of duplicates lead.

Constrained agglomeration in one fixed order, so that the result depends only on the ties:

1. People's judgements. `different` keeps two apart, always, also by way of third issues. `same` joins, the
   newest first, unless it would bring together what is judged different.
2. Duplicates that people named: they join unless a judgement keeps the two apart.
3. Ties of likeness, the strongest first: two blocks join if their issues are alike on the whole (average
   linkage), no pair of them is plainly unlike, and few pairs contradict each other (`why_apart`). A block is
   what likeness joined; issues that people joined with it are not compared.

A high pair score alone ties nothing: reports of one week that share a form or a model are alike, too. A tie
needs a title or an error message in common, and conditions as well where many unlike failures have that line.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from app.extract.facts import Facts
from app.match.pairs.features import MESSAGE, TITLE, PairFeatures
from app.match.pairs.score import load_pair_weights, overlap
from app.match.search.agreement import DISTINCTIVE_BACKENDS
from app.store.derived.clusters import FailureTraits
from app.store.records import Pair

MEAN_LEAST = 0.6
"""Mean likeness that the pairs between two blocks need."""
PAIR_LEAST = 0.4
"""Likeness that each of these pairs needs."""
APART_MOST = 0.1
"""Share of these pairs that may contradict each other."""
COMPARED_MAX = 32
"""Issues of a block that are compared, evenly spread: keeps the cost of joining large blocks bounded."""

BY_PEOPLE = 1.0
"""Strength of a tie that people made; likeness is below."""

Scores = Callable[[int, Sequence[int]], Sequence[float]]
"""The likeness of one issue with each of others, 0 to 1."""


def cluster_issues(
    members: Mapping[int, Member],
    ties: Mapping[Pair, float],
    same: Sequence[Pair],
    different: Collection[Pair],
    scores: Scores,
) -> list[tuple[int, ...]]:
    """Put issues into groups; each group ascending, and each issue in just one.

    Args:
        ties: pairs of members with the strength of their tie, `BY_PEOPLE` if people made it.
        same: pairs of members judged to be the same failure, the newest judgement first.
        different: pairs judged to be different failures.
        scores: called only where two blocks may join by likeness.
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
            and _are_alike(members, block_of[a], block_of[b], scores)
        ):
            _unite(group_of, a, b)
            _unite(block_of, a, b)
    return sorted({tuple(sorted(group)) for group in group_of.values()})


def _unite(of: dict[int, list[int]], a: int, b: int) -> None:
    one, two = of[a], of[b]
    if one is not two:
        one.extend(two)
        of.update(dict.fromkeys(two, one))


def _are_alike(members: Mapping[int, Member], one: list[int], two: list[int], scores: Scores) -> bool:
    few, many = sorted((_spread(one), _spread(two)), key=lambda numbers: (len(numbers), numbers))
    found = [score for number in few for score in scores(number, many)]
    if min(found) < PAIR_LEAST or round(sum(found) / len(found), 6) < MEAN_LEAST:
        return False
    apart = sum(why_apart(members[a], members[b]) is not None for a, b in product(few, many))
    return apart <= APART_MOST * len(found)


def _spread(block: list[int]) -> list[int]:
    return sorted(block)[:: -(-len(block) // COMPARED_MAX)]


COMMENTS_MOST = 20
REACTIONS_MOST = 10
REPEATED_POINTS = 3
"""For each issue that is a duplicate of it, as people say."""

ChainEnd = Literal["alive", "circular", "dead"]


def evidence_points(facts: Facts, comments: int, reactions: int) -> int:
    """How much evidence an issue holds, in points."""
    works = [item for item in facts.workarounds if item.outcome == "works"]
    confirmed = sum(min(item.confirmed_by, 5) for item in facts.workarounds)
    fix = 0 if facts.fix is None else 8 if facts.fix.pr else 2
    error = facts.error
    log = 0 if error is None else 2 + (2 if error.frame else 0) + (1 if facts.signatures else 0)
    known = sum(map(bool, (facts.models, facts.gpus, facts.backends, facts.versions, facts.reproduction)))
    talk = min(comments, COMMENTS_MOST) // 2 + min(reactions, REACTIONS_MOST)
    return 4 * len(works[:3]) + 3 * confirmed + fix + log + known + talk


def choose_canonical(members: Sequence[FailureTraits]) -> FailureTraits:
    """The member that shows the failure best.

    One that is gone, or closed as a duplicate of an issue, is chosen only where all are.
    """
    repeated = [target for member in members for target in member.repeats]

    def rank(member: FailureTraits) -> tuple[bool, bool, int, int]:
        points = member.evidence + REPEATED_POINTS * repeated.count(member.number)
        return member.gone, member.closed and bool(member.repeats), -points, member.number

    return min(members, key=rank)


def follow_chain(
    number: int, repeats: Mapping[int, int], alive: Collection[int]
) -> tuple[tuple[int, ...], ChainEnd]:
    """Where "duplicate of" leads from an issue.

    Returns:
        The numbers in the order in which each names the next, and how they end. `alive`: with an issue that
        repeats none; `circular`: the last number stands in it before; `dead`: with one gone or not stored.
    """
    chain = [number]
    while (target := repeats.get(chain[-1])) is not None:
        chain.append(target)
        if target in chain[:-1]:
            return tuple(chain), "circular"
        if target not in alive:
            break
    return tuple(chain), "alive" if chain[-1] in alive else "dead"


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
