"""Titles and questions become terms that meet where they mean the same."""

from __future__ import annotations

import pytest

from app.match.headings import Heading, read_heading


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
    told = heading("slow since 0.12.1", "H100", version="0.13.0", kind="slowdown")

    assert told.facts == ("gpu:H100", "architecture:Hopper", "vllm:0.12", "vllm:0.13", "kind:slowdown")


def test_no_failure_is_no_fact() -> None:
    assert heading("a question", kind="none").facts == ()


def test_tags_of_forms_and_words_that_stand_anywhere_are_no_terms() -> None:
    assert list(heading("[Bug]: it is not what we had").terms) == []


def test_a_term_is_shown_as_it_was_written() -> None:
    assert heading("garbled outputs").words["output"] == "outputs"
