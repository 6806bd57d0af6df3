"""Small bases weigh words as a full one does.

What a search may read, and what terms tell.
"""

from __future__ import annotations

import numpy as np
import pytest

from app.match.search.bm25 import (
    ISSUES,
    affordable,
    information,
    load_background,
    with_background,
)
from app.match.search.terms import ERROR, TEXT
from app.store.derived.search_index import term_id

COMMON, RARE = term_id(TEXT, "model"), term_id(TEXT, "quokkapouch")
IDS = np.array(sorted([COMMON, RARE]), dtype=np.int64)


def counts(held: int, size: int) -> dict[int, float]:
    found, _ = with_background(IDS, np.full(2, held), size)
    return dict(zip(IDS.tolist(), found.tolist(), strict=True))


def test_a_full_base_is_weighed_by_itself_alone() -> None:
    held = np.array([3, 7])

    assert with_background(IDS, held, ISSUES) == (held, ISSUES)


def test_in_a_small_base_a_common_word_is_common_and_a_rare_one_rare() -> None:
    found = counts(1, 80)

    assert found[COMMON] > 1_000
    assert found[RARE] == 1


def test_the_share_of_the_background_falls_as_the_base_grows() -> None:
    found = [counts(1, size)[COMMON] for size in (0, 5_000, 10_000, ISSUES)]

    assert found == sorted(found, reverse=True)
    assert found[-1] == 1


def test_a_small_base_counts_as_one_of_usual_size() -> None:
    _, size = with_background(IDS, np.zeros(2), 80)

    assert size >= ISSUES


def test_the_shipped_counts_are_plausible() -> None:
    counts, issues = load_background()

    assert 1 <= min(counts.values()) <= max(counts.values()) <= issues * 1.05
    assert issues >= ISSUES


def test_terms_of_one_text_in_two_channels_are_counted_apart() -> None:
    ids = np.array([term_id(TEXT, "memory"), term_id(ERROR, "memory")])

    (one, other), _ = with_background(ids, np.zeros(2), 0)

    assert one > other > 0


FREQUENCIES = {1: 2, 2: 3, 3: 5}


@pytest.mark.parametrize(("most", "chosen"), [(10, [1, 2, 3]), (9, [1, 2]), (5, [1, 2]), (4, [1]), (0, [1])])
def test_terms_are_taken_in_order_until_the_budget_is_spent(most: int, chosen: list[int]) -> None:
    assert affordable([1, 2, 3], FREQUENCIES, most) == chosen


def test_no_terms_cost_nothing() -> None:
    assert affordable([], FREQUENCIES, 10) == []


def test_a_rare_term_tells_more_than_a_common_one_and_an_impossible_one_nothing() -> None:
    rare, common, everywhere, beyond = information(np.array([1, 50, 100, 101]), 100)

    assert rare > common > everywhere > 0
    assert beyond == 0
