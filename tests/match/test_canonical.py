"""The issue that shows a failure best, and where chains of duplicates lead."""

from __future__ import annotations

from typing import Any

import pytest

from app.extract.facts import ErrorFact, Facts, Fix, Workaround
from app.match.clusters.agglomerate import choose_canonical, evidence_points, follow_chain
from app.store.derived.clusters import FailureTraits


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
    told = [
        empty,
        empty.model_copy(update={"workarounds": (works,)}),
        empty.model_copy(update={"workarounds": (fails,)}),
        empty.model_copy(update={"fix": Fix(state="unknown", pr="#9")}),
        empty.model_copy(update={"error": ErrorFact(type="ValueError", message="x", frame="a.py:f")}),
    ]

    assert [evidence_points(facts, 0, 0) for facts in told] == [0, 10, 0, 8, 4]
    assert evidence_points(empty, 8, 3) == 7
    assert evidence_points(empty, 10_000, 10_000) == evidence_points(empty, 20, 10)


@pytest.mark.parametrize(
    ("repeats", "alive", "chain"),
    [
        ({}, {1}, ((1,), "alive")),
        ({1: 2, 2: 3}, {1, 2, 3}, ((1, 2, 3), "alive")),
        ({1: 2, 2: 1}, {1, 2}, ((1, 2, 1), "circular")),
        ({1: 2, 2: 3, 3: 2}, {1, 2, 3}, ((1, 2, 3, 2), "circular")),
        ({1: 2}, {1}, ((1, 2), "dead")),
        ({1: 1}, {1}, ((1, 1), "circular")),
    ],
)
def test_a_chain_of_duplicates_is_followed_to_its_end(
    repeats: dict[int, int], alive: set[int], chain: object
) -> None:
    assert follow_chain(1, repeats, alive) == chain
