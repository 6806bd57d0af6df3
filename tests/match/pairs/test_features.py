"""What one issue is compared by."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.facts import ErrorFact, Facts
from app.extract.text.blocks import read_document
from app.extract.text.document import IssueText
from app.match.pairs.features import (
    MESSAGE,
    TITLE,
    PairFeatures,
    build_features,
    error_types,
    message_key,
    names_of,
    own_text,
    pack_features,
    stem,
    unpack_features,
    words_of,
)
from app.match.search.terms import bare_title

DAY = datetime(2026, 4, 8, tzinfo=UTC)


def a_view(title: str = "", text: str = "", *, error: str = "", **facts: object) -> PairFeatures:
    kind, _, message = error.partition(": ")
    facts = {"is_failure": True, **facts}
    found = Facts(number=1, error=ErrorFact(type=kind, message=message) if error else None, **facts)  # type: ignore[arg-type]
    return build_features(title, text, found, DAY)


@given(st.text(max_size=80), st.text(max_size=300), st.text(max_size=80))
def test_a_packed_view_is_found_again_unchanged(title: str, text: str, message: str) -> None:
    view = a_view(
        title, text, error=f"ValueError: {message}", models=("Qwen/Qwen3-8B",), backends={"moe": ("triton",)}
    )
    again = unpack_features(pack_features(view))

    assert again == view
    assert pack_features(again) == pack_features(view)


def test_an_issue_without_title_and_text_has_a_view_with_nothing_in_it() -> None:
    assert not any(a_view().bags.values())


@pytest.mark.parametrize("title", ["[Bug]: it fails", "[Bug][V1] it fails", "  [Usage]:it fails"])
def test_the_tags_that_forms_put_before_a_title_are_left_out(title: str) -> None:
    assert bare_title(title) == "it fails"


def test_error_classes_that_were_renamed_are_one() -> None:
    old = Facts(number=1, error=ErrorFact(type="RuntimeError", message="CUDA error"))
    new = Facts(number=2, error=ErrorFact(type="torch.AcceleratorError", message="CUDA error"))

    assert error_types(old) == error_types(new) == {"RuntimeError"}


def test_running_out_of_memory_is_a_class_of_its_own() -> None:
    assert "OutOfMemoryError" in error_types(
        Facts(number=1, error=ErrorFact(type="RuntimeError", message="CUDA out of memory."))
    )


def test_what_varies_in_a_message_does_not_make_it_another() -> None:
    assert message_key("Tried to allocate 20.00 MiB at 0x7f00") == message_key(
        "Tried to allocate 7.50 GiB at 0xabcd"
    )


def test_a_message_s_names_are_kept() -> None:
    one, two = a_view(error="KeyError: 'lm_head.weight'"), a_view(error="KeyError: 'embed_tokens.weight'")

    assert one.bags[MESSAGE].keys() != two.bags[MESSAGE].keys()


def test_words_are_lower_case_with_the_parts_of_compound_names_and_pairs_of_chinese_characters() -> None:
    assert words_of("Load spec_decode 显存不") == ["load", "spec_decode", "spec", "decode", "显存", "存不"]


def test_names_of_code_are_told_from_words() -> None:
    assert names_of("Loading FusedMoE with quant_method on sm_90 fails badly") == {
        "fusedmoe",
        "quant_method",
        "sm_90",
    }


@pytest.mark.parametrize(
    ("word", "wanted"), [("crashes", "crash"), ("loading", "load"), ("used", "used"), ("is", "is")]
)
def test_endings_of_inflection_go(word: str, wanted: str) -> None:
    assert stem(word) == wanted


def test_conditions_are_read_from_title_and_text_and_families_from_models() -> None:
    view = a_view(
        "[Bug]: LoRA fails", "with --enable-prefix-caching on ROCm", models=("google/gemma-4-31B-it",)
    )

    assert view.title_conditions == {"condition.lora"}
    assert view.conditions >= {"condition.lora", "condition.prefix_cache"}
    assert view.families == {"family.gemma"}


def test_the_platform_is_cuda_where_nobody_says_another() -> None:
    assert a_view("it fails").platforms == {"cuda"}
    assert a_view("[AMD] it fails").platforms == {"platform.rocm"}
    assert a_view("it fails", gpus=("MI300X",)).platforms == {"platform.rocm"}


def test_a_long_text_gives_no_larger_view_than_a_page() -> None:
    text = " ".join(f"word{number} other_name_{number}" for number in range(20_000))

    assert len(pack_features(a_view("it fails", text))) < 8_000
    assert len(a_view("it fails", text).bags[TITLE]) == 3


def test_an_issue_s_own_text_is_without_its_form_and_its_environment() -> None:
    body = (
        "### Your current environment\n\n```text\nPyTorch version: 2.4.0\n[pip3] numpy==1.26.4\n```\n\n"
        "### 🐛 Describe the bug\n\nTokens are lost.\n"
    )
    text = own_text(read_document(IssueText(1, "it fails", body)))

    assert text.strip() == "Tokens are lost."
