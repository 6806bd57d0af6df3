"""From shares to a probability and a band."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.match.search.agreement import UNKNOWN, Agreement
from app.match.search.log_query import PARTS, LogQuery
from app.match.search.log_search import Candidate
from app.match.search.ranking import (
    FEATURES,
    ORDER_FEATURES,
    PROSE_FEATURES,
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
    weighted,
)

PROSE = ProseWeights((1.0, 1.0, 1.0), -3.0, 0.6, 0.3, 4.0)
ORDER, CHANCE = ((1.0,) * len(names) for names in (ORDER_FEATURES, FEATURES))
PLAIN = RankWeights(ORDER, CHANCE, -2.0, 0.8, 0.4, 0.2, 0.02, PROSE)


def a_candidate(number: int, score: float = 1.0, share: float = 0.5) -> Candidate:
    shares = dict.fromkeys(PARTS, share)
    return Candidate((1, number), dict.fromkeys(PARTS, score), shares, shares, share, ())


def ranked(
    items: list[Candidate],
    weights: RankWeights | None = None,
    *,
    is_common: bool = False,
    is_empty: bool = False,
    is_named: bool = False,
    is_refused: bool = False,
    **agreements: Agreement,
) -> list[Scored]:
    """The candidates in order; agreements are named after the issue: `n7`."""
    facts = {(1, int(name[1:])): one for name, one in agreements.items()}
    asked = LogQuery({}, is_common, is_empty, is_named=is_named, is_refused=is_refused)
    return rank_candidates(items, facts, asked, weights)


candidates = st.lists(
    st.builds(a_candidate, st.integers(1, 9), st.floats(0, 500), st.floats(0, 1)),
    max_size=12,
    unique_by=lambda item: item.key,
)


def test_the_shipped_weights_fit_the_features() -> None:
    weights = load_weights()

    assert len(weights.order) == len(ORDER_FEATURES)
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


def test_the_ranking_is_a_weighted_sum_of_known_shares() -> None:
    zero = replace(a_candidate(1, 0, 0.0), rare=0.0, scarce=0.0)
    full = replace(zero, known_shares={part: (at + 1) / 10 for at, part in enumerate(PARTS)}, rare=0.9)
    weights = [10.0**at for at in range(len(ORDER_FEATURES))]

    assert weighted(order_features(zero), weights) == 0
    assert weighted(order_features(full), weights) == pytest.approx(98765432.1)


def test_of_equals_the_newest_comes_first() -> None:
    assert [item.key[1] for item in order_candidates([a_candidate(3), a_candidate(1), a_candidate(2)])] == [
        3,
        2,
        1,
    ]


@pytest.mark.parametrize(
    "name", ["signature", "message", "frame", "family", "architecture", "backend", "version"]
)
def test_of_candidates_alike_in_words_the_one_whose_facts_agree_comes_first(name: str) -> None:
    items = [a_candidate(1), a_candidate(2)]

    assert [item.candidate.key[1] for item in ranked(items, PLAIN, n2=Agreement(**{name: 1.0}))] == [2, 1]


def test_facts_move_no_candidate_up_among_the_first() -> None:
    items = [a_candidate(number, 9.0) for number in range(1, REFINED + 1)] + [a_candidate(0, 1.0)]

    assert ranked(items, PLAIN, n0=Agreement(1.0, 1.0, 1.0, 1.0, 1.0))[-1].candidate.key[1] == 0


def test_a_message_that_unlike_faults_share_is_no_reason_to_be_sure() -> None:
    message_alone = replace(a_candidate(1, 60, 0.0), shares={**dict.fromkeys(PARTS, 0.0), "cause": 1.0})

    chances = [ranked([message_alone], is_common=common)[0].probability for common in (True, False)]

    assert chances[0] < load_weights().likely_from
    assert chances[0] < chances[1]


@pytest.mark.parametrize(("share", "wanted"), [(0.6, "related"), (0.9, "same")])
def test_a_message_that_unlike_faults_share_claims_nothing_unless_most_of_the_log_is_alike(
    share: float, wanted: str
) -> None:
    assert ranked([a_candidate(1, 200.0, share)], PLAIN, is_common=True)[0].band == wanted


@pytest.mark.parametrize(("share", "wanted"), [(0.85, "related"), (0.95, "same")])
def test_a_log_without_an_error_claims_nothing_unless_all_of_it_is_alike(share: float, wanted: str) -> None:
    items = [a_candidate(1, 200.0, share)]
    assert ranked(items, PLAIN, is_common=True, is_empty=True)[0].band == wanted


def test_a_log_that_holds_nothing_but_such_a_message_claims_nothing() -> None:
    bare = a_candidate(1, 200.0, 1.0)
    alone = replace(bare, scores={**dict.fromkeys(PARTS, 0.0), "cause": 20.0})

    assert [ranked([item], PLAIN, is_common=True)[0].band for item in (bare, alone)] == ["same", "related"]


def test_an_issue_about_a_test_run_stands_behind_one_about_a_server() -> None:
    items = [a_candidate(1), a_candidate(2)]

    assert [item.candidate.key[1] for item in ranked(items, PLAIN, n2=Agreement(test=-1.0))] == [1, 2]


def test_where_the_name_is_all_that_is_wrong_an_issue_without_it_is_no_claim() -> None:
    full = a_candidate(1, 200.0, 1.0)
    other = replace(full, names=0.5)

    assert ranked([full], PLAIN, is_named=True)[0].band == "same"
    assert ranked([other], PLAIN, is_named=True)[0].band == "related"
    assert ranked([other], PLAIN)[0].band == "same"


@pytest.mark.parametrize(
    ("cause", "title", "message", "wanted"),
    [
        (1.0, 0.7, 0.0, "same"),
        (1.0, 0.1, 0.8, "same"),
        (1.0, 0.1, 0.2, "related"),
        (0.8, 0.9, 0.8, "related"),
    ],
    ids=["its title", "its own error", "a mention", "other words"],
)
def test_the_words_of_a_refusal_must_be_what_an_issue_is_about(
    cause: float, title: float, message: float, wanted: str
) -> None:
    full = a_candidate(1, 200.0, 1.0)
    item = replace(full, shares={**full.shares, "cause": cause, "title": title})

    assert ranked([item], PLAIN, is_refused=True, n1=Agreement(message=message))[0].band == wanted


def test_a_refusal_that_many_issues_hold_is_usage_and_no_failure_of_one_issue() -> None:
    few, many = ([a_candidate(at, 200.0, 1.0) for at in range(1, last)] for last in (4, 20))

    assert [ranked(items, PLAIN, is_refused=True)[0].band for items in (few, many)] == ["same", "related"]
    assert ranked(many, PLAIN)[0].band == "same"


def test_the_same_message_about_another_thing_is_no_claim() -> None:
    full = a_candidate(1, 200.0, 1.0)

    bands = [ranked([full], PLAIN, n1=Agreement(names=names))[0].band for names in (0.0, -1.0)]

    assert bands == ["same", "related"]


@pytest.mark.parametrize(
    ("nats", "near", "message", "wanted"),
    [
        (30.0, 0.1, 0.0, "related"),
        (30.0, 0.1, -1.0, "related"),
        (90.0, 0.1, -1.0, "same"),
        (30.0, 0.6, -1.0, "same"),
        (30.0, 0.1, 0.5, "same"),
    ],
    ids=["no error is known", "another error", "a long message", "the same code", "its own error"],
)
def test_a_message_that_an_issue_only_mentions_needs_other_evidence(
    nats: float, near: float, message: float, wanted: str
) -> None:
    shares = {**dict.fromkeys(PARTS, 0.1), "cause": 1.0, "near": near}
    item = replace(a_candidate(1, nats, 0.1), shares=shares)
    sure = replace(PLAIN, intercept=9.0)

    assert ranked([item], sure, n1=Agreement(message=message))[0].band == wanted


def test_who_holds_the_rare_words_comes_first() -> None:
    common, rare = a_candidate(1, 9.0), replace(a_candidate(2, 9.0), rare=1.0, scarce=1.0)

    assert [item.candidate.key[1] for item in ranked([common, rare])] == [2, 1]


def test_a_lead_over_those_that_are_missing_tells_less() -> None:
    alone = replace(a_candidate(1, 9.0), crowd=0.0)

    assert ranked([replace(alone, crowd=50.0)])[0].probability < ranked([alone])[0].probability


def test_a_question_is_ordered_by_heading_and_text_together() -> None:
    text = replace(a_candidate(1, 0), scores={"context": 5.0, "title": 1.0})
    both = replace(a_candidate(2, 0), scores={"context": 4.0, "title": 3.0})

    assert [item.candidate.key[1] for item in rank_prose([text, both], PLAIN)] == [2, 1]


def test_a_question_whose_heading_is_covered_is_surer() -> None:
    shares = (replace(a_candidate(1, 3.0), shares={"title": share}) for share in (0.2, 0.8))

    low, high = (rank_prose([item], PLAIN)[0].probability for item in shares)

    assert low < high


def test_a_question_is_never_answered_with_the_same_failure() -> None:
    assert {item.band for item in rank_prose([a_candidate(1, 1e9, 1.0)], PLAIN)} == {"likely"}


def test_the_lead_of_a_question_is_a_share_of_its_best_score() -> None:
    ranked = [a_candidate(1, 8.0), a_candidate(2, 6.0)]

    assert [prose_features(ranked, at)[2] for at in (0, 1)] == [0.25, 0.75]


def test_features_stand_in_the_order_of_their_names() -> None:
    shares = {**dict.fromkeys(PARTS, 0.0), "cause": 0.85, "frames": 0.9}
    scores = {**dict.fromkeys(PARTS, 0.0), "cause": 99.0}
    item = Candidate((1, 1), scores, shares, shares, 0.8, (), rare=0.6, scarce=0.7)
    facts = Agreement(signature=1.0, family=0.5, version=0.125)
    named = dict(zip(FEATURES, features_of(item, facts, 0.0, is_common=False), strict=True))
    common = dict(zip(FEATURES, features_of(item, facts, 0.0, is_common=True), strict=True))
    ordered = dict(zip(ORDER_FEATURES, order_features(item, facts), strict=True))

    assert named["rare_words"] == 0.6
    assert named["everything"] == pytest.approx(1 / 3)
    assert (named["specific"], named["specific_cause"]) == (1.0, 0.85)
    assert named["specific_long"] == pytest.approx(0.5)
    assert (common["specific"], common["specific_cause"], common["specific_long"]) == (0, 0, 0)
    assert (common["common_frames"], common["common_share"], named["common_share"]) == (0.9, 0.8, 0)
    assert named["same_signature"] == 1.0
    assert [ordered[name] for name in ("cause", "same_family", "near_version")] == [0.85, 0.5, 0.125]


def test_a_lead_tells_less_the_longer_it_is() -> None:
    leads = [
        features_of(a_candidate(1), UNKNOWN, lead, is_common=False)[FEATURES.index("lead")]
        for lead in (0.0, 1.0, 2.0)
    ]

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
