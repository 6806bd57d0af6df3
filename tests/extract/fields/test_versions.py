"""The versions it fails with."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.facts import VERSION_KEYS
from app.extract.fields.environment import read_environment
from app.extract.fields.versions import find_versions
from app.extract.rules.rules import load_rules
from app.extract.text.blocks import read_document
from app.extract.text.document import IssueText

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
    assert rule["key"] in VERSION_KEYS


def test_a_dump_gives_all_of_them() -> None:
    assert versions(DUMP) == {
        "vllm": "0.8.4",
        "torch": "2.6.0+cu124",
        "cuda": "12.4",
        "python": "3.12.9",
        "transformers": "4.51.1",
        "driver": "550.54.15",
    }


@pytest.mark.parametrize(
    ("body", "title", "version"),
    [
        (DUMP, "v0.8.3 fails to load", "0.8.3"),
        ("INFO Initializing a V1 LLM engine (v0.7.3) with config: model='x'\n" + DUMP, "", "0.7.3"),
        ("Environment\n- **vLLM version**: v0.11.2.dev340+ge5a621b72\n", "", "0.11.2.dev340+ge5a621b72"),
        ("docker run vllm/vllm-openai:v0.6.2 --model x", "", "0.6.2"),
        ("I installed vllm 0.11.0 instead of 0.10.2 here.", "", "0.11.0"),
        ("We run registry.example/mirror/vllm-openai:v0.6.2 here.", "", "0.6.2"),
        ("image rocm/vllm:rocm6.4.1_vllm_0.9.0.1_20250605", "", "0.9.0.1"),
        ("pip install vllm==0.6.3.post1", "", "0.6.3.post1"),
        ("vllm                    0.9.2\n", "", "0.9.2"),
        ("Name: vllm Version: 0.8.3.dev77+gb4245a48 Summary: x", "", "0.8.3.dev77+gb4245a48"),
        ("creating '/tmp/x/vllm-0.6.3.dev138+g480b7f40.cu126.dist-info'", "", "0.6.3.dev138+g480b7f40.cu126"),
        ("- **vLLM Version**: [v0.8.0]\n", "", "0.8.0"),
        ("vllm版本为0.17.1", "", "0.17.1"),
        ("We run docker v0.9.0 here.", "", "0.9.0"),
        ("Triton is built from the commit " + "d0a7a2769d" * 4, "", None),
        ("cuda 12.3 git commit: " + "d0a7a2769d" * 4, "", "d0a7a2769d" * 4),
        ("", "stops with nixl-cu13==0.10.1", None),
        ("We deploy the Helm chart (0.1.7).", "", None),
        ("The image is ghcr.io/acme/cuda:v0.6.0 here.", "", None),
        ("I run vllm 0.1.dev20073+g8e685d198 here", "", "0.1.dev20073+g8e685d198"),
        ("", "Error after upgrade 0.6.2->0.6.3", "0.6.3"),
        ("", "drop between versions 0.19.1 and 0.20.1", "0.20.1"),
        ("", "works on 0.27, crashes on v0.28.0", "0.28.0"),
        ("0.21.0 is fast; 0.22.0 is slow.", "", "0.22.0"),
        ("torch 2.9.1 triton 3.5.1 vllm 0.15.1 xgrammar 0.1.29", "", "0.15.1"),
        ("built from the latest main branch", "", "main"),
        ("We are running vllm=0.6.2 on this node.\n" + DUMP, "", "0.6.2"),
        ("After upgrading vllm-openai:v0.9.1 to v0.9.2 nothing loads.", "", "0.9.2"),
        ("git checkout v0.6.6.post1\ndocker build .", "", "0.6.6.post1"),
        (
            "pip install vllm-0.8.4.dev12%2Bg46f01a50a.cu128-cp312-cp312-linux_x86_64.whl",
            "",
            "0.8.4.dev12+g46f01a50a.cu128",
        ),
        ("v0.14.1 and v0.19.0 are fast; v0.21.0, v0.26.0 and v0.27.1 are slow.", "", "0.27.1"),
        ("vLLM Version: 0.6.1.post2@COMMIT_HASH_PLACEHOLDER\nOS: x\n" + DUMP, "", "0.6.1.post2"),
        ("We built it from commit `46f01a50a`.", "", "46f01a50a"),
        ("```\nCollecting vllm\n  Using cached vllm-0.1.2.tar.gz (93 kB)\n```", "", "0.1.2"),
        ("### Environment vLLM 0.10.0 ### Bug Launch success, then it fails.", "", "0.10.0"),
        ("v0.5.4\n\nThe server gives correct text without tools.", "", "0.5.4"),
        ("We run vllm 0.11 here. It is vllm 0.11.0.", "", "0.11.0"),
        ("reinstalled vllm with commit " + "d0a7a2769d" * 4, "", "d0a7a2769d" * 4),
    ],
)
def test_the_version_that_fails_is_taken(body: str, title: str, version: str | None) -> None:
    assert versions(body, title).get("vllm") == version


@pytest.mark.parametrize(
    "text",
    [
        "mistralai/Mistral-7B-Instruct-v0.2",
        "gpu_memory_utilization 0.95",
        "temperature 0.8",
        "CMake version 3.22.1",
        "FlashInfer 0.6.11 and 0.6.12 are slow",
        "llm-compressor version: 0.8.1",
        "listens on 0.0.0.0",
        "0.26 MB",
        "sglang 0.4.6 is faster",
        "flashinfer-python 0.2.5",
        "no version satisfies xgrammar>=0.1.6",
        "aiohttp 3.11.13 aiosignal 1.3.2 annotated-types 0.7.0 anyio 4.9.0",
        "aiohttp 3.10.10 pypi_0 pypi aiosignal 1.3.1 pypi_0 pypi aiohttp-cors 0.7.0 pypi_0 pypi",
    ],
)
def test_version_traps_are_not_vllm(text: str) -> None:
    assert "vllm" not in versions(text, text)


def test_cuda_comes_from_the_torch_build_if_nothing_else_says_it() -> None:
    assert versions("We use torch 2.9.0+cu129 there.")["cuda"] == "12.9"


@pytest.mark.parametrize(
    ("body", "key", "version"),
    [
        ("python3.11, CUDA 12.4\n", "python", "3.11"),
        ("```\nplatform linux -- Python 3.12.4, pytest-8.3.3\n```", "python", "3.12.4"),
        ("```\nconda create -n x python=3.10 -y\n```", "python", "3.10"),
        ("```\ntorch.__version__  = 2.4.0+cu121\n```", "torch", "2.4.0+cu121"),
        ("```\ntorch.__version__  = 2.4.0+cu121\n```", "cuda", "12.1"),
        ("```\nsympy==1.12\ntorch==2.0.1\ntqdm==4.65\n```", "torch", "2.0.1"),
        (
            "```\nSuccessfully installed tqdm-4.65 transformers-4.31.0 vllm-0.1.2\n```",
            "transformers",
            "4.31.0",
        ),
        ("```\nFROM nvidia/cuda:11.8.0-devel-ubuntu22.04\n```", "cuda", "11.8.0"),
        (
            "```\n| NVIDIA-SMI 525.125.06   Driver Version: 525.125.06   CUDA Version: 12.0 |\n```",
            "driver",
            "525.125.06",
        ),
        ("Then I downgraded transformers to 4.40.1.", "transformers", "4.40.1"),
    ],
)
def test_what_has_no_dump_is_read_where_it_is_printed_or_said(body: str, key: str, version: str) -> None:
    assert versions(body)[key] == version


def test_a_title_names_what_nothing_else_does() -> None:
    assert versions("", "Model fails in the cuda 11.8 docker image")["cuda"] == "11.8"


@pytest.mark.parametrize(
    "text",
    [
        "As of transformers v4.44, templates are needed.",
        "transformers 4.57 ⇄ 5.6",
        "IPython supports Python 3.9 and above",
        "It requires Python 3.9+.",
    ],
)
def test_a_version_that_is_only_spoken_of_is_none(text: str) -> None:
    assert not {"transformers", "python"} & set(versions(text))


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


def test_a_wish_only_speaks_of_versions() -> None:
    assert versions("There is an image for vllm 0.8.5.", "[Feature]: a new model") == {}
    assert versions("RuntimeError: x", "[Feature]: support CUDA 12.8") == {}
    assert (
        versions("", "[Feature]: when is 0.9.2 released?") == versions("", "[v0.3.3] Release Tracker") == {}
    )
    assert versions("", "[Bug]: stops with CUDA 12.8") == {"cuda": "12.8"}


def test_a_branch_may_name_its_commit() -> None:
    assert versions("vllm: built at master@24aecf421a4a")["vllm"] == "24aecf421a4a"
