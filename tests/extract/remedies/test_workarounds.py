"""Remedies: what helped, what helped in part, what was tried in vain."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.remedies.workarounds import find_repeats, find_workarounds
from tests.extract.saying import an_issue


def told(body: str, *comments: str, title: str = "EngineCore stops at startup") -> list[tuple[str, str]]:
    return [(w.action, w.outcome) for w, _ in find_workarounds(an_issue(body, *comments, title=title))]


@pytest.mark.parametrize(
    ("said", "action"),
    [
        ("Starting with `--disable-custom-all-reduce` avoids the hang.", "--disable-custom-all-reduce"),
        ("NCCL_CUMEM_ENABLE=0 makes the error go away.", "NCCL_CUMEM_ENABLE=0"),
        ("The model serves correctly with --moe-backend marlin.", "--moe-backend marlin"),
        ("The crash does not occur with --no-enable-prefix-caching.", "--no-enable-prefix-caching"),
        ("After turning off chunked prefill the crash disappears.", "turning off chunked prefill"),
        ("Removing --kv-cache-dtype fp8 makes it start.", "Removing --kv-cache-dtype fp8"),
        ("Without --enable-expert-parallel there is no crash.", "Without --enable-expert-parallel"),
        ("Workaround: `--skip-mm-profiling`", "--skip-mm-profiling"),
        ("I can serve the same model on a single GPU.", "a single GPU"),
        ("The only thing that helped was VLLM_ROCM_USE_AITER=0.", "VLLM_ROCM_USE_AITER=0"),
        (
            "Lowering --gpu-memory-utilization to 0.85 lets it start.",
            "Lowering --gpu-memory-utilization to 0.85",
        ),
        ("关闭 prefix caching 之后恢复正常。", "关闭 prefix caching"),
        ("加上 --enforce-eager 后可以正常运行。", "--enforce-eager"),
        ("When prefix caching is disabled, everything works as expected.", "prefix caching is disabled"),
        (
            "The hang is not there any more; this error does not occur when using a single GPU.",
            "a single GPU",
        ),
        ("With TP = 1, both models return correct output.", "TP = 1"),
        ("When switching back to V0 it works fine.", "switching back to V0"),
        ("It crashes with mp but works fine when ray is specified instead.", "ray is specified instead"),
        ("When I disable speculative decoding, the same prompt works.", "disable speculative decoding"),
        (
            "This was resolved by modifying the `is_neuron()` check in `setup.py`.",
            "modifying the `is_neuron()` check",
        ),
        ("A clean reinstall fixed everything.", "clean reinstall"),
        ("For now I pinned numpy to 1.26.4.", "pinned numpy to 1.26.4"),
        ("把 dtype 改成 float16 就正常了。", "dtype 改成 float16"),
        ("But once I add --kv-cache-dtype fp8, it seems to return to normal.", "--kv-cache-dtype fp8"),
        ("Current work-around:\nTurn it off with VLLM_ROCM_USE_AITER_MHA=0\n", "VLLM_ROCM_USE_AITER_MHA=0"),
    ],
)
def test_a_remedy_that_helped_is_read(said: str, action: str) -> None:
    ((found, outcome),) = told(said)
    assert action in found
    assert len(found) <= len(action) + 20
    assert outcome != "fails"


def test_of_two_remedies_told_as_a_choice_both_are_read() -> None:
    output = "Running with `--disable-custom-all-reduce` or setting NCCL_P2P_DISABLE=1 resolves the issue."
    assert told(output) == [("--disable-custom-all-reduce", "works"), ("NCCL_P2P_DISABLE=1", "works")]


def test_a_request_tells_only_its_writers_own_way_out() -> None:
    own = "My current workaround is\n1. lower the rank\n2. disable the cache in the loader\n\nThanks."
    title = "[Feature]: Support ranks above 64"
    assert [action for action, _ in told(own, title=title)] == [
        "lower the rank",
        "disable the cache in the loader",
    ]
    assert told("Setting --max-lora-rank 64 works.", title=title) == []


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


@pytest.mark.parametrize(
    "said",
    [
        "--no-enable-prefix-caching reduces the frequency of failures.",
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
        "Guided decoding with --enable-lora is not working as expected.",
        "We will work on making --enable-lora fast.",
        "The server does not seem to work properly with --enable-lora.",
        "It worked fine in vllm 0.6.2 but fails in 0.6.3.",
        "This problem does not happen in 0.7.3.",
        "When we run inference with --enable-lora, the server responds with an internal error.",
        "vLLM loads the model with max_seq_len=16384 and ignores mine.",
        "The model works fine with the official inference code.",
        "The server starts with no issue.",
        "This happens in the middle or after several batches completed successfully.",
        "It did not load the weights with the Marlin kernel properly.",
        "user@host:~$ VLLM_USE_MODELSCOPE=true vllm serve org/it-works-7b",
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


def test_going_back_to_a_version_counts_if_it_helped() -> None:
    assert told("Rolling back to v0.17.0 resolves it.") == [("Rolling back to v0.17.0", "works")]


def test_a_later_comment_confirms_or_refutes() -> None:
    document = an_issue("--enforce-eager avoids the crash.", "works for me, thanks", "did not help here")
    (remedy, _), *_ = find_workarounds(document)
    assert (remedy.confirmed_by, remedy.refuted_by) == (1, 1)


def test_a_remedy_is_refuted_by_another_name_of_it() -> None:
    document = an_issue("It works fine with eager mode.", "Setting enforce_eager=True did not help here.")
    ((remedy, _),) = find_workarounds(document)
    assert (remedy.confirmed_by, remedy.refuted_by) == (0, 1)


@pytest.mark.parametrize(
    ("said", "count"),
    [
        (
            "It stops in the V0 engine and works fine there with VLLM_USE_V1=0. It works fine when using V0.",
            1,
        ),
        ("TP=1 works. With a single GPU it works fine.", 1),
    ],
)
def test_two_names_of_one_change_are_one_remedy(said: str, count: int) -> None:
    assert len(told(said)) == count


def test_a_solution_counts_only_where_it_is_said_to_be_solved() -> None:
    body = "**Solution:**\nModify `cmake/cpu_extension.cmake` to use the absolute path\n"
    assert told(body) == []
    assert [outcome for _, outcome in told(body, title="Solved: the build fails")] == ["works"]


def test_of_an_attempt_s_words_the_later_failure_in_another_set_up_is_no_denial() -> None:
    output = "Using TP=2 works fine, but when trying to mix two kinds of cards, it fails."
    assert [outcome for _, outcome in told(output)] == ["works"]


def test_confidence_is_the_chance_of_being_right() -> None:
    clear, _ = find_workarounds(an_issue("Starting with `--enforce-eager` fixes the crash."))[0], None
    vague = find_workarounds(an_issue("With a single CPX partition it works as expected."))
    assert clear[1].confidence >= 0.8
    assert all(0.3 <= evidence.confidence < clear[1].confidence for _, evidence in vague)


@pytest.mark.parametrize(
    "said",
    [
        "解决了这个问题。",
        pytest.param("Setting VLLM_USE_V1=0 works around it. ", marks=pytest.mark.long),
        "It worked in 0.6.1 but fails in 0.6.2. ",
        "| a | b | c |\n",
        pytest.param("it works with X if I use Y, ", marks=pytest.mark.long),
        pytest.param("works `with ", marks=pytest.mark.long),
        "vllm serve m --x 1\nworks:\n",
    ],
)
def test_endless_talk_is_read_in_bounded_time(said: str) -> None:
    document = an_issue((said * (2**18 // len(said))), title="It stops")
    started = time.process_time()
    find_workarounds(document)
    assert time.process_time() - started < 5


def test_the_same_flag_told_twice_is_one_remedy() -> None:
    document = an_issue(
        "--enforce-eager avoids the crash.", "Setting `enforce_eager=True` fixes the crash for me too."
    )
    ((remedy, _),) = find_workarounds(document)
    assert (remedy.action, remedy.confirmed_by) == ("--enforce-eager", 1)


def test_who_says_it_is_kept() -> None:
    document = an_issue("It hangs.", "--no-async-scheduling avoids the hang.", roles=("MEMBER",))
    ((remedy, evidence),) = find_workarounds(document)
    assert (remedy.by, remedy.source, evidence.source) == ("maintainer", "comment:100", "comment:100")


WORDS = st.sampled_from(
    [
        "--enforce-eager ",
        "it works ",
        "does not help",
        "workaround: ",
        "\n",
        "\r\n",
        "```",
        "### Workaround\n",
        "VLLM_USE_V1=0 ",
        "but ",
        "，",
        "没有用",
        "🐛 ",
        ". ",
        "`",
        "vllm serve m --x 1 \\\n",
        "(",
        "tried ",
    ]
)


def test_every_place_that_states_a_remedy_is_evidence_of_it() -> None:
    document = an_issue(
        "Starting with `--enforce-eager` fixes the crash.\n\nTL;DR: `--enforce-eager` works fine."
    )
    ((remedy, evidence),) = find_workarounds(document)
    (again,) = find_repeats(document)
    assert again.value == evidence.value == remedy.action
    assert again.start > evidence.start


@given(st.lists(WORDS | st.text(max_size=12), max_size=30).map("".join))
def test_every_action_is_a_quote_whatever_the_text(body: str) -> None:
    document = an_issue(body, body)
    for remedy, evidence in find_workarounds(document):
        quote = document.sources[evidence.source][evidence.start : evidence.end]
        assert evidence.quote == quote == remedy.action


@pytest.mark.parametrize(
    ("said", "action"),
    [
        ("I install transformers==4.47.1 instead and it solves that problem.", "transformers==4.47.1"),
        ("Without chunked prefill I get the correct output.", "Without chunked prefill"),
        ("Reverting to 0.8.4 brings back the old speed.", "Reverting to 0.8.4"),
        ("The hang is gone after removing line 12, would be great to have it merged.", "removing line 12"),
        ("My fix was to set OMP_NUM_THREADS=1.", "OMP_NUM_THREADS=1"),
        ("tp=1: OK, tp=2: crash", "tp=1"),
        ("| --enforce-eager | works |", "--enforce-eager"),
        ("I solved this problem by setting NCCL_P2P_DISABLE=1.", "NCCL_P2P_DISABLE=1"),
    ],
)
def test_other_ways_of_telling_a_cure(said: str, action: str) -> None:
    assert told(said) == [(action, "works")]


@pytest.mark.parametrize(
    "said",
    [
        "In that mode everything works.",
        "The image of the docs is not properly shown with --enforce-eager.",
        "I used to run the image of the vendor and it was working fine up to 0.7.3.",
        "Long context under expert parallelism: fine on 0.9, dies on 0.10.",
        "We ended the test by removing it.",
        "I use --num-scheduler-steps here. When I remove it, I no longer have the same error.",
    ],
)
def test_words_that_name_no_change_are_no_remedy(said: str) -> None:
    assert told(said) == []


@pytest.mark.parametrize(
    "said",
    [
        "With --enforce-eager it works for a while, then crashes again.",
        "Restarting the server helps, but after an hour the error is back.",
    ],
)
def test_a_cure_that_does_not_last_is_partial(said: str) -> None:
    assert [outcome for _, outcome in told(said)] == ["partial"]


def test_but_behind_anything_is_no_contrast() -> None:
    assert told("We had no other choice but to disable the prefix cache.") == [
        ("disable the prefix cache", "works")
    ]


def test_an_action_ends_before_a_sign_that_opens_something_else() -> None:
    body = "The container `vllm/vllm-openai:v0.9.1` (the older one) works fine, v0.9.2 crashes."
    found = find_workarounds(an_issue(body))

    assert [item.action for item, _ in found if item.action.endswith(("(", "` ("))] == []
    assert [body[evidence.start : evidence.end] for _, evidence in found] == [
        evidence.quote for _, evidence in found
    ]
