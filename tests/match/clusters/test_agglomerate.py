"""Groups under constraints: judgements first, then people's duplicates, then likeness."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.facts import Facts
from app.match.clusters.agglomerate import SAID_DUPLICATE, Clustering, Scores, Tie, Word, cluster_issues
from app.match.clusters.ties import Member
from app.match.pairs.features import view_issue

VIEW = view_issue("Zebra rotary table ends early", "It ends.", Facts(number=1), None)
NUMBERS = tuple(range(1, 9))
PAIRS = st.tuples(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS)).filter(lambda pair: pair[0] < pair[1])
WORDS = st.lists(
    st.builds(lambda p, v: Word(*p, v), PAIRS, st.sampled_from(["same", "different"])), max_size=6
)
TIES = st.dictionaries(PAIRS, st.sampled_from([0.62, 0.7, 0.8, 0.9, SAID_DUPLICATE]), max_size=14).map(
    lambda told: [Tie(a, b, strength) for (a, b), strength in told.items()]
)


def members(*numbers: int) -> dict[int, Member]:
    return {number: Member(number, VIEW) for number in numbers or NUMBERS}


def likeness(score: float = 0.9, **other: float) -> Scores:
    """All pairs are alike by `score`, but those named like `_1_2`."""

    def scores(one: int, others: Sequence[int]) -> list[float]:
        return [other.get(f"_{min(one, two)}_{max(one, two)}", score) for two in others]

    return scores


def clustered(
    ties: Sequence[Tie],
    words: Sequence[Word] = (),
    scores: Scores | None = None,
    numbers: Sequence[int] = NUMBERS,
) -> Clustering:
    return cluster_issues(members(*numbers), ties, words, scores or likeness())


def together(found: Clustering, one: int, two: int) -> bool:
    return any(one in group and two in group for group in found.groups)


def test_what_is_tied_is_one_group_and_the_rest_stays_alone() -> None:
    found = clustered([Tie(1, 2, 0.8), Tie(2, 3, 0.8)], numbers=(1, 2, 3, 4))

    assert found.groups == ((1, 2, 3), (4,))


def test_groups_that_are_not_alike_on_the_whole_stay_apart_and_say_so() -> None:
    ties = [Tie(1, 2, 0.9), Tie(3, 4, 0.9), Tie(2, 3, 0.8)]
    found = clustered(
        ties, scores=likeness(0.9, _2_3=0.8, _1_3=0.5, _1_4=0.5, _2_4=0.5), numbers=(1, 2, 3, 4)
    )

    assert found.groups == ((1, 2), (3, 4))
    assert [(item.a, item.b) for item in found.refused] == [(2, 3)]
    assert "alike by 0.57 on average" in found.refused[0].reason


def test_one_pair_that_is_plainly_unlike_keeps_two_groups_apart() -> None:
    found = clustered([Tie(1, 2, 0.9), Tie(2, 3, 0.8)], scores=likeness(0.9, _1_3=0.3), numbers=(1, 2, 3))

    assert found.groups == ((1, 2), (3,))
    assert "not alike" in found.refused[0].reason


def test_groups_whose_issues_tell_other_errors_stay_apart() -> None:
    told = members(1, 2)
    told |= {3: Member(3, VIEW, message="cannot open the file")}
    told[1] = Member(1, VIEW, message="the table ends")
    found = cluster_issues(told, [Tie(1, 2, 0.9), Tie(2, 3, 0.8)], [], likeness())

    assert found.groups == ((1, 2), (3,))
    assert found.refused[0].reason == "they tell other errors"


def test_people_s_duplicates_join_however_unlike() -> None:
    assert clustered([Tie(1, 2, SAID_DUPLICATE)], scores=likeness(0.0), numbers=(1, 2)).groups == ((1, 2),)


def test_a_judgement_same_joins_however_unlike() -> None:
    assert clustered([], [Word(1, 2, "same")], likeness(0.0), (1, 2)).groups == ((1, 2),)


def test_a_judgement_different_keeps_apart_also_by_way_of_third_issues() -> None:
    ties = [Tie(1, 2, 0.9), Tie(2, 3, 0.9), Tie(1, 3, SAID_DUPLICATE)]
    found = clustered(ties, [Word(1, 3, "different")], numbers=(1, 2, 3))

    assert not together(found, 1, 3)
    assert any(item.reason == "#1 and #3 are judged different" for item in found.refused)


def test_what_is_judged_different_stays_apart_and_of_the_others_the_newest_hold() -> None:
    newest_first = [Word(1, 2, "same"), Word(2, 3, "same"), Word(1, 3, "different")]
    found = clustered([], newest_first, numbers=(1, 2, 3))

    assert (found.groups, found.overruled) == (((1, 2), (3,)), (Word(2, 3, "same"),))


def test_how_unlike_the_issues_are_that_people_joined_is_their_affair() -> None:
    scores = likeness(0.9, _1_3=0.1)
    found = clustered([Tie(1, 2, 0.9), Tie(2, 3, SAID_DUPLICATE)], scores=scores, numbers=(1, 2, 3))

    assert found.groups == ((1, 2, 3),)


def test_the_strongest_tie_is_followed_first() -> None:
    scores = likeness(0.9, _1_3=0.1)

    assert clustered([Tie(1, 2, 0.8), Tie(2, 3, 0.9)], scores=scores, numbers=(1, 2, 3)).groups == (
        (1,),
        (2, 3),
    )


@given(TIES, WORDS, st.integers(0, 99))
def test_groups_part_the_issues_obey_the_judgements_and_do_not_hang_on_the_order_of_ties(
    ties: list[Tie], words: list[Word], seed: int
) -> None:
    scores = likeness(0.7, _1_2=0.2, _3_4=0.5, _2_5=0.61)
    found = clustered(ties, words, scores)
    shuffled = random.Random(seed).sample(ties, len(ties))

    assert clustered(shuffled, words, scores) == found
    assert sorted(number for group in found.groups for number in group) == list(NUMBERS)
    for word in words:
        if word not in found.overruled:
            assert together(found, word.a, word.b) == (word.verdict == "same")


@given(TIES)
def test_without_judgements_none_is_overruled(ties: list[Tie]) -> None:
    assert clustered(ties).overruled == ()


def test_likeness_is_asked_for_only_where_groups_may_join_by_it() -> None:
    def never(_one: int, _others: Sequence[int]) -> list[float]:
        pytest.fail("asked for likeness")

    asked: Callable[[int, Sequence[int]], list[float]] = never
    assert clustered([Tie(1, 2, SAID_DUPLICATE)], [Word(2, 3, "same")], asked, (1, 2, 3)).groups == (
        (1, 2, 3),
    )
