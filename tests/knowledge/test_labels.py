"""Titles and errors are shown without Markdown."""

import pytest

from app.knowledge.labels import heading


@pytest.mark.parametrize(
    ("title", "plain"),
    [
        ("Running **Qwen2.5-VL** with `--dtype half` fails", "Running Qwen2.5-VL with --dtype half fails"),
        ("``x``: `a` and `b`", "x: a and b"),
        ("f(**kwargs) and g(**kwargs) lose __init__", "f(**kwargs) and g(**kwargs) lose __init__"),
        ("ValueError | `x` is <n>, not `y", "ValueError | x is <n>, not y"),
        ("cannot find `y'", "cannot find `y'"),
        ("2 ** 3 ** 4", "2 ** 3 ** 4"),
        (
            "--kv-cache-memory-bytes` + `cudagraph_mode=PIECEWISE",
            "--kv-cache-memory-bytes + cudagraph_mode=PIECEWISE",
        ),
        (
            "not enough values to unpack (expected 2, got 1) \\`\\`\\`",
            "not enough values to unpack (expected 2, got 1) ",
        ),
        ("without LoRA** produces", "without LoRA produces"),
        ("generate(**kwargs) fails", "generate(**kwargs) fails"),
    ],
)
def test_a_heading_has_no_marks_of_code_or_bold_text(title: str, plain: str) -> None:
    assert heading(title) == plain
