"""What nearness in meaning counts in the order of answers is learned, and is nothing where it does not help."""

from __future__ import annotations

import numpy as np

from app.train.question_ranking import Scores, first_right, learn_meaning


def question(words: list[float], near: list[float], right: int | None) -> Scores:
    return np.array(words), np.array(near), np.arange(len(words)) == (-1 if right is None else right)


def test_the_first_right_answer_counts_from_one() -> None:
    asked = question([9.0, 8.0, 1.0], [0.0, 2.0, 0.0], 1)
    assert (first_right(asked, 0.0), first_right(asked, 1.0)) == (2, 1)
    assert first_right(question([9.0], [0.0], None), 1.0) is None


def test_the_weight_is_the_least_that_puts_right_answers_first() -> None:
    helped = question([9.0, 7.5, 1.0], [0.0, 1.0, 0.0], 1)
    harmed = question([9.0, 6.0, 1.0], [0.0, 1.0, 0.0], 0)
    assert learn_meaning([helped, harmed]) == 2.0
    assert learn_meaning([harmed]) == 0.0
    assert learn_meaning([question([9.0], [0.0], None)]) == 0.0
