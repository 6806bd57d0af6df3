"""Questions in words are told from logs."""

from __future__ import annotations

import pytest

from app.extract.reader import read_log
from app.knowledge.question import MAX_QUESTION_CHARS, is_question


@pytest.mark.parametrize(
    "text",
    [
        "TTFT doubled on GB300 after the update",
        "gibberish output with fp8 kv cache",
        "Why does the server hang\nwhen I send two images?",
    ],
)
def test_words_are_a_question(text: str) -> None:
    assert is_question(read_log(text))


@pytest.mark.parametrize(
    "text",
    [
        "KeyError: 'layers.0.bias'",
        "INFO 04-01 12:00:00 [core.py:396] Initializing a V1 LLM engine (v0.9.1)",
        "(EngineCore_DP0 pid=7) loading weights",
        'Traceback (most recent call last):\n  File "a.py", line 1, in f',
        "slow " * MAX_QUESTION_CHARS,
    ],
)
def test_a_programs_output_is_no_question(text: str) -> None:
    assert not is_question(read_log(text))
