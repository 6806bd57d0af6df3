"""Learning the order, the chance and the bands from queries with known answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from app.match.search.agreement import Agreement
from app.match.search.log_query import PARTS, LogQuery
from app.match.search.log_search import Candidate
from app.match.search.ranking import AGAINST, FEATURES, ORDER_FEATURES, RankWeights, rank_candidates
from app.train import log_ranking
from app.train.log_ranking import (
    FirstMatch,
    LabelledQuery,
    above_all_but,
    bands,
    first_matches,
    fit,
    threshold,
)

UNCOMMON = LogQuery({}, is_common=False)


def a_candidate(number: int, share: float) -> Candidate:
    scores, shares = dict.fromkeys(PARTS, 50 * share), dict.fromkeys(PARTS, share)
    return Candidate((1, number), scores, shares, shares, share, (), rare=share, scarce=share)


def an_example(at: int, *, is_known: bool) -> LabelledQuery:
    """A log among four issues; one holds nearly all of it if it is known, none much of it if not."""
    tops = (0.9, 0.35, 0.3, 0.25) if is_known else (0.4, 0.35, 0.3, 0.25)
    numbers = range(10 * at + 1, 10 * at + 5)
    items = tuple(
        a_candidate(number, share - at % 7 / 100) for number, share in zip(numbers, tops, strict=True)
    )
    best = items[0].key
    agreements = {best: Agreement(signature=float(is_known))}
    right = frozenset({best} if is_known else ())
    return LabelledQuery(items, right, 1.0, agreements, str(at), UNCOMMON)


EXAMPLES = [an_example(at, is_known=at % 2 == 0) for at in range(40)]


def firsts_of(*told: tuple[float, bool, bool]) -> list[FirstMatch]:
    return [FirstMatch(str(at), *item) for at, item in enumerate(told)]


def test_what_is_learned_puts_the_right_candidate_first() -> None:
    weights = fit(EXAMPLES)

    shuffled = replace(EXAMPLES[0], candidates=EXAMPLES[0].candidates[::-1])
    ranked = rank_candidates(shuffled.candidates, shuffled.agreements, UNCOMMON, weights)
    assert ranked[0].candidate.key == (1, 1)


def test_no_feature_of_an_order_counts_against_a_candidate() -> None:
    weights = fit(EXAMPLES)

    assert min(weights.order) >= 0
    assert len(weights.order) == len(ORDER_FEATURES)


def test_a_known_log_is_told_a_higher_chance_than_one_that_is_not() -> None:
    firsts = first_matches(EXAMPLES)

    assert min(item.chance for item in firsts if item.is_known) > max(
        item.chance for item in firsts if not item.is_known
    )


def test_a_threshold_keeps_its_precision() -> None:
    right = [(0.9 - at / 100, True, True) for at in range(15)]
    wrong = [(0.5 - at / 100, False, True) for at in range(15)]

    assert threshold(firsts_of(*right, *wrong), 0.95) == pytest.approx(0.76)


def test_a_threshold_is_not_judged_on_a_handful() -> None:
    assert threshold(firsts_of(*[(0.9, True, True)] * 5), 0.95) == 1.1


def test_a_band_lets_no_more_unknown_logs_in_than_it_may() -> None:
    firsts = firsts_of(*((at / 100, False, False) for at in range(100)))

    start = above_all_but(firsts, 0.05)

    assert sum(item.chance >= start for item in firsts) == 5


def test_a_false_match_counts_by_its_weight() -> None:
    heavy, *light = (FirstMatch(str(at), 0.9 - at / 10, False, False, 1.0 if at else 50.0) for at in range(5))

    assert above_all_but([heavy, *light], 0.5) > heavy.chance
    assert above_all_but(light, 0.5) < light[0].chance


def test_logs_of_one_failure_count_as_one() -> None:
    right = [FirstMatch(str(at), 0.9 - at / 1000, True, True) for at in range(200)]
    wrong = [FirstMatch("wrong", 0.95, False, True)] * 20

    assert bands([*right, *wrong])["likely_from"] < 0.9
    assert (
        bands([*right, *(replace(item, group=f"w{at}") for at, item in enumerate(wrong))])["likely_from"]
        > 0.9
    )


def test_bands_are_in_order() -> None:
    limits = bands(first_matches(EXAMPLES))

    assert limits["related_from"] <= limits["likely_from"] <= limits["same_from"]


def test_nothing_counts_the_wrong_way_round() -> None:
    misleading = [
        replace(one, agreements={one.candidates[0].key: Agreement(test=-float(one.is_known))})
        for one in EXAMPLES
    ]

    coefficients = dict(zip(FEATURES, fit(misleading).coefficients, strict=True))

    assert coefficients["foreign_test"] == 0
    assert all(value >= 0 for name, value in coefficients.items() if name not in AGAINST)


def test_a_failure_is_judged_by_what_other_failures_teach(monkeypatch: pytest.MonkeyPatch) -> None:
    again = replace(EXAMPLES[0], group="a log of another release")
    learned: list[Sequence[LabelledQuery]] = []

    def remember(examples: Sequence[LabelledQuery]) -> RankWeights:
        learned.append(examples)
        return fit(examples)

    monkeypatch.setattr(log_ranking, "fit", remember)
    first_matches([*EXAMPLES, again])

    assert {(EXAMPLES[0] in examples, again in examples) for examples in learned} == {
        (True, True),
        (False, False),
    }
