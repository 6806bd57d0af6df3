"""What to type for a remedy."""

from __future__ import annotations

import pytest

from app.extract.remedies.typed import command_of


@pytest.mark.parametrize(
    ("action", "line"),
    [
        ("--enforce-eager", "--enforce-eager"),
        ("adding `--enforce-eager`", "--enforce-eager"),
        ("--no-enable-prefix-caching", "--no-enable-prefix-caching"),
        ("setting VLLM_USE_V1=0", "export VLLM_USE_V1=0"),
        ("`export VLLM_USE_V1=0`", "export VLLM_USE_V1=0"),
        ("pip install vllm==0.8.4", "pip install vllm==0.8.4"),
        ("--max-model-len 4096", "--max-model-len 4096"),
        ("`--quantization awq`", "--quantization awq"),
        ("downgrading vLLM to v0.8.4", "pip install vllm==0.8.4"),
    ],
)
def test_one_named_change_can_be_typed(action: str, line: str) -> None:
    assert command_of(action) == line


@pytest.mark.parametrize(
    "action",
    [
        "without --enable-prefix-caching",
        "removing --enforce-eager",
        "a smaller batch",
        "--a-flag 1 and --another 2",
        "VLLM_USE_V1",
        "torch 2.4.0",
        "setting --kv-cache-dtype",
        "using vLLM 0.7.2",
    ],
)
def test_words_and_what_is_left_out_cannot(action: str) -> None:
    assert command_of(action) is None
