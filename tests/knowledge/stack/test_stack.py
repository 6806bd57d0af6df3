"""A stack in an address and out of a log."""

from __future__ import annotations

import pytest

from app.errors import InputError
from app.knowledge.stack.stack import Stack, doubtful_parts, make_stack, parse_stack, read_stack, write_stack

WHOLE = Stack(
    vllm="0.21.0", gpu="H100", model="Qwen/Qwen3-8B", args="--tensor-parallel-size 4 --enforce-eager"
)


@pytest.mark.parametrize(
    ("text", "stack"),
    [
        ("0.21.0~H100~Qwen/Qwen3-8B~--tensor-parallel-size 4 --enforce-eager", WHOLE),
        ("--tensor-parallel-size 4 --enforce-eager~qwen/x~v0.21.0", None),
        ("h100", Stack(gpu="H100")),
        ("4 x H100", Stack(gpu="H100")),
        ("0.7.3~v100", Stack(vllm="0.7.3", gpu="V100")),
        ("4090~0.7.3", Stack(vllm="0.7.3", gpu="RTX 4090")),
        ("model:H100-lookalike", Stack(model="H100-lookalike")),
        ("gpu:Some New Card~0.21.0", Stack(vllm="0.21.0", gpu="Some New Card")),
        ("0.21.0~args:", Stack(vllm="0.21.0", args="")),
        ("", None),
        ("~~", None),
    ],
)
def test_an_address_reads_as_it_is_written(text: str, stack: Stack | None) -> None:
    found = parse_stack(text)
    if stack is not None:
        assert found == stack
    assert parse_stack(write_stack(found)) == found


@pytest.mark.parametrize(
    "text",
    ["0.21.0~0.22.0", "H100~B200", "a/b~c/d", "x" * 601, "0.21.0~args:rm -rf /", "vllm:latest greatest"],
)
def test_what_is_no_stack_is_refused_by_name(text: str) -> None:
    with pytest.raises(InputError, match="stack:"):
        parse_stack(text)


def test_a_form_without_anything_is_no_stack() -> None:
    assert make_stack(" ", "", None, "") is None
    assert make_stack("0.21.0", None, None, "") == Stack(vllm="0.21.0", args="")


def test_a_slip_in_a_stack_is_named_with_what_is_nearest() -> None:
    stack = make_stack(None, "H1000", None, "--tensor-paralel-size 4 --no-enable-x --max-model-len 8")
    options = ("tensor-parallel-size", "max-model-len", "enable-x")
    assert stack is not None
    assert list(doubtful_parts(stack, options)) == [
        "H1000 is no known GPU; the nearest is H100.",
        "--tensor-paralel-size is no known option of vLLM; the nearest is --tensor-parallel-size.",
    ]


def test_a_log_tells_its_stack_without_names_of_the_machine() -> None:
    log = (
        "(APIServer pid=1) INFO 05-02 [utils.py:1] vLLM API server version 0.21.0\n"
        "(APIServer pid=1) INFO 05-02 [utils.py:2] non-default args: {'model_tag': '/home/me/Qwen3-8B', "
        "'host': '10.1.2.3', 'api_key': 'sk-abcdefghijklmnop', 'model': '/home/me/Qwen3-8B', "
        "'tensor_parallel_size': 2, 'enforce_eager': True}\n"
        "GPU 0: NVIDIA H100 80GB HBM3\nValueError: x\n"
    )
    found = read_stack(log)
    assert found is not None
    assert found.vllm == "0.21.0"
    assert found.args == "--tensor-parallel-size 2 --enforce-eager"
    assert "/home" not in write_stack(found)
    assert "sk-" not in write_stack(found)
