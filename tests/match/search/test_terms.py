"""Titles and questions become terms that meet where they mean the same.

Which terms a failure is found by.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.log.root_cause import read_errors
from app.match.search.terms import (
    ERROR,
    FRAME,
    MAX_TOKENS,
    SIGNATURE,
    TEXT,
    Heading,
    Terms,
    error_terms,
    frame_terms,
    line_texts,
    message_key,
    read_heading,
    terms_of,
)


def heading(text: str, *gpus: str, version: str | None = None, kind: str | None = None) -> Heading:
    return read_heading(text, gpus=gpus, version=version, kind=kind)


@pytest.mark.parametrize(
    ("one", "other", "term"),
    [
        ("it hangs while decoding", "hanging decoder", "hang"),
        ("caching prefixes", "a cached prefix", "prefix"),
        ("Qwen2.5-VL is broken", "qwen2.5 crashes", "qwen2.5"),
        ("Qwen2.5-VL is broken", "any Qwen model", "qwen"),
        ("since v0.11.2", "on 0.11.2", "0.11.2"),
        ("vllm_flash_attn is missing", "flash attention", "flash"),
        ("输出乱码", "乱码", "乱码"),
    ],
)
def test_words_of_one_stem_are_one_term(one: str, other: str, term: str) -> None:
    assert term in set(heading(one).words) & set(heading(other).words)


@pytest.mark.parametrize(
    ("question", "title", "meaning"),
    [
        ("TTFT doubled", "time to first token grows", "symptom.first_token"),
        ("the server never answers", "[Bug]: engine hangs", "symptom.hang"),
        ("only !!!!! comes back", "nothing but exclamation marks", "symptom.exclamation_marks"),
        ("kvcache too small", "no room for the KV cache", "condition.kv_cache"),
        ("on a GB300", "on Blackwell", "condition.blackwell"),
        ("it is slow", "[Performance]: tensor parallel 2", "symptom.slow"),
    ],
)
def test_texts_that_mean_the_same_share_the_meaning(question: str, title: str, meaning: str) -> None:
    assert meaning in set(heading(question).meanings) & set(heading(title).meanings)


def test_facts_are_told_by_name() -> None:
    found = heading("slow since 0.12.1", "H100", version="0.13.0", kind="slowdown")

    assert found.facts == ("gpu:H100", "architecture:Hopper", "vllm:0.12", "vllm:0.13", "kind:slowdown")


def test_no_failure_is_no_fact() -> None:
    assert heading("a question", kind="none").facts == ()


def test_tags_of_forms_and_words_that_stand_anywhere_are_no_terms() -> None:
    assert list(heading("[Bug]: it is not what we had").terms) == []


def test_a_term_is_shown_as_it_was_written() -> None:
    assert heading("garbled outputs").words["output"] == "outputs"


LOG = """\
Traceback (most recent call last):
  File "{site}/vllm/v1/worker/gpu_worker.py", line {line}, in load_model
  File "{site}/torch/nn/modules/module.py", line {line}, in _call_impl
  File "{site}/vllm/model_executor/layers/linear.py", line {line}, in weight_loader
ValueError: shard {shard} is no multiple of 64
"""
HERE = LOG.format(site="/opt/venv/lib/python3.12/site-packages", line=7, shard=100)
THERE = LOG.format(site="/home/jane/miniconda3/lib/python3.10/site-packages", line=999, shard=36)


def terms(log: str) -> Terms:
    lines, errors = read_errors(log)
    return terms_of(line_texts(lines), errors)


def of_channel(found: Terms, channel: int) -> list[str]:
    return [term for key, term in found if key == channel]


def cause_of(log: str):
    found = read_errors(log)[1].cause
    assert found is not None
    return found


def test_the_same_failure_on_another_machine_has_the_same_terms() -> None:
    assert terms(HERE) == terms(THERE)


def test_words_are_taken_alone_and_in_pairs() -> None:
    assert terms_of(["Cannot load: weights!"], read_errors("")[1]) == {
        (TEXT, "cannot"): 1,
        (TEXT, "load"): 1,
        (TEXT, "weights"): 1,
        (TEXT, "cannot load"): 1,
        (TEXT, "load weights"): 1,
    }


def test_a_word_that_stands_twice_counts_twice() -> None:
    assert terms_of(["again again"], read_errors("")[1])[TEXT, "again"] == 2


@pytest.mark.parametrize("word", ["12345", "8bit", "ab", "x" * 61])
def test_numbers_and_very_short_or_long_words_are_no_terms(word: str) -> None:
    assert terms_of([word], read_errors("")[1]) == {}


def test_the_error_s_masked_words_and_type_are_terms() -> None:
    assert list(error_terms(cause_of(HERE))) == ["shard", "multiple", "shard multiple", "type:ValueError"]


def test_telling_frames_are_terms_alone_and_in_pairs() -> None:
    assert list(frame_terms(cause_of(HERE))) == [
        "gpu_worker.py:load_model",
        "linear.py:weight_loader",
        "gpu_worker.py:load_model > linear.py:weight_loader",
    ]


def test_a_native_fault_s_place_is_its_frame() -> None:
    log = "Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:455 'an illegal memory access was encountered'"

    assert list(frame_terms(cause_of(log))) == ["custom_all_reduce.cuh:455"]


def test_type_and_masked_message_are_one_term() -> None:
    assert message_key(cause_of(HERE)) == "ValueError | shard <n> is no multiple of <n2>"
    assert of_channel(terms(HERE), SIGNATURE) == [message_key(cause_of(THERE))]


def test_a_log_without_an_error_has_words_only() -> None:
    found = terms("INFO 03-14 09:26:53 [x.py:1] Application startup complete.")

    assert {channel for channel, _ in found} == {TEXT}


def test_every_error_of_a_log_gives_terms() -> None:
    found = terms(HERE + "\nKeyError: 'lm_head'\n")

    assert {"type:ValueError", "type:KeyError"} <= set(of_channel(found, ERROR))


def test_where_code_stands_on_disk_is_left_out() -> None:
    assert "jane" not in of_channel(terms(THERE), TEXT)
    assert "linear" in of_channel(terms(THERE), TEXT)


def test_a_very_long_log_gives_the_words_of_its_head_and_its_tail() -> None:
    found = terms_of(["head", "middle " * MAX_TOKENS, "tail"], read_errors("")[1])

    assert {(TEXT, "head"), (TEXT, "tail")} <= set(found)
    assert found[TEXT, "middle"] == MAX_TOKENS - 2


def test_frames_are_counted_once_however_deep_a_recursion() -> None:
    log = HERE.replace("_call_impl", "forward").replace("ValueError", "RecursionError")
    frame = '  File "/x/vllm/model_executor/layers/linear.py", line 7, in weight_loader\n'
    deep = log.replace("RecursionError", frame * 20 + "RecursionError", 1)

    assert terms(deep)[FRAME, "linear.py:weight_loader"] == 1


@given(st.text(max_size=300))
def test_any_log_has_terms_that_are_whole_words(log: str) -> None:
    assert [
        term for term in of_channel(terms(log), TEXT) if len(term.split()) > 2 or term != term.strip()
    ] == []
