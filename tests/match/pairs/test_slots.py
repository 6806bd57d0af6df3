"""What two texts of one template differ in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.match.pairs.slots import differ_in_names, differ_in_words, differ_within

SIZE = "The input size is not aligned with the quantized weight shape."


@pytest.mark.parametrize(
    ("one", "two", "wanted"),
    [
        (SIZE, SIZE.replace("input", "output"), True),
        (
            "'ChatRequest' object has no attribute 'kwargs'",
            "'PoolRequest' object has no attribute 'kwargs'",
            True,
        ),
        ("method (marlin) does not match (gptq)", "method (gptq) does not match (gptq_marlin)", True),
        ("backend cannot start: no sinks", "backend cannot start: wrong head size", True),
        ("Found Tesla P40 which is too old", "Found Tesla P41 which is too old", False),
        ("KeyError: 'layers<layer>.weight'", "KeyError: 'layers<layer2>.weight'", False),
        ("version <n> needs <size>", "version <n2> needs <size>", False),
        ("no attribute 'num_hid", "no attribute 'num_hidden_layers'", False),
        (SIZE, f"{SIZE} I run it on two cards", False),
        (SIZE, SIZE.upper(), False),
        ("", SIZE, False),
    ],
)
def test_messages_differ_if_a_place_has_other_words_not_other_numbers(
    one: str, two: str, wanted: bool
) -> None:
    assert differ_in_words(one, two) is wanted


@pytest.mark.parametrize(
    ("one", "two", "wanted"),
    [
        ("gpt-oss-120b cannot run on A100", "gpt-oss-120b cannot run on H100", True),
        ("GPT-2 flag scale_weights is ignored", "GPTBigCode flag scale_weights is ignored", True),
        ("cannot be served with 0.6.5", "cannot be served with 0.8.5", True),
        ("the answer is HTTP 404 for tools", "the answer is HTTP 400 for tools", True),
        ("crash with 2 cards", "crash with 4 cards", False),
        ("crash while it loads", "crash when it loads", False),
        ("crash of Qwen3-VL", "crash of Qwen3-VL on two cards", False),
    ],
)
def test_titles_differ_if_a_place_has_other_names_versions_or_codes(one: str, two: str, wanted: bool) -> None:
    assert differ_in_names(one, two) is wanted


def test_a_title_around_a_message_does_not_differ_from_it_another_word_inside_does() -> None:
    title = f"Qwen with two cards: {SIZE} Why?"

    assert not differ_within(title, SIZE)
    assert differ_within(title, SIZE.replace("input", "output"))


@given(st.text(max_size=40), st.text(max_size=40))
def test_texts_differ_alike_from_both_ends(one: str, two: str) -> None:
    for differ in (differ_in_words, differ_in_names, differ_within):
        assert differ(one, two) == differ(two, one)
        assert not differ(one, one)
