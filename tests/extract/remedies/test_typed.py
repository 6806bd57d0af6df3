"""What to type for a remedy."""

from __future__ import annotations

import pytest

from app.extract.remedies.typed import command_of, is_left_out, is_part


@pytest.mark.parametrize(
    ("action", "line"),
    [
        ("--enforce-eager", "--enforce-eager"),
        ("adding `--enforce-eager`", "--enforce-eager"),
        ("--no-enable-prefix-caching", "--no-enable-prefix-caching"),
        ("VLLM_USE_V1=False", "export VLLM_USE_V1=0"),
        ("NCCL_P2P_DISABLE=1", "export NCCL_P2P_DISABLE=1"),
        ("VLLM_TENSOR_PARALLEL_SIZE=2", "--tensor-parallel-size 2"),
        ("setting VLLM_USE_V1=0", "export VLLM_USE_V1=0"),
        ("`export VLLM_USE_V1=0`", "export VLLM_USE_V1=0"),
        ("pip install vllm==0.8.4", "pip install vllm==0.8.4"),
        ("--max-model-len 4096", "--max-model-len 4096"),
        ("`--quantization awq`", "--quantization awq"),
        ("downgrading vLLM to v0.8.4", "pip install vllm==0.8.4"),
        ("TP=1", "--tensor-parallel-size 1"),
        ("setting `enforce_eager=True`", "--enforce-eager"),
        ("`max_num_seqs=64`", "--max-num-seqs 64"),
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
        "CUDA_VISIBLE_DEVICES=2,1",
        "CUDA_LAUNCH_BLOCKING=1",
        "set NCCL_SOCKET_IFNAME=eth0",
        "NUM_TOKENS=32 * 1024",
        "--a-flag 1 and --another 2",
        "VLLM_USE_V1",
        "torch 2.4.0",
        "setting --kv-cache-dtype",
        "using vLLM 0.7.2",
        "downgrading to v0.8.4",
        "enforce_eager=False",
        "temperature=0",
        "Build with `torch==2.10.0` by running `VLLM_TARGET_DEVICE=cpu`",
    ],
)
def test_words_and_what_is_left_out_cannot(action: str) -> None:
    assert command_of(action) is None


def test_a_version_that_is_known_to_be_ours_can_be_typed_without_its_name() -> None:
    assert command_of("downgrading to v0.8.4", is_ours=True) == "pip install vllm==0.8.4"


@pytest.mark.parametrize(
    ("before", "left_out"),
    [
        ("Either removing `--enable-prefix-caching` or ", True),
        ("It is gone without the flag ", True),
        ("", False),
        ("There is no hang if ", False),
        ("The crash does not occur with ", False),
        ("Disabling TP by setting ", False),
        ("It did not help. Use ", False),
    ],
)
def test_what_the_words_before_a_change_take_away_is_left_out(before: str, left_out: bool) -> None:
    assert is_left_out(before) is left_out


@pytest.mark.parametrize(
    ("before", "action", "behind", "less"),
    [
        ("One node with ", "tp=2", ", pp=4 works", True),
        ("It starts with `--no-enable-a` and `", "--b", "`.", True),
        ("I set `A_B=1` + `", "--b", "` and it works", True),
        ("Going back to ", "0.9", ".* helps", True),
        ("I set `--max-num-seqs 4`, it works when I add `", "--b", "`.", True),
        ("With ", "--b", ", it works", False),
        ("It hangs with `--a-flag`, with `", "--b", "` it starts", False),
        ("`--a-flag` or `", "--b", "` helps, and nothing else", False),
        ("With tp=4 or tp=2 or ", "tp=1", " it works", False),
        ("`--a-flag` is set; after going back to ", "0.9.1", " it works", False),
        ("It hangs, and ", "--b", " helps", False),
    ],
)
def test_one_of_several_changes_is_less_than_what_was_done(
    before: str, action: str, behind: str, less: bool
) -> None:
    assert is_part(before, action, behind) == less
