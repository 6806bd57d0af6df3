"""Backends in use."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.backends import find_backends
from app.extract.commands import read_settings
from app.extract.document import IssueText
from app.extract.environment import read_environment
from app.extract.facts import BACKEND_KEYS
from app.extract.rules import load_rules
from app.extract.sections import read_document


def backends(body: str, title: str = "") -> dict[str, list[str]]:
    document = read_document(IssueText(1, title, body))
    found: dict[str, list[str]] = {}
    for e in find_backends(document, read_settings(document), read_environment(document)):
        found.setdefault(e.field.removeprefix("backends."), []).append(e.value)
    return found


@pytest.mark.parametrize("rule", load_rules("backends"), ids=lambda rule: rule.id)
def test_each_rule_hits_and_misses_and_fills_a_known_key(rule) -> None:
    assert rule.pattern.search(rule.hit)
    assert not rule.pattern.search(rule.miss)
    assert any(word in rule.hit for word in rule["needs"])
    assert rule["key"] in BACKEND_KEYS


@pytest.mark.parametrize(
    ("body", "key", "values"),
    [
        ("INFO cuda.py:157] Using Flash Attention backend on V1 engine.", "attention", ["FLASH_ATTN"]),
        ("INFO selector.py:28] Using FlashAttention backend.", "attention", ["FLASH_ATTN"]),
        ("INFO Using FLASHINFER attention backend out of potential backends: ['FLASHINFER', 'FLASH_ATTN']",
         "attention", ["FLASHINFER"]),
        ("INFO rocm.py:131] Using ROCmFlashAttention backend.", "attention", ["ROCM_FLASH"]),
        ('  File "/x/vllm/attention/backends/xformers.py", line 240, in forward', "attention", ["XFORMERS"]),
        ("export VLLM_ATTENTION_BACKEND=FLASHINFER", "attention", ["FLASHINFER"]),
        ("Using 'FLASHINFER_CUTLASS' NvFp4 MoE backend out of potential backends: []", "moe", ["FLASHINFER_CUTLASS"]),
        ("vllm serve a/b-7b --all2all-backend deepep_low_latency", "all2all", ["deepep_low_latency"]),
        ("vllm serve a/b-7b --quantization awq", "quantization", ["awq"]),
        ("vllm serve a/b-7b-AWQ", "quantization", ["AWQ"]),
        ("with config: model='a/b-7b', quantization=fp8, kv_cache_dtype=fp8_e5m2,", "kv_cache_dtype", ["fp8_e5m2"]),
        ("INFO config.py:813] Defaulting to use mp for distributed inference", "executor", ["mp"]),
        ('  File "/x/vllm/executor/uniproc_executor.py", line 56, in collective_rpc', "executor", ["uniproc"]),
        ("(RayWorkerWrapper pid=419) INFO hello", "executor", ["ray"]),
        ("vllm serve a/b-7b --guided-decoding-backend outlines", "structured_output", ["outlines"]),
        ("""vllm serve a/b-7b --speculative-config '{"method": "eagle3"}'""", "speculative", ["eagle3"]),
        ("vllm serve a/b-7b --enable-lora", "lora", ["true"]),
        ("Initializing a V0 LLM engine (v0.8.2) with config: model='x'", "engine", ["V0"]),
        ("VLLM_USE_V1=1 vllm serve a/b-7b", "engine", ["V1"]),
        ("PyTorch version: 2.5.1+cpu", "platform", ["cpu"]),
        ("Docker image: rocm/vllm:rocm6.4.1_vllm_0.9.0.1", "platform", ["rocm"]),
        ("RuntimeError: CUDA error: an illegal memory access was encountered", "platform", ["cuda"]),
    ],
)  # fmt: skip
def test_a_backend_is_read_from_what_states_it(body: str, key: str, values: list[str]) -> None:
    assert backends(body).get(key) == values


def test_defaults_in_a_dump_are_not_in_use() -> None:
    dump = "args: Namespace(kv_cache_dtype='auto', guided_decoding_backend='xgrammar', quantization=None)"
    assert backends(f"```\n{dump}\n```") == {}


def test_lists_of_possibilities_are_no_evidence() -> None:
    assert "attention" not in backends(
        "ValueError: Unknown attention backend: 'X'. Valid options are: FLASH_ATTN, FLASHINFER"
    )


def test_the_title_picks_the_one_that_fails() -> None:
    body = "VLLM_ATTENTION_BACKEND=FLASH_ATTN vllm serve a/b-7b\nVLLM_ATTENTION_BACKEND=FLASHINFER vllm serve a/b-7b\n"
    assert backends(body, "Speculative decoding + FlashInfer fails")["attention"] == ["FLASHINFER"]


def test_a_title_that_names_both_engines_is_about_v1() -> None:
    assert backends("", "abort differs between v0 and v1")["engine"] == ["V1"]


@given(
    st.lists(
        st.sampled_from(
            [*list(" \n.:='\"-é("), "Using ", "backend", "FLASHINFER", "V1 ", "--quantization fp8"]
        ),
        max_size=60,
    ).map("".join)
)
def test_quotes_equal_their_spans(text: str) -> None:
    document = read_document(IssueText(1, text, text))
    for e in find_backends(document, read_settings(document), read_environment(document)):
        assert document.sources[e.source][e.start : e.end] == e.quote
