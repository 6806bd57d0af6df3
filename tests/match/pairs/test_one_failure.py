"""Which issues may be told as one failure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.match.pairs.features import PairFeatures
from app.match.pairs.one_failure import (
    FAR_DAYS,
    MANY_RELEASES_DAYS,
    RELEASE_DAYS,
    are_apart,
    is_one_failure,
)
from app.match.pairs.score import score_pair
from tests.match.pairs.test_features import a_view

RARE = "AssertionError: context_lens.is_contiguous() in paged MQA metadata"
GENERIC = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"
LATE = "RuntimeError: CUDA error: an illegal memory access was encountered"
COMMON = "ValueError: could not broadcast input array from shape (600,) into shape (512,)"
PLACED = "ValueError: Attempted to assign 12 = 12 multimodal tokens to 40 placeholders"
DUMP = "PyTorch version: 2.4.0\n[pip3] numpy==1.26.4\nGPU models and configuration: GPU 0: NVIDIA H100\n"


def later(view: PairFeatures, days: int) -> PairFeatures:
    return replace(view, day=(view.day or 0) + days)


@pytest.mark.parametrize(
    ("title", "text", "error", "wanted"),
    [
        ("[Bug]: it stops while loading", "", RARE, True),
        ("[Bug]: it stops while loading", DUMP, "", False),
        ("[Bug]: it stops while loading", "", GENERIC, False),
        ("[CI Failure]: Kernels Test 2", "", "", False),
        ("[Bug]: Error executing method 'load_model'. This might cause deadlock", "", "", False),
        ("[Bug]: tokens are lost when a request is aborted", "", "", True),
    ],
    ids=[
        *("a specific message", "a dump", "a message of many failures", "a test's name", "a wrapper"),
        "a specific title",
    ],
)
def test_the_same_and_likely_need_a_failure_that_both_name(
    title: str, text: str, error: str, wanted: bool
) -> None:
    one, two = a_view(title, text, error=error), a_view(title, text, error=error)
    if text or error:
        two = a_view("[Bug]: no answer after an hour", text, error=error)

    assert is_one_failure(one, two) is wanted
    assert (score_pair(one, two).band in {"same", "likely"}) <= wanted


def test_a_message_that_goes_on_is_the_same_message() -> None:
    short = "NameError: name 'rotaryTableOfZebra' is not defined in the registry"
    cut = a_view("it fails", error=short)
    whole = a_view("no start", error=f"{short} (or the native library of the collectives was not found)")

    assert is_one_failure(cut, whole)


def test_messages_that_agree_in_part_need_the_same_title() -> None:
    shared = "ImportError: libzebra rotary kernels cannot be loaded from the wheel"
    one = a_view("[Bug]: zebra rotary kernels missing", error=f"{shared}: symbol of the otter cache")
    two = a_view("[Bug]: zebra rotary kernels missing", error=f"{shared}: file too short on the node")
    titled = a_view("[Bug]: no start in a container", error=f"{shared}: file too short on the node")

    assert is_one_failure(one, two)
    assert not is_one_failure(one, titled)


@pytest.mark.parametrize(
    "error",
    [
        "ValueError: Model architectures ['Qwen2ForCausalLM'] failed to be inspected. Please check the logs",
        "CUDA error: the provided PTX was compiled with an unsupported toolchain for this zebra device",
        "RuntimeError: No CUDA GPUs are available for the zebra rotary kernels of the otter cache",
    ],
)
def test_an_error_that_reports_another_names_no_failure(error: str) -> None:
    one, two = (a_view(title, error=error) for title in ("it fails", "no start in a container"))

    assert not is_one_failure(one, two)


def test_one_template_filled_in_differently_is_another_failure() -> None:
    message = (
        "ValueError: zebra rotary kernels of the {} cache are not aligned with the quantized layer shape"
    )
    one, two = (a_view("it fails", error=message.format(name)) for name in ("input", "output"))

    assert is_one_failure(one, one)
    assert not is_one_failure(one, two)


def test_titles_that_differ_in_a_name_are_other_failures() -> None:
    one, two = (a_view(f"[Bug]: zebra rotary kernels are wrong on {name}") for name in ("A100", "H100"))

    assert is_one_failure(one, one)
    assert not is_one_failure(one, two)


def test_words_that_any_code_may_fail_with_need_a_text_or_title_in_common() -> None:
    error = "IndexError: Dimension out of range (expected to be in range of [-2, 1], but got 2)"
    story = "The connector of the zebra store flattens the blocks before it hands them to the otter cache."
    one, two = a_view("it fails", story, error=error), a_view("no answer", story, error=error)
    elsewhere = a_view("no answer", "with the first request that comes in", error=error)

    assert is_one_failure(one, two)
    assert not is_one_failure(one, elsewhere)


def test_errors_that_name_other_code_are_apart() -> None:
    one, two = (
        a_view("it fails", error=f"AttributeError: the attention layer has no {name} in this release")
        for name in ("rotary_zebra_table", "otter_cache_scale")
    )

    assert are_apart(one, two)
    assert not are_apart(one, one)


@pytest.mark.parametrize(
    ("mine", "theirs", "days", "is_apart"),
    [
        ("Qwen/Qwen3-VL-8B", "Qwen/Qwen2-VL-7B", 90, False),
        ("Qwen/Qwen3-VL-8B", "google/gemma-3-4b-it", 0, True),
        ("Qwen/Qwen3-VL-8B", "", RELEASE_DAYS, False),
        ("Qwen/Qwen3-VL-8B", "", RELEASE_DAYS + 1, True),
    ],
)
def test_an_error_that_every_model_can_have_needs_one_model_family(
    mine: str, theirs: str, days: int, is_apart: bool
) -> None:
    one, two = (a_view("no images", error=PLACED, models=(m,) if m else ()) for m in (mine, theirs))

    assert are_apart(one, later(two, days)) is is_apart


@pytest.mark.parametrize("error", [GENERIC, LATE])
def test_a_line_that_unlike_failures_share_needs_conditions_in_common(error: str) -> None:
    plain = a_view("it fails", error=error)
    of_one_model = a_view("it fails", error=error, models=("Qwen/Qwen3-8B",))
    of_one_feature = a_view("LoRA fails", error=error)

    assert are_apart(plain, plain)
    assert not are_apart(of_one_model, of_one_model)
    assert not are_apart(of_one_feature, of_one_feature)


def test_a_message_that_many_issues_have_is_one_failure_in_one_release_or_text() -> None:
    story = "The scheduler hands out blocks for a sequence that speculative decoding made one longer."
    view = a_view("it fails", story, error=COMMON)
    elsewhere = a_view("no answer", "with the first request that comes in", error=COMMON)

    assert not are_apart(view, later(elsewhere, RELEASE_DAYS))
    assert are_apart(view, later(elsewhere, RELEASE_DAYS + 1))
    assert not are_apart(view, later(view, RELEASE_DAYS + 1))


def test_the_same_line_of_another_era_is_apart() -> None:
    view = a_view("it fails", error=RARE)

    assert not are_apart(view, later(view, FAR_DAYS))
    assert are_apart(view, later(view, FAR_DAYS + 1))


def test_the_same_line_many_releases_later_needs_a_model_family_or_feature_in_common() -> None:
    plain, of_one_model = (
        a_view("it fails", error=RARE),
        a_view("it fails", error=RARE, models=("Qwen/Qwen3-8B",)),
    )

    assert is_one_failure(plain, later(plain, MANY_RELEASES_DAYS))
    assert not is_one_failure(plain, later(plain, MANY_RELEASES_DAYS + 1))
    assert is_one_failure(of_one_model, later(of_one_model, MANY_RELEASES_DAYS + 1))


def test_what_is_one_failure_and_what_is_apart_is_the_same_from_both_ends() -> None:
    views = [
        a_view("it fails", error=error, models=models)
        for error in ("", RARE, f"{RARE} of it", GENERIC, LATE, COMMON, PLACED)
        for models in ((), ("Qwen/Qwen3-8B",))
    ]
    for one in views:
        for two in (later(view, days) for view in views for days in (0, 20, 400)):
            assert is_one_failure(one, two) == is_one_failure(two, one)
            assert are_apart(one, two) == are_apart(two, one)
