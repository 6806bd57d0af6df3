"""Remedies: what helped, what helped in part, what was tried in vain."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.extract.workarounds import find_workarounds
from tests.extract.saying import an_issue


def told(body: str, *comments: str, title: str = "EngineCore stops at startup") -> list[tuple[str, str]]:
    return [(w.action, w.outcome) for w, _ in find_workarounds(an_issue(body, *comments, title=title))]


@pytest.mark.parametrize(
    ("said", "action"),
    [
        ("Starting with `--disable-custom-all-reduce` avoids the hang.", "--disable-custom-all-reduce"),
        ("NCCL_CUMEM_ENABLE=0 makes the error go away.", "NCCL_CUMEM_ENABLE=0"),
        ("The model serves correctly with --moe-backend marlin.", "--moe-backend marlin"),
        ("`enforce_eager=True` works for this model.", "enforce_eager=True"),
        ("The crash does not occur with --no-enable-prefix-caching.", "--no-enable-prefix-caching"),
        ("After turning off chunked prefill the crash disappears.", "turning off chunked prefill"),
        ("Removing --kv-cache-dtype fp8 makes it start.", "Removing --kv-cache-dtype fp8"),
        ("Without --enable-expert-parallel there is no crash.", "Without --enable-expert-parallel"),
        ("Workaround: `--skip-mm-profiling`", "--skip-mm-profiling"),
        ("I can serve the same model on a single GPU.", "a single GPU"),
        ("This works when guided decoding is not enabled.", "guided decoding is not enabled"),
        ("The only thing that helped was VLLM_ROCM_USE_AITER=0.", "VLLM_ROCM_USE_AITER=0"),
        (
            "Lowering --gpu-memory-utilization to 0.85 lets it start.",
            "Lowering --gpu-memory-utilization to 0.85",
        ),
        ("关闭 prefix caching 之后恢复正常。", "关闭 prefix caching"),
        ("加上 --enforce-eager 后可以正常运行。", "--enforce-eager"),
    ],
)
def test_a_remedy_that_helped_is_read(said: str, action: str) -> None:
    assert told(said) == [(action, "works")]


@pytest.mark.parametrize(
    ("said", "action"),
    [
        ("Setting --enforce-eager does not help.", "--enforce-eager"),
        ("With NCCL_P2P_DISABLE=1 it still hangs.", "NCCL_P2P_DISABLE=1"),
        ("It happens even with --disable-custom-all-reduce.", "--disable-custom-all-reduce"),
        ("I tried `--max-num-seqs 8`, but it still runs out of memory.", "--max-num-seqs 8"),
        ("Setting VLLM_USE_V1=0 gives the same error.", "VLLM_USE_V1=0"),
        ("Lowered `max_model_len=2048` to no avail.", "max_model_len=2048"),
        ("--no-async-scheduling is no cure.", "--no-async-scheduling"),
        ("试过 --enforce-eager，仍然报错。", "--enforce-eager"),
    ],
)
def test_what_was_tried_in_vain_is_no_remedy(said: str, action: str) -> None:
    assert told(said) == [(action, "fails")]


def test_neither_nor_denies_both() -> None:
    assert {outcome for _, outcome in told("Neither --enforce-eager nor NCCL_P2P_DISABLE=1 helped.")} == {
        "fails"
    }


def test_an_attempt_denied_in_the_next_sentence_is_in_vain() -> None:
    assert told("I tried --enforce-eager. It did not help.") == [("--enforce-eager", "fails")]


@pytest.mark.parametrize(
    "said",
    [
        "--no-enable-prefix-caching reduces the frequency of failures.",
        "`mm_processor_cache_gb=0` works but fails for video input.",
    ],
)
def test_a_remedy_with_a_hole_is_partial(said: str) -> None:
    assert [outcome for _, outcome in told(said)] == ["partial"]


@pytest.mark.parametrize(
    "said",
    [
        "Could we disable the custom all-reduce by default?",
        "Is there any workaround for --enable-lora?",
        "Perhaps --enforce-eager avoids the crash.",
        "--enable-lora does not work with pipeline parallelism.",
        "The engine core starts with tensor_parallel_size=1.",
        "I started the server with --max-num-seqs 64 and it crashed.",
        "It works fine without any errors.",
        "`--kv-cache-dtype fp8` throws an exception, it works with auto.",
        "### Suggested fix\nSetting block_size=1 fixes the crash.",
        "- [x] Make sure you already searched for relevant issues, --enforce-eager works",
    ],
)
def test_what_nobody_tried_is_no_remedy(said: str) -> None:
    assert told(said) == []


@pytest.mark.parametrize("title", ["[Feature]: a new backend", "[RFC]: hidden states", "[New Model]: M-7B"])
def test_a_request_has_no_remedies(title: str) -> None:
    assert told("It works with --enforce-eager.", title=title) == []


def test_a_list_below_the_heading_workarounds_is_read_line_by_line() -> None:
    body = "### Workarounds\n- Use V0 (`VLLM_USE_V1=0`)\n- Truncate inputs to find a length that fits\n"
    assert told(body) == [("VLLM_USE_V1=0", "works"), ("Truncate inputs", "works")]


def test_a_section_of_failed_workarounds_is_in_vain() -> None:
    assert told("### Workarounds tried (all failed)\n- `--shm-size 32g`\n") == [("--shm-size 32g", "fails")]


def test_of_two_commands_the_difference_is_the_remedy() -> None:
    body = (
        "Crashes (default):\n\nvllm serve org/m-7b \\\n  --tensor-parallel-size 8 \\\n  --kv-cache-dtype auto\n\n"
        "Workaround (another backend):\n\nvllm serve org/m-7b \\\n  --tensor-parallel-size 8 \\\n"
        "  --moe-backend triton \\\n  --kv-cache-dtype auto\n"
    )
    assert told(body) == [("--moe-backend triton", "works")]


def test_going_back_to_a_version_counts_if_it_helped() -> None:
    assert told("Rolling back to v0.17.0 resolves it.") == [("Rolling back to v0.17.0", "works")]


def test_a_later_comment_confirms_or_refutes() -> None:
    document = an_issue("--enforce-eager avoids the crash.", "works for me, thanks", "did not help here")
    (remedy, _), *_ = find_workarounds(document)
    assert (remedy.confirmed_by, remedy.refuted_by) == (1, 1)


def test_the_same_flag_told_twice_is_one_remedy() -> None:
    document = an_issue("--enforce-eager avoids the crash.", "`enforce_eager=True` works here too.")
    ((remedy, _),) = find_workarounds(document)
    assert (remedy.action, remedy.confirmed_by) == ("--enforce-eager", 1)


def test_who_says_it_is_kept() -> None:
    document = an_issue("It hangs.", "--no-async-scheduling avoids the hang.", roles=("MEMBER",))
    ((remedy, evidence),) = find_workarounds(document)
    assert (remedy.by, remedy.source, evidence.source) == ("maintainer", "comment:100", "comment:100")


WORDS = st.sampled_from(
    ["--enforce-eager ", "it works ", "does not help", "workaround: ", "\n", "\r\n", "```", "### Workaround\n",
     "VLLM_USE_V1=0 ", "but ", "，", "没有用", "🐛 ", ". ", "`", "vllm serve m --x 1 \\\n", "(", "tried "]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(WORDS | st.text(max_size=12), max_size=30).map("".join))
def test_every_action_is_a_quote_whatever_the_text(body: str) -> None:
    document = an_issue(body, body)
    for remedy, evidence in find_workarounds(document):
        quote = document.sources[evidence.source][evidence.start : evidence.end]
        assert evidence.quote == quote == remedy.action
