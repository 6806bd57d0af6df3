"""Learning the curve by which two issues are weighed."""

from __future__ import annotations

import numpy as np

from app.match.pairs.score import AGAINST, PAIR_FEATURES
from app.train.pair_score import RELATED, SAME, UNRELATED, Pairs, figures, fit, held_out, threshold

SIZE = 60
NO_STRANGERS = np.zeros((0, len(PAIR_FEATURES)))


def some_pairs() -> Pairs:
    """Pairs whose messages tell them apart; `words` is made to speak against its sense."""
    dice = np.random.default_rng(3)
    labels = np.tile([SAME, UNRELATED, RELATED], SIZE // 3)
    table = dice.random((SIZE, len(PAIR_FEATURES)))
    table[:, PAIR_FEATURES.index("claim")] += labels == SAME
    table[:, PAIR_FEATURES.index("words")] -= labels == SAME
    return Pairs(table, labels != RELATED, labels, np.arange(SIZE), frozenset())


def test_what_sets_the_same_apart_is_learned_and_nothing_speaks_against_its_sense() -> None:
    pairs = some_pairs()
    coefficients, _ = fit(pairs.table, pairs.labels, NO_STRANGERS)
    found = dict(zip(PAIR_FEATURES, coefficients.tolist(), strict=True))

    assert found["claim"] > 0
    assert found["words"] == 0
    assert all(found[name] <= 0 for name in AGAINST)
    assert all(found[name] >= 0 for name in PAIR_FEATURES if name not in AGAINST)


def test_figures_come_from_folds_that_were_not_learned_from() -> None:
    pairs = some_pairs()
    runs = held_out(pairs, NO_STRANGERS, repeats=2)
    page = figures(runs, np.where(pairs.sharing, runs, -np.inf), pairs.labels, (0.9, 0.5, 0.2))

    assert runs.shape == (2, SIZE)
    assert page["area"] > 0.7
    assert page["same_as_same"] <= page["same_at_all"]


def test_a_threshold_leaves_no_more_than_its_share_above_it() -> None:
    unlike = np.linspace(-3, 3, 101)
    start = threshold(unlike, 0.05)

    assert (1 / (1 + np.exp(-unlike)) >= start).mean() <= 0.05
