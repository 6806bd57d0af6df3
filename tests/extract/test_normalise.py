"""Masking: the same failure reads the same on every machine."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.extract.normalise import MAX_MESSAGE_CHARS, mask

CASES = [
    ("illegal address 0x7f31b24b9446", "illegal address <hex>"),
    ("request cmpl-3f2a9c81d0 failed", "request <id> failed"),
    ("actor 123e4567-e89b-12d3-a456-426614174000 died", "actor <id> died"),
    ("connect to 10.1.2.3:8000 refused", "connect to <host> refused"),
    ("cannot bind tcp://127.0.0.1:5557", "cannot bind <host>"),
    ("cannot open /root/.cache/x/y.json", "cannot open <path>"),
    ("no file ~/models/a/config.json", "no file <path>"),
    ("Tried to allocate 20.00 MiB", "Tried to allocate <size>"),
    ("12 bytes and 3GB left", "<size> and <size2> left"),
    ("shape [4, 128, 64] does not fit", "shape <shape> does not fit"),
    ("got torch.Size([2, 3])", "got <shape>"),
    ("tensor on cuda:3", "tensor on <device>"),
    ("KeyError layers.12.mlp.experts.w13_weight", "KeyError layers<layer>.mlp.experts.w13_weight"),
    ("commit 4f5c9d8e7b6a is missing", "commit <hash> is missing"),
    ("needs 40960 but only 28880 fit", "needs <n> but only <n2> fit"),
    ("uses 92.5% of 80", "uses <n>% of <n2>"),
    ("version 0.8.5 is too old", "version <n> is too old"),
    ("scale 1e-05", "scale <n>"),
    ("head_size must be a multiple of 8 and w13_weight too", "head_size must be a multiple of <n> and w13_weight too"),
    ("no NVIDIA GPU with sm_90", "no NVIDIA GPU with sm_90"),
    ("  folds\t its\nblanks  ", "folds its blanks"),
    ("and/or stays", "and/or stays"),
    ("", ""),
]


@pytest.mark.parametrize(("message", "wanted"), CASES)
def test_what_varies_is_masked(message: str, wanted: str) -> None:
    assert mask(message) == wanted


def test_equal_values_keep_equal_placeholders() -> None:
    assert mask("expected 128, got 96, not 128") == "expected <n>, got <n2>, not <n>"


def test_values_of_each_kind_are_counted_apart() -> None:
    assert mask("0xaa1 of 7 and 0xbb2 of 9") == "<hex> of <n> and <hex2> of <n2>"


def test_of_a_very_long_message_the_beginning_is_masked() -> None:
    assert mask("x" * (MAX_MESSAGE_CHARS + 9)) == "x" * MAX_MESSAGE_CHARS


PIECES = [
    "0x7f31", "10.1.2.3:80", "tcp://x", "/a/b/c.py", "20 MiB", "[1, 2]", "cuda:1", "layers.3", "4f5c9d8e7b6a", "12", "3.5",
    "-7", "1e-5", "80%", "word", "<n>", "<path2>", "torch.Size([2])", "cmpl-3f2a9c81d0", "123e4567-e89b-12d3-a456-426614174000",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.sampled_from([" ", ", ", "; ", " of "]))
@example(["12", "word"], " ")
def test_masking_twice_changes_nothing(words: list[str], between: str) -> None:
    once = mask(between.join(words))

    assert mask(once) == once


@given(st.integers(10, 9999), st.integers(10, 9999), st.integers(0, 7), st.integers(0, 7))
def test_two_runs_of_one_failure_are_masked_alike(one: int, two: int, rank: int, other: int) -> None:
    message = "{} tokens exceed the limit on cuda:{} (block 0x{:x})"

    assert mask(message.format(one, rank, one)) == mask(message.format(two, other, two))


@given(st.text(max_size=200))
def test_any_message_can_be_masked(message: str) -> None:
    assert "  " not in mask(message)
