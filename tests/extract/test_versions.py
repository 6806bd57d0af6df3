"""The versions it fails with."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.document import IssueText
from app.extract.environment import read_environment
from app.extract.facts import VERSION_KEYS
from app.extract.rules import load_rules
from app.extract.sections import read_document
from app.extract.versions import find_versions

DUMP = (
    "PyTorch version: 2.6.0+cu124\nCUDA used to build PyTorch: 12.4\nPython version: 3.12.9 (main, Feb  5 2025)\n"
    "Nvidia driver version: 550.54.15\n[pip3] transformers==4.51.1\nvLLM Version: 0.8.4\n"
)


def versions(body: str, title: str = "") -> dict[str, str]:
    document = read_document(IssueText(1, title, body))
    found = find_versions(document, read_environment(document))
    return {e.field.removeprefix("versions."): e.value for e in found}


@pytest.mark.parametrize("rule", load_rules("versions"), ids=lambda rule: rule.id)
def test_each_rule_hits_and_misses_and_fills_a_known_key(rule) -> None:
    assert rule.pattern.search(rule.hit)
    assert not rule.pattern.search(rule.miss)
    assert any(word in rule.hit for word in rule["needs"])
    assert rule["key"] in VERSION_KEYS


def test_a_dump_gives_all_of_them() -> None:
    assert versions(DUMP) == {
        "vllm": "0.8.4", "torch": "2.6.0+cu124", "cuda": "12.4", "python": "3.12.9", "transformers": "4.51.1",
        "driver": "550.54.15",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("body", "title", "version"),
    [
        (DUMP, "v0.8.3 fails to load", "0.8.3"),
        ("INFO Initializing a V1 LLM engine (v0.7.3) with config: model='x'\n" + DUMP, "", "0.7.3"),
        ("Environment\n- **vLLM version**: v0.11.2.dev340+ge5a621b72\n", "", "0.11.2.dev340+ge5a621b72"),
        ("docker run vllm/vllm-openai:v0.6.2 --model x", "", "0.6.2"),
        ("image rocm/vllm:rocm6.4.1_vllm_0.9.0.1_20250605", "", "0.9.0.1"),
        ("pip install vllm==0.6.3.post1", "", "0.6.3.post1"),
        ("vllm                    0.9.2\n", "", "0.9.2"),
        ("I run vllm 0.1.dev20073+g8e685d198 here", "", "0.1.dev20073+g8e685d198"),
        ("", "Error after upgrade 0.6.2->0.6.3", "0.6.3"),
        ("", "drop between versions 0.19.1 and 0.20.1", "0.20.1"),
        ("", "works on 0.27, crashes on v0.28.0", "0.28.0"),
        ("0.21.0 is fast; 0.22.0 is slow.", "", "0.22.0"),
        ("built from the latest main branch", "", "main"),
        ("reinstalled vllm with commit " + "d0a7a2769d" * 4, "", "d0a7a2769d" * 4),
    ],
)
def test_the_version_that_fails_is_taken(body: str, title: str, version: str) -> None:
    assert versions(body, title)["vllm"] == version


@pytest.mark.parametrize(
    "text",
    ["mistralai/Mistral-7B-Instruct-v0.2", "gpu_memory_utilization 0.95", "temperature 0.8", "CMake version 3.22.1",
     "FlashInfer 0.6.11 and 0.6.12 are slow", "llm-compressor version: 0.8.1", "listens on 0.0.0.0", "0.26 MB",
     "sglang 0.4.6 is faster", "flashinfer-python 0.2.5"],
)  # fmt: skip
def test_version_traps_are_not_vllm(text: str) -> None:
    assert "vllm" not in versions(text, text)


def test_the_dump_adds_the_commit_to_the_same_version() -> None:
    assert (
        versions("vLLM API server version 0.5.4\nvLLM Version: 0.5.4@1f26efb\nOS: x\n")["vllm"]
        == "0.5.4@1f26efb"
    )


def test_cuda_comes_from_the_torch_build_if_nothing_else_says_it() -> None:
    assert versions("We use torch 2.9.0+cu129 there.")["cuda"] == "12.9"


def test_python_is_not_read_from_a_path() -> None:
    assert "python" not in versions('  File "/usr/lib/python3.8/threading.py", line 932, in run')


@given(
    st.lists(
        st.sampled_from([*list(" .,;:-+>\nv0123é"), "vllm ", "0.9.1", "torch ", "CUDA ", "works"]),
        max_size=60,
    ).map("".join)
)
def test_quotes_equal_their_spans(text: str) -> None:
    document = read_document(IssueText(1, text, text))
    for e in find_versions(document, read_environment(document)):
        assert document.sources[e.source][e.start : e.end] == e.quote
