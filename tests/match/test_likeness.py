"""From shares to a probability and a band."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.match.candidates import Candidate
from app.match.likeness import (
    FEATURES,
    PROSE_FEATURES,
    RANK_FEATURES,
    ProseWeights,
    Weights,
    band_of,
    features_of,
    load_weights,
    prose_features,
    rank_candidates,
    rank_prose,
    rank_score,
)
from app.match.terms import CHANNELS, ERROR, FRAME, SIGNATURE, TEXT

PROSE = ProseWeights((1.0, 1.0, 1.0), -3.0, 0.6, 0.3)
PLAIN = Weights((1.0,) * len(RANK_FEATURES), (1.0,) * len(FEATURES), -2.0, 0.8, 0.4, 0.2, 0.02, PROSE)


def a_candidate(number: int, score: float = 1.0, share: float = 0.5) -> Candidate:
    return Candidate((1, number), dict.fromkeys(CHANNELS, score), dict.fromkeys(CHANNELS, share), ())


candidates = st.lists(
    st.builds(a_candidate, st.integers(1, 9), st.floats(0, 500), st.floats(0, 1)), max_size=12, unique_by=lambda item: item.key
)


def test_the_shipped_weights_fit_the_features() -> None:
    weights = load_weights()

    assert (len(weights.rank), len(weights.coefficients)) == (len(RANK_FEATURES), len(FEATURES))
    assert len(weights.prose.coefficients) == len(PROSE_FEATURES)


def test_the_shipped_bands_are_in_order() -> None:
    weights = load_weights()

    assert 0 < weights.floor < weights.related_from <= weights.likely_from < weights.same_from < 1


@pytest.mark.parametrize(
    ("probability", "wanted"), [(1.0, "same"), (0.8, "same"), (0.79, "likely"), (0.4, "likely"), (0.39, "related"), (0.0, "related")]
)  # fmt: skip
def test_a_band_begins_at_its_threshold(probability: float, wanted: str) -> None:
    assert band_of(probability, PLAIN) == wanted


def test_no_candidates_are_no_matches() -> None:
    assert rank_candidates([]) == []


def test_the_better_candidate_comes_first() -> None:
    scored = rank_candidates([a_candidate(1, 1, 0.1), a_candidate(2, 9, 0.9)], PLAIN)

    assert [item.candidate.key[1] for item in scored] == [2, 1]


def test_a_lead_over_the_next_raises_the_best() -> None:
    alone, contested = ([a_candidate(1, 9)], [a_candidate(1, 9), a_candidate(2, 9)])

    assert rank_candidates(alone, PLAIN)[0].probability > rank_candidates(contested, PLAIN)[0].probability


def test_the_ranking_is_a_weighted_sum_of_scores_and_shares() -> None:
    zero = replace(a_candidate(1), scores=dict.fromkeys(CHANNELS, 0.0), shares=dict.fromkeys(CHANNELS, 0.0))
    shares = {TEXT: 0.1, ERROR: 0.2, FRAME: 0.3, SIGNATURE: 0.4}
    weights = [{"text": 1, "error": 10, "frame": 100, "signature": 1000}[name.partition("_")[0]] for name in RANK_FEATURES]

    assert rank_score(zero, weights) == 0
    assert rank_score(replace(zero, shares=shares), weights) == pytest.approx(432.1)


def test_a_question_is_ordered_by_the_words_of_the_text_alone() -> None:
    frames = replace(a_candidate(1, 0), scores={TEXT: 5.0, ERROR: 90.0, FRAME: 90.0, SIGNATURE: 90.0})
    words = replace(a_candidate(2, 0), scores={TEXT: 6.0, ERROR: 0.0, FRAME: 0.0, SIGNATURE: 0.0})

    assert [item.candidate.key[1] for item in rank_prose([frames, words], PLAIN)] == [2, 1]


def test_a_question_is_never_answered_with_the_same_failure() -> None:
    assert {item.band for item in rank_prose([a_candidate(1, 1e9, 1.0)], PLAIN)} == {"likely"}


def test_the_lead_of_a_question_is_a_share_of_its_best_score() -> None:
    ranked = [a_candidate(1, 8.0), a_candidate(2, 6.0)]

    assert [prose_features(ranked, at)[2] for at in (0, 1)] == [0.25, 0.75]


def test_features_stand_in_the_order_of_their_names() -> None:
    item = replace(a_candidate(1, 0), shares={TEXT: 0.1, ERROR: 0.2, FRAME: 0.3, SIGNATURE: 0.4})
    named = dict(zip(FEATURES, features_of(item, 0), strict=True))

    assert [named[f"{name}_share"] for name in ("text", "error", "frame", "signature")] == [0.1, 0.2, 0.3, 0.4]


def test_the_weakest_of_error_and_frames_is_a_feature() -> None:
    item = replace(a_candidate(1), shares={TEXT: 0.0, ERROR: 0.7, FRAME: 0.2, SIGNATURE: 0.0})

    assert features_of(item, 0)[FEATURES.index("weakest_channel")] == 0.2


def test_sharing_everything_is_the_same_failure() -> None:
    full = replace(a_candidate(1, 40, 1.0))

    assert rank_candidates([full])[0].band == "same"


def test_sharing_nothing_is_hardly_the_same_failure() -> None:
    assert rank_candidates([a_candidate(1, 0, 0.0)])[0].probability < load_weights().likely_from


@given(candidates)
def test_probabilities_are_between_zero_and_one_and_descend(items: list[Candidate]) -> None:
    chances = [item.probability for item in rank_candidates(items)]

    assert [chance for chance in chances if not 0 <= chance <= 1] == []
    assert chances == sorted(chances, reverse=True)


@given(candidates, st.randoms(use_true_random=False))
def test_the_order_of_the_candidates_does_not_change_their_probabilities(items: list[Candidate], random) -> None:
    shuffled = list(items)
    random.shuffle(shuffled)

    assert [item.probability for item in rank_candidates(shuffled)] == [item.probability for item in rank_candidates(items)]
