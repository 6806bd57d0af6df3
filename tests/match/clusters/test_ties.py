"""What ties two issues to one failure, and what keeps them apart."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.extract.facts import ErrorFact, Facts
from app.match.clusters.ties import FAR_DAYS, NEAR_DAYS, Member, agreements, is_tied, why_apart
from app.match.pairs.features import build_features, message_key
from app.match.pairs.score import load_pair_weights
from app.store.derived.clusters import FailureTraits

DAY = datetime(2026, 3, 1, tzinfo=UTC)
ROTARY = "the rotary table of this zebra model ends before position 40960"
WIDTH = "output width is not divisible by the number of kernel threads"
SAME, LIKELY = load_pair_weights().same_from, load_pair_weights().likely_from


def a_member(number: int = 1, message: str = ROTARY, days: int = 0, title: str = "", **told: Any) -> Member:
    error = ErrorFact(type="ValueError", message=message) if message else None
    facts = Facts(
        number=number, error=error, models=told.pop("models", ()), backends=told.pop("backends", {})
    )
    features = build_features(title or f"Start {number} fails", "", facts, DAY + timedelta(days=days))
    return Member(FailureTraits(number, message=message_key(message), **told), features)


def test_a_score_of_the_same_and_a_claim_in_common_tie() -> None:
    assert is_tied(a_member(1), a_member(2), SAME)


def test_a_score_alone_does_not_tie() -> None:
    one, two = (
        a_member(1, message="", title="Zebra is slow"),
        a_member(2, message="", title="Otter hangs on exit"),
    )

    assert not is_tied(one, two, 0.99)


def test_equal_titles_are_a_claim_unless_they_name_a_test() -> None:
    one = a_member(1, message="", title="Zebra rotary table ends before its last position")
    two = a_member(2, message="", title="Zebra rotary table ends before its last position")
    test = a_member(2, message="", title="Zebra rotary table ends before its last position", names_test=True)

    assert is_tied(one, two, SAME)
    assert not is_tied(one, test, SAME)


def test_a_score_that_is_only_likely_ties_by_the_same_message_alone() -> None:
    other = a_member(2, message=ROTARY.replace("zebra", "otter"), title="Zebra rotary table")
    less = a_member(3, message=f"{WIDTH} and {ROTARY}")

    assert [is_tied(a_member(1), two, LIKELY) for two in (a_member(2), other, less)] == [True, True, False]


def test_a_line_that_unlike_failures_share_needs_more_than_likely() -> None:
    one, two = (a_member(number, generic=True, models=("Qwen/Qwen3-8B",)) for number in (1, 2))

    assert not is_tied(one, two, LIKELY)
    assert is_tied(one, two, SAME)


def test_other_errors_are_apart_and_one_that_tells_none_is_not() -> None:
    assert why_apart(a_member(1), a_member(2, message=WIDTH)) == "they report other errors"
    assert why_apart(a_member(1), a_member(2, message="")) is None


def test_other_platforms_are_apart() -> None:
    on_rocm = a_member(2, title="Zebra fails on ROCm")

    assert why_apart(a_member(1), on_rocm) == "they failed on other platforms"


def test_errors_that_name_other_models_are_apart() -> None:
    one = a_member(1, message="ZebraForCausalLM has no adapter support in this release of the engine")
    two = a_member(2, message="OtterForCausalLM has no adapter support in this release of the engine")

    assert why_apart(one, two) == "their errors name other models"
    assert why_apart(one, one) is None


@pytest.mark.parametrize(
    ("told", "is_late", "reason"),
    [
        ({}, False, "many unlike failures have this line, and no condition agrees"),
        ({"models": ("Qwen/Qwen3-8B",)}, False, None),
        (
            {"models": ("Qwen/Qwen3-8B",)},
            True,
            "many unlike failures have this line, and only their family agrees",
        ),
        ({"models": ("Qwen/Qwen3-8B",), "frame": "moe.py:forward"}, True, None),
        ({"backends": {"attention": ("FLASHINFER",)}}, False, None),
        (
            {"backends": {"executor": ("mp",)}},
            False,
            "many unlike failures have this line, and no condition agrees",
        ),
    ],
)
def test_a_line_that_unlike_failures_share_needs_conditions_in_common(
    told: dict[str, Any], is_late: bool, reason: str | None
) -> None:
    one, two = (a_member(number, generic=True, late=is_late, **told) for number in (1, 2))

    assert why_apart(one, two) == reason


def test_a_condition_that_the_error_itself_names_is_none_in_common() -> None:
    titles = "LoRA kernels run out of memory on start"
    one, two = (a_member(n, title=titles, in_error=("condition.lora",)) for n in (1, 2))
    plain = a_member(3, title=titles)

    assert agreements(plain, plain) == ["title"]
    assert agreements(one, two) == []


@pytest.mark.parametrize(
    ("days", "is_generic", "is_apart"),
    [
        (FAR_DAYS, False, False),
        (FAR_DAYS + 1, False, True),
        (NEAR_DAYS, True, False),
        (NEAR_DAYS + 1, True, True),
    ],
)
def test_the_same_line_of_another_era_is_apart(days: int, is_generic: bool, is_apart: bool) -> None:
    models = ("Qwen/Qwen3-8B",)
    one, two = (a_member(n, days=d, models=models, generic=is_generic) for n, d in ((1, 0), (2, days)))

    assert why_apart(one, two) == (f"{days} days lie between them" if is_apart else None)


def test_what_ties_and_what_keeps_apart_is_the_same_from_both_ends() -> None:
    for one in (a_member(1), a_member(2, message="", title=ROTARY), a_member(3, message=WIDTH, days=400)):
        for two in (a_member(4, message=f"{ROTARY} of it"), a_member(5, generic=True)):
            assert is_tied(one, two, 0.9) == is_tied(two, one, 0.9)
            assert why_apart(one, two) == why_apart(two, one)
