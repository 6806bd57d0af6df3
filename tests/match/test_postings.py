"""What a search may read, and what terms tell."""

from __future__ import annotations

import numpy as np
import pytest

from app.match.postings import affordable, information

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
