"""How likely two issues report the same failure."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.match.pairs.features import PairFeatures, pack_features, unpack_features
from app.match.pairs.score import (
    AGAINST,
    PAIR_FEATURES,
    band_of_score,
    load_pair_weights,
    pair_features,
    score_pair,
)
from tests.match.pairs.test_features import a_view

GENERIC = "CUDA error: an illegal memory access was encountered"
INSPECTED = "ValueError: architectures of the draft model failed to be inspected in the registry"
RARE = "AssertionError: context_lens.is_contiguous() in paged MQA metadata"

PIECES = (
    "LoRA",
    "CUDA error",
    "prefix caching",
    "quant_method",
    "hangs",
    "Qwen3",
    "on ROCm",
    "max_model_len",
    "wrong output",
)
texts = st.lists(st.sampled_from(PIECES), max_size=6).map(" ".join)


@st.composite
def views(draw: st.DrawFn) -> PairFeatures:
    error = draw(st.sampled_from(["", GENERIC, RARE, "KeyError: 'lm_head'"]))
    view = a_view(
        draw(texts),
        draw(texts),
        error=error,
        models=tuple(draw(st.sets(st.sampled_from(["Qwen3-8B", "gemma-3"])))),
    )
    return replace(view, day=draw(st.none() | st.integers(739_000, 740_000)))


def score(one: PairFeatures, two: PairFeatures) -> float:
    return score_pair(one, two).score


@given(views(), views())
def test_a_pair_is_scored_alike_from_both_ends(one: PairFeatures, two: PairFeatures) -> None:
    there, back = score_pair(one, two), score_pair(two, one)

    assert there == back


@given(views(), views())
def test_a_kept_view_scores_as_the_fresh_one(one: PairFeatures, two: PairFeatures) -> None:
    kept = unpack_features(pack_features(one)), unpack_features(pack_features(two))

    assert score_pair(kept[0], kept[1]) == score_pair(one, two)


def test_the_shipped_weights_fit_the_features_and_speak_in_their_sense() -> None:
    weights = load_pair_weights()
    signs = [-1 if name in AGAINST else 1 for name in PAIR_FEATURES]

    assert len(weights.coefficients) == len(PAIR_FEATURES)
    assert all(weight * sign >= 0 for weight, sign in zip(weights.coefficients, signs, strict=True))
    assert 0 < weights.related_from < weights.likely_from < weights.same_from < 1


@pytest.mark.parametrize(
    ("name", "wanted"), [("same_from", "same"), ("likely_from", "likely"), ("related_from", "related")]
)
def test_a_band_begins_at_its_threshold(name: str, wanted: str) -> None:
    start = getattr(load_pair_weights(), name)

    assert band_of_score(start) == wanted
    assert band_of_score(start - 0.0001) != wanted


def test_below_all_bands_there_is_none() -> None:
    assert band_of_score(0.0) is None


def test_a_repost_is_the_same() -> None:
    view = a_view(
        "[Bug]: FusedMoE quant_method is None with Llama-4",
        "assert self.quant_method is not None",
        error=RARE,
    )

    assert score_pair(view, replace(view, day=(view.day or 0) + 1)).band == "same"


def test_a_repost_with_another_tag_and_an_empty_text_is_linked() -> None:
    view = a_view("[Bug]: FusedMoE quant_method is None with Llama-4", "assert self.quant_method is not None")
    again = a_view("[Usage]: FusedMoE quant_method is None with Llama-4", "")

    assert score_pair(view, again).band in {"same", "likely"}


def test_a_generic_message_of_another_year_model_and_feature_is_not_the_same() -> None:
    one = a_view(
        "[Bug]: Mixtral with --enable-lora crashes",
        "LoRA, TP 8",
        error=GENERIC,
        models=("mistralai/Mixtral-8x7B",),
    )
    two = a_view(
        "[Bug]: Granite Speech crashes",
        "audio requests",
        error=GENERIC,
        models=("ibm-granite/granite-speech",),
    )
    two = replace(two, day=(one.day or 0) + 480)

    assert score_pair(one, two).band is None


def test_a_rare_message_tells_more_than_a_generic_one_of_another_year() -> None:
    def pair(error: str) -> float:
        one = a_view("[Bug]: it crashes", error, error=error)
        return score(one, replace(one, day=(one.day or 0) + 400))

    assert pair(RARE) > pair(GENERIC)


def test_the_same_line_on_another_platform_is_less_alike() -> None:
    cuda = a_view("[Bug]: fails to be inspected", error=INSPECTED)
    rocm = a_view("[AMD] fails to be inspected", error=INSPECTED)

    assert score(cuda, rocm) < score(cuda, cuda)


def test_an_error_class_that_was_renamed_is_no_difference() -> None:
    old = a_view("it crashes", error="RuntimeError: CUDA error: unspecified launch failure")
    new = a_view("it crashes", error="torch.AcceleratorError: CUDA error: unspecified launch failure")

    assert pair_features(old, new)[PAIR_FEATURES.index("other_type")] == 0


def test_a_title_that_tells_the_other_s_message_counts_as_the_message() -> None:
    titled = a_view("[Bug]: context_lens.is_contiguous() assertion in paged MQA metadata")
    logged = a_view("[Bug]: GLM-5 crashes", error=RARE)

    assert pair_features(titled, logged)[PAIR_FEATURES.index("claim")] > 0.5


def test_a_missing_date_is_neither_near_nor_far() -> None:
    one = a_view("it fails")
    nobody_knows = replace(one, day=None)

    assert score(one, one) > score(one, nobody_knows) > score(one, replace(one, day=(one.day or 0) + 900))


def test_the_reason_says_what_is_shared_and_what_is_not() -> None:
    one = a_view("[Bug]: LoRA crashes", error=RARE, models=("Qwen3-8B",))
    two = replace(a_view("[AMD] LoRA crashes", error=RARE, models=("gemma-3",)), day=(one.day or 0) + 3)
    reason = score_pair(one, two).reason

    assert "both with lora" in reason
    assert "3 days apart" in reason
    assert "other models" in reason
    assert "another platform" in reason


def test_every_feature_is_a_number() -> None:
    for other in (a_view(), a_view("LoRA", "text", error=GENERIC)):
        assert all(map(math.isfinite, pair_features(a_view(), other)))
