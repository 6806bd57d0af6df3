"""Which issues may be told as one failure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.match.pairs.features import PairFeatures
from app.match.pairs.one_failure import (
    FAR_DAYS,
    NEAR_DAYS,
    RELEASE_DAYS,
    agreements,
    is_one_failure,
    why_apart,
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


def test_other_errors_are_apart_and_one_that_tells_none_is_not() -> None:
    one = a_view("it fails", error=RARE)
    other = a_view("it fails", error="ValueError: output width is not a multiple of threads")

    assert why_apart(one, other) == "they report other errors"
    assert why_apart(one, a_view("it fails")) is None


def test_other_platforms_are_apart() -> None:
    one, two = a_view("Zebra fails", error=RARE), a_view("Zebra fails on ROCm", error=RARE)

    assert why_apart(one, two) == "they failed on other platforms"


def test_errors_that_name_other_models_are_apart() -> None:
    one, two = (
        a_view("it fails", error=f"ValueError: {name}ForCausalLM has no adapter support in this release")
        for name in ("Zebra", "Otter")
    )

    assert why_apart(one, two) == "their errors name other models"
    assert why_apart(one, one) is None


def test_errors_that_name_other_code_are_apart() -> None:
    one, two = (
        a_view("it fails", error=f"AttributeError: the attention layer has no {name} in this release")
        for name in ("rotary_zebra_table", "otter_cache_scale")
    )

    assert why_apart(one, two) == "their errors name other code"


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

    reason = "every model can have this error, and no model family agrees"
    assert why_apart(one, later(two, days)) == (reason if is_apart else None)


@pytest.mark.parametrize(
    ("facts", "error", "reason"),
    [
        ({}, GENERIC, "many unlike failures have this line, and no condition agrees"),
        ({"models": ("Qwen/Qwen3-8B",)}, GENERIC, None),
        (
            {"models": ("Qwen/Qwen3-8B",)},
            LATE,
            "many unlike failures have this line, and only their family agrees",
        ),
        ({"models": ("Qwen/Qwen3-8B",), "backends": {"attention": ("FLASHINFER",)}}, LATE, None),
        ({"backends": {"attention": ("FLASHINFER",)}}, GENERIC, None),
        (
            {"backends": {"executor": ("mp",)}},
            GENERIC,
            "many unlike failures have this line, and no condition agrees",
        ),
    ],
)
def test_a_line_that_unlike_failures_share_needs_conditions_in_common(
    facts: dict[str, object], error: str, reason: str | None
) -> None:
    view = a_view("it fails", error=error, **facts)

    assert why_apart(view, view) == reason


def test_a_message_that_many_issues_have_is_one_failure_in_one_release_or_text() -> None:
    story = "The scheduler hands out blocks for a sequence that speculative decoding made one longer."
    view = a_view("it fails", story, error=COMMON)
    elsewhere = a_view("no answer", "with the first request that comes in", error=COMMON)

    assert why_apart(view, later(elsewhere, RELEASE_DAYS)) is None
    assert why_apart(view, later(elsewhere, RELEASE_DAYS + 1))
    assert why_apart(view, later(view, RELEASE_DAYS + 1)) is None


def test_a_condition_that_the_error_itself_names_is_none_in_common() -> None:
    plain = a_view("LoRA kernels run out of memory on start", error=GENERIC)
    named = a_view("LoRA kernels run out of memory on start", error=f"{GENERIC} for the LoRA weights")

    assert agreements(plain, plain) == ["title"]
    assert agreements(named, named) == []


@pytest.mark.parametrize(
    ("days", "error", "is_apart"),
    [
        (FAR_DAYS, RARE, False),
        (FAR_DAYS + 1, RARE, True),
        (NEAR_DAYS, GENERIC, False),
        (NEAR_DAYS + 1, GENERIC, True),
    ],
)
def test_the_same_line_of_another_era_is_apart(days: int, error: str, is_apart: bool) -> None:
    view = a_view("it fails", error=error, models=("Qwen/Qwen3-8B",))

    assert why_apart(view, later(view, days)) == (f"{days} days lie between them" if is_apart else None)


def test_what_is_one_failure_and_what_is_apart_is_the_same_from_both_ends() -> None:
    views = [
        a_view("it fails", error=error, models=models)
        for error in ("", RARE, f"{RARE} of it", GENERIC, LATE, COMMON, PLACED)
        for models in ((), ("Qwen/Qwen3-8B",))
    ]
    for one in views:
        for two in (later(view, days) for view in views for days in (0, 20, 400)):
            assert is_one_failure(one, two) == is_one_failure(two, one)
            assert why_apart(one, two) == why_apart(two, one)
