"""Sentences as tokens: names of settings, versions and changes are one token each."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.statements.tokens import MAX_TOKENS, tokenise


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("--enforce-eager", "FLAG"),
        ("`--enforce-eager`", "FLAG"),
        ("VLLM_USE_V1=0", "ENV"),
        ("`export VLLM_USE_V1=0`", "ENV"),
        ("enforce_eager=True", "SETTING"),
        ("tp=1", "SETTING"),
        ("gpu_memory_utilization", "IDENTIFIER"),
        ("vllm==0.8.4", "PIN"),
        ("v0.9.1", "VERSION"),
        ("0.6.3.post1", "VERSION"),
        ("`0.6.3`", "VERSION"),
        ("#12345", "ISSUE"),
        ("2c4f59afc3d5", "COMMIT"),
        ("`2c4f59afc3d5`", "COMMIT"),
        ("A100", "CHIP"),
        ("fp8", "fp8"),
        ("https://example.org/a_b", "URL"),
        ("`engine.step()`", "CODE"),
        ("works", "work"),
        ("disabling", "disabl"),
        ("is", "is"),
    ],
)
def test_a_token_stands_for_what_it_names(word: str, kind: str) -> None:
    assert [token.kind for token in tokenise(word)] == [kind]


def test_a_flag_keeps_its_value_and_leaves_the_next_word() -> None:
    texts = [token.text for token in tokenise("with --max-model-len 4096 it starts")]
    assert texts == ["with", "--max-model-len 4096", "it", "starts"]


@pytest.mark.parametrize("name", ["VLLM_USE_V1=0", "--seed=3", "dtype='half'", "numpy==1.26.4", "tp=1"])
def test_a_value_does_not_hold_the_full_stop_behind_it(name: str) -> None:
    assert [token.text for token in tokenise(f"it works with {name}.")][-2:] == [name, "."]


@given(st.text(max_size=300))
def test_every_token_stands_where_it_says(text: str) -> None:
    tokens = tokenise(text)
    assert len(tokens) <= MAX_TOKENS
    assert all(text[token.start : token.end] == token.text for token in tokens)
    assert all(one.end <= other.start for one, other in pairwise(tokens))
