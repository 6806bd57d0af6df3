"""Backends in use."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.facts import BACKEND_KEYS
from app.extract.fields.backends import find_backends
from app.extract.fields.environment import read_environment
from app.extract.fields.settings import read_settings
from app.extract.rules.rules import load_rules
from app.extract.text.blocks import read_document
from app.extract.text.document import IssueText


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
    assert rule["key"] in BACKEND_KEYS


@pytest.mark.parametrize(
    ("body", "key", "values"),
    [
        ("INFO cuda.py:157] Using Flash Attention backend on V1 engine.", "attention", ["FLASH_ATTN"]),
        ("INFO selector.py:28] Using FlashAttention backend.", "attention", ["FLASH_ATTN"]),
        (
            "INFO Using FLASHINFER attention backend out of potential backends: ['FLASHINFER', 'FLASH_ATTN']",
            "attention",
            ["FLASHINFER"],
        ),
        ("INFO rocm.py:131] Using ROCmFlashAttention backend.", "attention", ["ROCM_FLASH"]),
        ('  File "/x/vllm/attention/backends/xformers.py", line 240, in forward', "attention", ["XFORMERS"]),
        ("export VLLM_ATTENTION_BACKEND=FLASHINFER", "attention", ["FLASHINFER"]),
        (
            "Using 'FLASHINFER_CUTLASS' NvFp4 MoE backend out of potential backends: []",
            "moe",
            ["FLASHINFER_CUTLASS"],
        ),
        ("vllm serve a/b-7b --all2all-backend deepep_low_latency", "all2all", ["deepep_low_latency"]),
        ("vllm serve a/b-7b --quantization awq", "quantization", ["awq"]),
        ("vllm serve a/b-7b-AWQ", "quantization", ["AWQ"]),
        (
            "with config: model='a/b-7b', quantization=fp8, kv_cache_dtype=fp8_e5m2,",
            "kv_cache_dtype",
            ["fp8_e5m2"],
        ),
        ("INFO config.py:813] Defaulting to use mp for distributed inference", "executor", ["mp"]),
        (
            '  File "/x/vllm/executor/uniproc_executor.py", line 56, in collective_rpc',
            "executor",
            ["uniproc"],
        ),
        ("(RayWorkerWrapper pid=419) INFO hello", "executor", ["ray"]),
        ("vllm serve a/b-7b --guided-decoding-backend outlines", "structured_output", ["outlines"]),
        ("""vllm serve a/b-7b --speculative-config '{"method": "eagle3"}'""", "speculative", ["eagle3"]),
        ("vllm serve a/b-7b --enable-lora", "lora", ["true"]),
        ("Initializing a V0 LLM engine (v0.8.2) with config: model='x'", "engine", ["V0"]),
        ("VLLM_USE_V1=1 vllm serve a/b-7b", "engine", ["V1"]),
        ("INFO [tpu.py:51] Using Pallas V1 backend.", "attention", ["PALLAS"]),
        ("Forcing kv cache block size to 64 for FlashMLA backend.", "attention", ["FLASHMLA"]),
        ('File "/x/xformers/ops/fmha/__init__.py", line 9, in f', "attention", ["XFORMERS"]),
        ("(VllmWorkerProcess pid=41) INFO hello", "executor", ["mp"]),
        ('File "/x/vllm/engine/ray_utils.py", line 31, in execute_method', "executor", ["ray"]),
        ("WARNING [backend_guidance.py:86] parser error", "structured_output", ["guidance"]),
        ("the schema has features not supported by xgrammar", "structured_output", ["xgrammar"]),
        (
            'File "/x/vllm/model_executor/layers/quantization/gptq.py", line 9, in apply',
            "quantization",
            ["gptq"],
        ),
        ("ERROR [core.py:396] stopped", "engine", ["V1"]),
        ("It fails on ROCm V1: nothing answers.", "engine", ["V1"]),
        ("engine with config: device_config=cuda,", "platform", ["cuda"]),
        ("docker run --gpus all vllm/vllm-openai", "platform", ["cuda"]),
        ("PyTorch version: 2.5.1+cpu", "platform", ["cpu"]),
        ("Docker image: rocm/vllm:rocm6.4.1_vllm_0.9.0.1", "platform", ["rocm"]),
        ("RuntimeError: CUDA error: an illegal memory access was encountered", "platform", ["cuda"]),
    ],
)
def test_a_backend_is_read_from_what_states_it(body: str, key: str, values: list[str]) -> None:
    assert backends(body).get(key) == values


def test_defaults_in_a_dump_are_not_in_use() -> None:
    dump = "args: Namespace(kv_cache_dtype='auto', guided_decoding_backend='xgrammar', quantization=None)"
    assert backends(f"```\n{dump}\n```") == {}


def test_only_known_quantisations_are_read_from_flags() -> None:
    assert "quantization" not in backends("vllm serve a/b-7b --quantization && curl localhost")
    assert "quantization" not in backends("--quantization GPU")


def test_what_is_said_to_be_gone_is_not_in_use() -> None:
    assert "attention" not in backends("", "Release drops FlashInfer on old cards")


def test_a_tpu_with_a_cpu_build_of_torch_is_a_tpu() -> None:
    assert backends("PyTorch version: 2.6.0+cpu\nOS: x\n\nWe serve on TPU v6e.")["platform"] == ["tpu"]


def test_the_words_of_a_proposal_put_nothing_in_use() -> None:
    assert backends("On V1 the draft model proposes.", "[RFC]: new proposers") == {}


def test_the_title_of_a_wish_only_names_what_is_wanted() -> None:
    assert backends("Please add it.", "[Feature]: fp8 KV cache for TRITON_MLA") == {}
    assert backends("Please add it.", "[Feature]: health checks for V1") == {"engine": ["V1"]}


@pytest.mark.parametrize(
    ("body", "key", "values"),
    [
        ("It stops with TRITON_ATTN on Turing.", "attention", ["TRITON_ATTN"]),
        ("The FlashInfer backend stops. It works on FLASH_ATTN.", "attention", ["FLASHINFER"]),
        ("Two nodes on the Ray backend.", "executor", ["ray"]),
        ("MoE backend: FLASHINFER_TRTLLM", "moe", ["FLASHINFER_TRTLLM"]),
        ("Crashes with MTP speculative decoding.", "speculative", ["MTP"]),
        ("The EAGLE draft model is wrong.", "speculative", ["EAGLE"]),
    ],
)
def test_what_the_author_runs_is_read_from_his_words(body: str, key: str, values: list[str]) -> None:
    assert backends(body, "[Bug]: stops").get(key, []) == values


def test_building_a_wheel_runs_no_executor() -> None:
    assert "executor" not in backends("copying vllm/engine/ray_utils.py -> build/lib/vllm/engine")


def test_confidence_tells_places_apart() -> None:
    document = read_document(IssueText(1, "AWQ stops", "vllm serve a/b-7b --kv-cache-dtype fp8"))
    found = find_backends(document, read_settings(document), read_environment(document))
    by_field = {e.field: e.confidence for e in found}
    assert by_field["backends.kv_cache_dtype"] > by_field["backends.quantization"]


def test_the_title_s_engine_is_the_one_that_fails() -> None:
    body = "With `export VLLM_USE_V1=0` it starts."
    assert backends(body, "Segfault in V1")["engine"] == ["V1"]
    assert backends(body, "Segfault")["engine"] == ["V0"]


@pytest.mark.parametrize(
    "text",
    [
        "lm-format-enforcer        0.10.6\nxgrammar                  0.1.5",
        "Requires: lark, llguidance, lm-format-enforcer, msgspec, xgrammar\nRequired-by:",
        "copying xformers/ops/fmha/flash.py -> build/lib/xformers",
    ],
)
def test_what_is_installed_or_built_is_not_in_use(text: str) -> None:
    assert not backends(text).keys() & {"structured_output", "attention"}


@pytest.mark.parametrize(
    ("body", "title", "platform"),
    [
        ("image: vllm/vllm-openai:v0.8.4", "", "cuda"),
        ("image: vllm/vllm-openai-rocm:v0.9", "", "rocm"),
        ("It hangs.", "Tensor parallel on TPUs", "tpu"),
        ("FAILED test_x[cuda:0]", "", "cuda"),
    ],
)
def test_images_devices_and_titles_tell_the_platform(body: str, title: str, platform: str) -> None:
    assert backends(body, title)["platform"] == [platform]


def test_bits_written_onto_a_format_do_not_hide_it() -> None:
    assert backends("", "fails with gptq4bits")["quantization"] == ["gptq"]
    assert backends("", "the bnb layer is missing")["quantization"] == ["bitsandbytes"]


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


def test_what_is_said_to_work_is_not_what_fails() -> None:
    body = "It dies.\nBut after I add `--kv-cache-dtype fp8`, it is back to normal.\n"
    assert "kv_cache_dtype" not in backends(body, "dies without `--kv-cache-dtype fp8`")
    assert backends("I run it with `--kv-cache-dtype fp8`.")["kv_cache_dtype"] == ["fp8"]


def test_a_backend_s_options_are_not_its_name() -> None:
    found = backends("```\nguided_decoding_backend = 'guidance:no-fallback'\n```")
    assert found["structured_output"] == ["guidance"]


def test_a_kernel_s_name_is_no_quantisation() -> None:
    assert "quantization" not in backends("", "fault in gptq_marlin_24_gemm")
    assert backends("", "fault with Some-7B_GPTQ_Int4")["quantization"] == ["GPTQ"]


def test_imports_run_no_backend() -> None:
    frame = 'File "/x/site-packages/outlines/generate/api.py", line 5, in {}'
    assert "structured_output" not in backends(frame.format("<module>"))
    assert backends(frame.format("generate"))["structured_output"] == ["outlines"]


@pytest.mark.parametrize(
    ("built_with", "platform"), [("6.3.25211-7c9236b16", ["rocm"]), ("N/A", None), ("N/A > >", None)]
)
def test_torch_built_with_rocm_tells_the_platform(built_with: str, platform: list[str] | None) -> None:
    dump = f"```\nPyTorch version: 2.7.0\nROCM used to build PyTorch: {built_with}\nOS: Ubuntu 22.04\n```"
    assert backends(dump).get("platform") == platform
