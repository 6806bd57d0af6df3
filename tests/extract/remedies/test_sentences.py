"""What a remedy is said to cost."""

from __future__ import annotations

import pytest

from app.extract.remedies.sentences import MAX_COST_CHARS, cost_of


@pytest.mark.parametrize(
    ("passage", "cost"),
    [
        ("VLLM_USE_V1=0 works but is 30 % slower.", "30 % slower"),
        ("It runs with --enforce-eager, much slower though", "much slower"),
        ("Disabling it reduces throughput by 20 %.", "reduces throughput by 20 %"),
        ("works, with a performance hit", "performance hit"),
        ("It helps, at the cost of prefix caching.", "at the cost of prefix caching"),
        ("Without graphs it uses more memory", "uses more memory"),
    ],
)
def test_a_cost_is_told_in_its_own_words(passage: str, cost: str) -> None:
    assert cost_of(passage) == cost


@pytest.mark.parametrize(
    "passage",
    [
        "",
        "--enforce-eager works",
        "It works without any performance loss.",
        "no slower than before",
        "it isn't slower",
    ],
)
def test_a_denied_cost_or_none_is_none(passage: str) -> None:
    assert cost_of(passage) is None


def test_a_long_cost_is_cut() -> None:
    assert len(cost_of("at the cost of " + "all the things " * 20) or "") <= MAX_COST_CHARS
