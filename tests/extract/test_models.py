"""Models being served when it fails."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.commands import read_settings
from app.extract.document import IssueText
from app.extract.models import find_models, name_in
from app.extract.sections import read_document


def models(body: str, title: str = "") -> list[str]:
    document = read_document(IssueText(1, title, body))
    return [e.value for e in find_models(document, read_settings(document))]


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"), ("/data/models/Qwen3-8B/", "Qwen3-8B"), ("Qwen3-8B", "Qwen3-8B"),
        ("/cache/models--Qwen--Qwen3-8B/snapshots/0e9e39f249a16976918f6564b8830bc894c89659/", "models--Qwen--Qwen3-8B"),
        ("/kaggle/input/gemma-2-9b/transformers/default/1", "gemma-2-9b"), ("./out/q3-lora/checkpoint-400", "q3-lora"),
        ("https://huggingface.co/Qwen/Qwen3-8B", "Qwen/Qwen3-8B"), ("/models/x-Q4_K_M.gguf", "x-Q4_K_M.gguf"),
    ],
)  # fmt: skip
def test_a_value_gives_its_telling_part(value: str, name: str) -> None:
    found = name_in(value)
    assert found is not None
    assert found[0] == name
    assert value[found[1] :].startswith(name)


@pytest.mark.parametrize(
    "value", ["/model", "$MODEL", "<model>", "${model_path}", "vllm", "/path/to/model", ""]
)
def test_placeholders_name_nothing(value: str) -> None:
    assert name_in(value) is None


def test_a_command_is_believed_before_the_log_and_the_prose() -> None:
    body = "Gemma-3-27b works.\n```\nvllm serve Qwen/Qwen3-8B\n```\nwith config: model='/apps/svr/model-1',"
    assert models(body) == ["Qwen/Qwen3-8B"]


def test_draft_models_are_loaded_too() -> None:
    assert models("vllm serve org/big-70b --speculative-model org/small-1b") == [
        "org/big-70b",
        "org/small-1b",
    ]
    command = """vllm serve org/big-70b --speculative-config '{"method": "eagle3", "model": "org/head-1b"}'"""
    assert models(command) == ["org/big-70b", "org/head-1b"]


def test_an_anonymous_mount_gives_way_to_the_title_or_the_served_name() -> None:
    command = "vllm serve /model --served-model-name Qwen3-8B"
    assert models(command) == ["Qwen3-8B"]
    assert models("vllm serve /model", "Qwen/Qwen3-14B fails") == ["Qwen/Qwen3-14B"]


def test_a_title_is_completed_from_the_body() -> None:
    assert models("Runs Qwen/Qwen3-Next-80B-A3B-Instruct.", "Crash with Qwen3-Next-80B") == [
        "Qwen/Qwen3-Next-80B-A3B-Instruct"
    ]


def test_a_stated_line_is_read() -> None:
    assert models("Environment\n\n- **Model**: DeepSeek-R1-0528-FP4 (NVFP4)\n") == ["DeepSeek-R1-0528-FP4"]


@pytest.mark.parametrize(
    "text", ["KeyError in Phi3ForCausalLM", "a step 3 of 5", "edit qwen2_5_vl.py", "vllm serve command fails"]
)
def test_classes_files_and_words_are_no_models(text: str) -> None:
    assert models(text, text) == []


@given(
    st.lists(
        st.sampled_from([*list("/-.~$ \n\"'é7b"), "--model ", "Qwen/Qwen3-8B", "model=", "vllm serve "]),
        max_size=60,
    ).map("".join)
)
def test_quotes_equal_their_spans(text: str) -> None:
    document = read_document(IssueText(1, text, text))
    for evidence in find_models(document, read_settings(document)):
        assert (
            document.sources[evidence.source][evidence.start : evidence.end]
            == evidence.quote
            == evidence.value
        )
