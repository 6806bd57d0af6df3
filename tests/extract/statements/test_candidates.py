"""Spans that could name a change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.statements.candidates import MAX_SPANS, find_spans, may_state
from app.extract.statements.tokens import tokenise


def _texts(sentence: str) -> set[str]:
    tokens = tokenise(sentence)
    return {sentence[tokens[a].start : tokens[b - 1].end] for a, b in find_spans(tokens)}


@pytest.mark.parametrize(
    ("sentence", "change"),
    [
        ("With --enforce-eager it runs fine.", "--enforce-eager"),
        ("After downgrading to 0.8.4 everything works.", "downgrading to 0.8.4"),
        ("Removing the prefix cache solves it", "Removing the prefix cache"),
        ("It only happens without tensor parallelism.", "without tensor parallelism"),
        ("The V0 engine works.", "V0 engine"),
        ("I tried setting VLLM_USE_V1=0, but it still hangs", "setting VLLM_USE_V1=0"),
    ],
)
def test_a_change_is_among_the_spans(sentence: str, change: str) -> None:
    assert change in _texts(sentence)


def test_an_outcome_that_is_denied_begins_no_change() -> None:
    found = _texts("It does not occur with --enforce-eager, and not using LoRA helps")
    assert {"--enforce-eager", "not using LoRA"} <= found
    assert not any(text.startswith("not occur") for text in found)


def test_a_sentence_without_any_outcome_states_nothing() -> None:
    assert may_state(tokenise("With --enforce-eager it runs fine."))
    assert not may_state(tokenise("The log of --enforce-eager is below"))


@given(st.text(alphabet="ab -=_.,`#0V1without", max_size=400))
def test_spans_are_bounded_and_inside(text: str) -> None:
    tokens = tokenise(text)
    spans = find_spans(tokens)
    assert len(spans) <= MAX_SPANS + len(tokens)
    assert all(0 <= start < end <= len(tokens) for start, end in spans)
