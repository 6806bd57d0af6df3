"""Whether a version has a failure, by its fix, its range and its report."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.extract.facts import Regression
from app.extract.versions import Version
from app.knowledge.fix.shapes import FixTruth, FixView, Held
from app.knowledge.stack.standing import FailureCase, standing
from tests.knowledge.stack.conftest import FIXED, SPAN, case


@pytest.mark.parametrize(
    ("version", "given", "answer"),
    [
        ("0.21.0", case(), "yes"),
        ("0.22.0", case(), "yes"),
        ("0.25.0", case(), "yes"),
        ("0.26.0", case(), "unknown"),
        ("0.30.0", case(), "unknown"),
        ("0.20.0", case(), "unknown"),
        ("0.21.0", case(version="0.21.1"), "unknown"),
        ("0.21.0", case(state="closed"), "yes"),
        ("0.22.0", case(state="closed"), "unknown"),
        ("0.22.0", case(labels=("stale",)), "unknown"),
        ("0.20.0", case(version="0.20.0", truth=FIXED, state="closed"), "yes"),
        ("0.21.0", case(version="0.20.0", truth=FIXED, state="closed"), "no"),
        ("0.20.0", case(span=SPAN), "no"),
        ("0.19.0", case(span=SPAN), "no"),
        ("0.19.0", case(version="0.19.0", span=SPAN), "no"),
        ("0.21.0", case(version=None, span=SPAN), "yes"),
        ("0.20.0", case(span=Regression(first_failing="0.21.0")), "unknown"),
        ("0.20.0", case("It fails since 0.21.0", span=Regression(first_failing="0.21.0")), "no"),
        ("0.20.0", case(version="0.18.0", span=Regression(last_working="0.20.0")), "no"),
        ("0.19.0", case(version="0.18.0", span=Regression(last_working="0.20.0")), "yes"),
        ("0.22.0", case(span=Regression(first_failing="0.21.0", fixed_in="0.22.0")), "no"),
        ("main", case(), "unknown"),
        (None, case(), "unknown"),
    ],
)
def test_the_version_is_asked_of_fix_range_and_report(
    version: str | None, given: FailureCase, answer: str
) -> None:
    found = standing(version, given)
    assert found.answer == answer
    assert found.reason


def test_a_report_without_a_release_is_not_placed_by_its_date() -> None:
    for stated in ({}, {"vllm": "main"}):
        given = case()
        undated = replace(given, facts=given.facts.model_copy(update={"versions": stated}))
        assert standing("0.21.0", undated).answer == "unknown"


def test_a_fix_after_which_it_was_seen_is_none() -> None:
    span = Regression(first_failing="0.19.0", still_failing=("0.21.0",), fixed_in="0.20.0")
    assert standing("0.21.0", case(span=span)).answer == "yes"


def test_a_merge_of_unknown_release_is_in_the_second_line_after_it() -> None:
    releases = tuple(map(Version, ("0.20.0", "0.21.0", "0.21.1", "0.22.0")))
    view = FixView(state="merged_unreleased", pr="#9", earliest_possible="0.21.0")
    merged = FixTruth(view, Held(lacking=frozenset(releases[:1]), released=releases))
    found = {
        version: standing(version, case(version="0.19.0", truth=merged, state="closed"))
        for version in ("0.20.0", "0.21.1", "0.22.0")
    }
    assert {version: one.answer for version, one in found.items()} == {
        "0.20.0": "yes",
        "0.21.1": "unknown",
        "0.22.0": "no",
    }
    assert found["0.20.0"].reason == "it is reported on 0.19.0 and fixed later by #9"


def test_what_was_closed_without_a_word_may_still_fail_nearby() -> None:
    closed = case(state="closed")
    assert standing("0.22.0", closed).is_near
    assert not standing("0.30.0", closed).is_near


def test_what_a_robot_closed_is_in_the_versions_that_came_before_it_did() -> None:
    given = case(state="closed", labels=("stale",), kind="wrong_output", unresolved_until="0.23.0")
    assert standing("0.23.0", given).answer == "yes"
    assert standing("0.24.0", given).answer == "unknown"
    assert standing("0.23.0", replace(given, unresolved_until=None)).answer == "unknown"
    assert standing("0.24.0", replace(given, unresolved_until="0.27.0")).answer == "unknown"
    error = case(state="closed", labels=("stale",), unresolved_until="0.23.0")
    assert standing("0.23.0", error).answer == "unknown"


def test_a_patch_has_the_failures_of_the_release_it_mends() -> None:
    given = case(state="closed", patches=("0.21.1",))
    assert standing("0.21.1", given).answer == "yes"
    assert standing("0.21.2", given).answer == "unknown"


def test_a_version_that_works_is_none_on_which_it_is_reported() -> None:
    given = case(span=Regression(last_working="0.21.0"))
    assert standing("0.22.0", given).answer == "unknown"
