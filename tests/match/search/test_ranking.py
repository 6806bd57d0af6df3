"""From shares to a probability and a band."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.match.search.agreement import UNKNOWN, Agreement
from app.match.search.log_search import Candidate
from app.match.search.ranking import (
    FEATURES,
    ORDER_FEATURES,
    PROSE_FEATURES,
    REFINE_FEATURES,
    REFINED,
    ProseWeights,
    RankWeights,
    Scored,
    band_of,
    features_of,
    load_weights,
    order_candidates,
    order_features,
    prose_features,
    rank_candidates,
    rank_prose,
    refine_features,
    weighted,
)
from app.match.search.terms import CHANNELS, ERROR, FRAME, HEADING, SIGNATURE, TEXT

PROSE = ProseWeights((1.0, 1.0, 1.0), -3.0, 0.6, 0.3)
ORDER, REFINE, CHANCE = ((1.0,) * len(names) for names in (ORDER_FEATURES, REFINE_FEATURES, FEATURES))
PLAIN = RankWeights(ORDER, REFINE, CHANCE, -2.0, 0.8, 0.4, 0.2, 0.02, PROSE)


def a_candidate(number: int, score: float = 1.0, share: float = 0.5) -> Candidate:
    return Candidate((1, number), dict.fromkeys(CHANNELS, score), dict.fromkeys(CHANNELS, share), ())


def ranked(
    items: list[Candidate], weights: RankWeights | None = None, **agreements: Agreement
) -> list[Scored]:
    """The candidates in order; agreements are named after the issue: `n7`."""
    return rank_candidates(items, {(1, int(name[1:])): one for name, one in agreements.items()}, weights)


candidates = st.lists(
    st.builds(a_candidate, st.integers(1, 9), st.floats(0, 500), st.floats(0, 1)),
    max_size=12,
    unique_by=lambda item: item.key,
)


def test_the_shipped_weights_fit_the_features() -> None:
    weights = load_weights()

    assert (len(weights.order), len(weights.refine)) == (len(ORDER_FEATURES), len(REFINE_FEATURES))
    assert len(weights.coefficients) == len(FEATURES)
    assert len(weights.prose.coefficients) == len(PROSE_FEATURES)


def test_the_shipped_bands_are_in_order() -> None:
    weights = load_weights()

    assert 0 < weights.floor < weights.related_from <= weights.likely_from < weights.same_from < 1


@pytest.mark.parametrize(
    ("probability", "wanted"),
    [(1.0, "same"), (0.8, "same"), (0.79, "likely"), (0.4, "likely"), (0.39, "related"), (0.0, "related")],
)
def test_a_band_begins_at_its_threshold(probability: float, wanted: str) -> None:
    assert band_of(probability, PLAIN) == wanted


def test_no_candidates_are_no_matches() -> None:
    assert ranked([]) == []


def test_the_better_candidate_comes_first() -> None:
    scored = ranked([a_candidate(1, 1, 0.1), a_candidate(2, 9, 0.9)], PLAIN)

    assert [item.candidate.key[1] for item in scored] == [2, 1]


def test_a_lead_over_the_next_raises_the_best() -> None:
    alone, contested = ([a_candidate(1, 9)], [a_candidate(1, 9), a_candidate(2, 9)])

    assert ranked(alone, PLAIN)[0].probability > ranked(contested, PLAIN)[0].probability


def test_the_ranking_is_a_weighted_sum_of_scores_and_shares() -> None:
    nothing = dict.fromkeys(CHANNELS, 0.0)
    zero = replace(a_candidate(1), scores=nothing, shares=nothing, rare=0.0, scarce=0.0)
    shares = {TEXT: 0.1, ERROR: 0.2, FRAME: 0.3, SIGNATURE: 0.4}
    each = {"text": 1, "error": 10, "frame": 100, "signature": 1000, "rare": 10_000, "scarce": 100_000}
    weights = [each[name.partition("_")[0]] for name in ORDER_FEATURES]
    full = replace(zero, shares=shares, rare=0.5, scarce=0.6)

    assert weighted(order_features(zero), weights) == 0
    assert weighted(order_features(full), weights) == pytest.approx(65432.1)


def test_of_equals_the_lower_number_comes_first() -> None:
    assert [item.key[1] for item in order_candidates([a_candidate(3), a_candidate(1), a_candidate(2)])] == [
        1,
        2,
        3,
    ]


@pytest.mark.parametrize("name", ["signature", "family", "architecture", "backend", "version"])
def test_of_candidates_alike_in_words_the_one_whose_facts_agree_comes_first(name: str) -> None:
    items = [a_candidate(1), a_candidate(2)]

    assert [item.candidate.key[1] for item in ranked(items, PLAIN, n2=Agreement(**{name: 1.0}))] == [2, 1]


def test_facts_move_no_candidate_up_among_the_first() -> None:
    items = [a_candidate(number, 9.0) for number in range(1, REFINED + 1)] + [a_candidate(99, 1.0)]

    assert ranked(items, PLAIN, n99=Agreement(1.0, 1.0, 1.0, 1.0, 1.0))[-1].candidate.key[1] == 99


def test_a_model_of_another_family_lowers_the_chance() -> None:
    item = a_candidate(1, 9.0, 0.6)

    chances = [ranked([item], n1=Agreement(family=value))[0].probability for value in (-1.0, 0.0, 1.0)]

    assert chances == sorted(set(chances))


def test_who_holds_the_rare_words_comes_first() -> None:
    common, rare = a_candidate(1, 9.0), replace(a_candidate(2, 9.0), rare=1.0, scarce=1.0)

    assert [item.candidate.key[1] for item in ranked([common, rare])] == [2, 1]


def test_a_log_whose_rare_words_stand_nowhere_is_not_known() -> None:
    frames = replace(a_candidate(1, 40, 0.9), rare=0.0, scarce=0.1)

    assert ranked([frames])[0].probability < load_weights().likely_from


def test_a_lead_over_those_that_are_missing_tells_less() -> None:
    alone = replace(a_candidate(1, 9.0), crowd=0.0)

    assert ranked([replace(alone, crowd=50.0)])[0].probability < ranked([alone])[0].probability


def test_a_question_is_ordered_by_heading_and_text_together() -> None:
    text = replace(a_candidate(1, 0), scores={TEXT: 5.0, HEADING: 1.0})
    both = replace(a_candidate(2, 0), scores={TEXT: 4.0, HEADING: 3.0})

    assert [item.candidate.key[1] for item in rank_prose([text, both], PLAIN)] == [2, 1]


def test_a_question_whose_heading_is_covered_is_surer() -> None:
    shares = (replace(a_candidate(1, 3.0), shares={HEADING: share}) for share in (0.2, 0.8))

    low, high = (rank_prose([item], PLAIN)[0].probability for item in shares)

    assert low < high


def test_a_question_is_never_answered_with_the_same_failure() -> None:
    assert {item.band for item in rank_prose([a_candidate(1, 1e9, 1.0)], PLAIN)} == {"likely"}


def test_the_lead_of_a_question_is_a_share_of_its_best_score() -> None:
    ranked = [a_candidate(1, 8.0), a_candidate(2, 6.0)]

    assert [prose_features(ranked, at)[2] for at in (0, 1)] == [0.25, 0.75]


def test_features_stand_in_the_order_of_their_names() -> None:
    item = replace(
        a_candidate(1, 0), shares={TEXT: 0.1, ERROR: 0.2, FRAME: 0.9, SIGNATURE: 0.4}, rare=0.6, scarce=0.7
    )
    told = Agreement(signature=1.0, family=0.5, architecture=-1.0, backend=0.25, version=0.125)
    named = dict(zip(FEATURES, features_of(item, told, 0.0), strict=True))
    refined = dict(zip(REFINE_FEATURES, refine_features(item, told), strict=True))

    assert (named["frame_share"], named["rare_words"], named["scarce_words"]) == (0.9, 0.6, 0.7)
    assert (named["error_and_frames"], named["text_and_frames"]) == pytest.approx((0.18, 0.09))
    assert named["frames_nearly_all"] == pytest.approx(0.1)
    assert [named[f"same_{name}"] for name in ("signature", "family", "architecture", "backend")] == [
        1.0,
        0.5,
        -1.0,
        0.25,
    ]
    assert [refined[name] for name in ("text_share", "same_family", "near_version")] == [0.1, 0.5, 0.125]


def test_a_lead_tells_less_the_longer_it_is() -> None:
    leads = [features_of(a_candidate(1), UNKNOWN, lead)[FEATURES.index("lead")] for lead in (0.0, 1.0, 2.0)]

    assert leads[0] == 0
    assert 0 < leads[2] - leads[1] < leads[1]


def test_sharing_everything_is_the_same_failure() -> None:
    full = replace(a_candidate(1, 40, 1.0), rare=1.0, scarce=1.0)

    assert ranked([full])[0].band == "same"


def test_sharing_nothing_is_hardly_the_same_failure() -> None:
    assert ranked([a_candidate(1, 0, 0.0)])[0].probability < load_weights().likely_from


@given(candidates)
def test_probabilities_are_between_zero_and_one_and_descend(items: list[Candidate]) -> None:
    chances = [item.probability for item in ranked(items)]

    assert [chance for chance in chances if not 0 <= chance <= 1] == []
    assert chances == sorted(chances, reverse=True)


@given(candidates, st.randoms(use_true_random=False))
def test_the_order_of_the_candidates_does_not_change_their_probabilities(
    items: list[Candidate], random
) -> None:
    shuffled = list(items)
    random.shuffle(shuffled)

    assert [item.probability for item in ranked(shuffled)] == [item.probability for item in ranked(items)]
