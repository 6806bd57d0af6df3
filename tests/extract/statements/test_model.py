"""What the learned weights make of sentences; those below are our own and clear."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.statements.features import Hint, Mention, Sort, Surroundings
from app.extract.statements.model import (
    decide_roles,
    load_weights,
    locate_mentions,
    log_odds,
    read_statements,
)

BUG = Surroundings("[Bug]: server hangs with CUDA graphs", previous="The server hangs at startup.")


def test_chances_mean_something() -> None:
    weights = load_weights("remedies")
    assert weights.calibrated(0.05) < 0.5 < weights.calibrated(0.95)
    assert weights.calibrated(0.05, is_failure=True) < 0.5 < weights.calibrated(0.95, is_failure=True)
    assert log_odds(0.5) == pytest.approx(0.0)


@given(st.text(max_size=200))
def test_statements_lie_in_their_sentence_and_apart(text: str) -> None:
    found = read_statements(text, BUG)
    assert all(0 <= item.start < item.end <= len(text) and 0.0 <= item.chance <= 1.0 for item in found)
    places = sorted((item.start, item.end) for item in found)
    assert all(one[1] <= other[0] for one, other in pairwise(places))


def test_a_cure_is_likelier_than_the_same_words_as_a_set_up() -> None:
    cure = read_statements("Setting --enforce-eager fixes the issue and it works fine.", BUG)
    set_up = read_statements("I start the server with --enforce-eager and it crashes.", BUG)
    best = max((item.chance for item in set_up if item.label != "fails"), default=0.0)
    assert cure[0].label == "works"
    assert cure[0].chance > max(0.5, best)


def test_what_was_tried_in_vain_fails() -> None:
    found = read_statements("I tried --enforce-eager, but it did not help, same error.", BUG)
    assert found[0].label == "fails"


def test_a_version_has_the_role_that_its_clause_gives() -> None:
    text = "It works in 0.6.1 but fails after upgrading to 0.6.2."
    mentions = [
        Mention(version, text.index(version), text.index(version) + 5, "ours")
        for version in ("0.6.1", "0.6.2")
    ]
    said = locate_mentions(text, mentions, BUG, (), 0)
    assert [role for role, _ in decide_roles(said)] == ["last_working", "first_failing"]


def test_a_version_of_another_package_has_a_role_only_where_a_hint_is_about_it() -> None:
    text = "It works in 0.6.1 with torch 2.4.0 and fails in 0.6.2."
    sorts: dict[str, Sort] = {"0.6.1": "ours", "2.4.0": "other", "0.6.2": "ours"}
    mentions = [Mention(v, text.index(v), text.index(v) + 5, sort) for v, sort in sorts.items()]
    hint = Hint(text.index("2.4.0"), text.index("2.4.0") + 5, "first_failing")

    def located(hints: Sequence[Hint], *, with_others: bool = False) -> list[str]:
        found = locate_mentions(text, mentions, BUG, hints, 0, with_others=with_others)
        return [one.mention.value for one in found]

    assert located(()) == ["0.6.1", "0.6.2"]
    assert located((hint,)) == located((), with_others=True) == list(sorts)
