"""Ties and groups of issues that report one failure."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.facts import ErrorFact, Facts, Fix, Workaround
from app.match.clusters import (
    BY_PEOPLE,
    COMPARED_MAX,
    Scores,
    choose_canonical,
    cluster_issues,
    evidence_points,
)
from app.match.pairs.features import PairFeatures
from app.store.derived.clusters import FailureTraits
from app.store.records import Pair
from tests.match.pairs.test_features import a_view

NUMBERS = tuple(range(1, 9))
PAIRS = st.tuples(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS)).filter(lambda pair: pair[0] < pair[1])
VERDICTS = st.dictionaries(PAIRS, st.sampled_from(["same", "different"]), max_size=6)
TIES = st.dictionaries(PAIRS, st.sampled_from([0.62, 0.7, 0.8, 0.9, BY_PEOPLE]), max_size=14)
Groups = list[tuple[int, ...]]


def members(*numbers: int, **errors: str) -> dict[int, PairFeatures]:
    """Like issues; those named like `_1` have this error."""
    return {n: a_view("Zebra rotary table ends early", error=errors.get(f"_{n}", "")) for n in numbers}


def likeness(score: float = 0.9, **other: float) -> Scores:
    """All pairs are alike by `score`, but those named like `_1_2`."""

    def scores(one: int, others: Sequence[int]) -> list[float]:
        return [other.get(f"_{min(one, two)}_{max(one, two)}", score) for two in others]

    return scores


def clustered(
    ties: Mapping[Pair, float],
    same: Sequence[Pair] = (),
    different: Collection[Pair] = (),
    scores: Scores | None = None,
    numbers: Sequence[int] = (1, 2, 3),
) -> Groups:
    return cluster_issues(members(*numbers), ties, same, different, scores or likeness())


def together(found: Groups, one: int, two: int) -> bool:
    return any(one in group and two in group for group in found)


def test_what_is_tied_is_one_group_and_the_rest_stays_alone() -> None:
    assert clustered({(1, 2): 0.8, (2, 3): 0.8}, numbers=(1, 2, 3, 4)) == [(1, 2, 3), (4,)]


def test_groups_that_are_not_alike_on_the_whole_stay_apart() -> None:
    ties = {(1, 2): 0.9, (3, 4): 0.9, (2, 3): 0.8}
    scores = likeness(0.9, _2_3=0.8, _1_3=0.5, _1_4=0.5, _2_4=0.5)

    assert clustered(ties, scores=scores, numbers=(1, 2, 3, 4)) == [(1, 2), (3, 4)]


def test_groups_whose_errors_name_other_code_stay_apart() -> None:
    known = members(1, 2, 3, _1="KeyError: rotary_zebra_table", _3="KeyError: otter_cache_scale")

    assert cluster_issues(known, {(1, 2): 0.9, (2, 3): 0.8}, [], [], likeness()) == [(1, 2), (3,)]


def test_people_s_duplicates_and_judgements_join_however_unlike() -> None:
    assert clustered({(1, 2): BY_PEOPLE}, scores=likeness(0.0)) == [(1, 2), (3,)]
    assert clustered({}, [(1, 2)], scores=likeness(0.0)) == [(1, 2), (3,)]


def test_a_judgement_different_keeps_apart_also_by_way_of_third_issues() -> None:
    ties = {(1, 2): 0.9, (2, 3): 0.9, (1, 3): BY_PEOPLE}

    assert not together(clustered(ties, different=[(1, 3)]), 1, 3)


def test_what_is_judged_different_stays_apart_and_of_the_others_the_newest_hold() -> None:
    assert clustered({}, [(1, 2), (2, 3)], [(1, 3)]) == [(1, 2), (3,)]


def test_how_unlike_the_issues_are_that_people_joined_does_not_count() -> None:
    ties = {(1, 2): 0.9, (2, 3): BY_PEOPLE}

    assert clustered(ties, scores=likeness(0.9, _1_3=0.1)) == [(1, 2, 3)]


def test_the_strongest_tie_is_followed_first() -> None:
    assert clustered({(1, 2): 0.8, (2, 3): 0.9}, scores=likeness(0.9, _1_3=0.1)) == [(1,), (2, 3)]


def test_only_so_many_issues_of_a_block_are_compared() -> None:
    numbers = range(1, 301)
    most = 0

    def counted(_one: int, others: Sequence[int]) -> list[float]:
        nonlocal most
        most = max(most, len(others))
        return [0.9] * len(others)

    ties = {(number, number + 1): 0.9 for number in numbers[:-1]}
    assert clustered(ties, scores=counted, numbers=numbers) == [tuple(numbers)]
    assert most <= COMPARED_MAX


@given(TIES, VERDICTS, st.integers(0, 99))
def test_groups_part_the_issues_obey_the_judgements_and_do_not_hang_on_the_order_of_ties(
    ties: dict[Pair, float], verdicts: dict[Pair, str], seed: int
) -> None:
    scores = likeness(0.7, _1_2=0.2, _3_4=0.5, _2_5=0.61)
    same = [pair for pair, verdict in verdicts.items() if verdict == "same"]
    different = verdicts.keys() - set(same)
    found = clustered(ties, same, different, scores, NUMBERS)
    shuffled = dict(random.Random(seed).sample(sorted(ties.items()), len(ties)))

    assert clustered(shuffled, same, different, scores, NUMBERS) == found
    assert sorted(number for group in found for number in group) == list(NUMBERS)
    assert not any(together(found, *pair) for pair in different)
    if not different:
        assert all(together(found, *pair) for pair in same)


def test_likeness_is_asked_for_only_where_groups_may_join_by_it() -> None:
    def never(_one: int, _others: Sequence[int]) -> list[float]:
        pytest.fail("asked for likeness")

    assert clustered({(1, 2): BY_PEOPLE}, [(2, 3)], scores=never) == [(1, 2, 3)]


# The issue that shows a failure best, and where chains of duplicates lead


def a(number: int, evidence: int, **more: Any) -> FailureTraits:
    return FailureTraits(number, evidence=evidence, **more)


def test_the_most_evidence_decides_not_the_age() -> None:
    assert choose_canonical([a(1, 2), a(2, 9), a(3, 4)]).number == 2


def test_the_older_one_of_equal_evidence_is_chosen() -> None:
    assert choose_canonical([a(7, 4), a(3, 4)]).number == 3


def test_a_closed_duplicate_is_never_chosen_while_another_is_there() -> None:
    assert choose_canonical([a(1, 1), a(2, 50, closed=True, repeats=(1,))]).number == 1


def test_an_open_issue_that_is_called_a_duplicate_may_be_chosen() -> None:
    assert choose_canonical([a(1, 1), a(2, 50, repeats=(1,))]).number == 2


def test_what_is_gone_is_never_chosen_while_another_is_there() -> None:
    assert choose_canonical([a(1, 50, gone=True), a(2, 0)]).number == 2


def test_in_a_circle_of_closed_duplicates_one_is_chosen_all_the_same() -> None:
    circle = [a(1, 3, closed=True, repeats=(2,)), a(2, 5, closed=True, repeats=(1,))]

    assert choose_canonical(circle).number == 2


def test_duplicates_that_name_an_issue_speak_for_it() -> None:
    asked = [a(1, 6), a(2, 4), a(3, 0, repeats=(2,))]

    assert choose_canonical(asked).number == 2


def test_remedies_fix_log_and_talk_count_as_evidence() -> None:
    empty = Facts(number=1)
    works = Workaround(action="--enforce-eager", kind="flag", outcome="works", confirmed_by=2)
    fails = Workaround(action="reboot", kind="other", outcome="fails")
    found = [
        empty,
        empty.model_copy(update={"workarounds": (works,)}),
        empty.model_copy(update={"workarounds": (fails,)}),
        empty.model_copy(update={"fix": Fix(state="unknown", pr="#9")}),
        empty.model_copy(update={"error": ErrorFact(type="ValueError", message="x", frame="a.py:f")}),
    ]

    assert [evidence_points(facts, 0, 0) for facts in found] == [0, 10, 0, 8, 4]
    assert evidence_points(empty, 8, 3) == 7
    assert evidence_points(empty, 10_000, 10_000) == evidence_points(empty, 20, 10)
