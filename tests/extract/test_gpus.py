"""Accelerators and how many there are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.commands import read_settings
from app.extract.document import CommentText, IssueText
from app.extract.environment import read_environment
from app.extract.gpu_names import canonical_name
from app.extract.gpus import count_gpus, find_gpus
from app.extract.lists import load
from app.extract.sections import read_document


def read(body: str, title: str = "", *comments: str):
    document = read_document(IssueText(1, title, body, comments=tuple(CommentText(c) for c in comments)))
    environment = read_environment(document)
    count = count_gpus(document, environment, read_settings(document))
    return [e.value for e in find_gpus(document, environment)], int(count.value) if count else None


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("NVIDIA A100-SXM4-80GB", "A100"), ("NVIDIA H100 80GB HBM3", "H100"), ("NVIDIA H100 NVL", "H100 NVL"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"), ("NVIDIA GeForce RTX 4090 D", "RTX 4090 D"),
        ("NVIDIA GeForce RTX 3070 Laptop GPU", "RTX 3070 Laptop"), ("NVIDIA GeForce RTX 2080 Ti", "RTX 2080 Ti"),
        ("Tesla V100-PCIE-32GB", "V100"), ("Tesla T4", "T4"), ("NVIDIA L4", "L4"), ("NVIDIA A10G", "A10G"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX PRO 6000 Blackwell"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"), ("Quadro RTX 8000", "Quadro RTX 8000"),
        ("AMD Instinct MI300X (gfx942:sramecc+:xnack-)", "MI300X"), ("Radeon RX 7900 XTX (gfx1100)", "RX 7900 XTX"),
        ("NVIDIA_H100_80GB_HBM3", "H100"), ("NVIDIA H20-3e", "H20-3e"), ("NVIDIA GB200", "GB200"),
    ],
)  # fmt: skip
def test_a_driver_name_becomes_the_canonical_one(written: str, name: str) -> None:
    assert canonical_name(written) == name


@pytest.mark.parametrize("name", load("gpus")["names"])
def test_each_name_of_the_list_is_its_own_canonical_form_or_asks_for_company(name: str) -> None:
    assert canonical_name(name) in (name, None) or canonical_name(f"NVIDIA {name}") == name


def test_the_dump_names_and_counts() -> None:
    dump = "PyTorch version: 2.6.0\nGPU models and configuration: \nGPU 0: NVIDIA A40\nGPU 1: NVIDIA A40\n\nOS: x\n"
    assert read(dump + "It worked on an H100.") == (["A40"], 2)


def test_nvidia_smi_rows_count() -> None:
    smi = (
        "| NVIDIA-SMI 555.42.06    Driver Version: 555.42.06    CUDA Version: 12.5 |\n"
        "|   0  NVIDIA A10                     On  |   00000000:00:04.0 Off |      0 |\n"
        "|   1  NVIDIA A10                     On  |   00000000:00:08.0 Off |      0 |\n"
    )
    assert read(smi) == (["A10"], 2)


@pytest.mark.parametrize(
    ("title", "gpus", "count"),
    [
        ("crash on 8xH100", ["H100"], 8), ("hang with 4 * L20", ["L20"], 4), ("two RTX 3090s hang", ["RTX 3090"], 2),
        ("2x 4090 slow", ["RTX 4090"], 2), ("3xL20x8 fails", ["L20"], 24), ("MI355: garbage at TP 4", ["MI355X"], 4),
        ("[CPU] no such op", ["CPU"], None), ("fails on TPU v6e", ["TPU v6e"], None), ("single L4 is slow", ["L4"], 1),
    ],
)  # fmt: skip
def test_a_title_names_and_counts(title: str, gpus: list[str], count: int | None) -> None:
    assert read("", title) == (gpus, count)


@pytest.mark.parametrize(
    "text",
    ["Qwen3-30B-A3B and Qwen3-235B-A22B", "see core.py#L20 and #L40", "L1d cache, L2 cache", "POST /v1 in V100ms",
     "MLA kernels for sm_90", "percentile P99", "the A2A backend", "T4B-instruct"],
)  # fmt: skip
def test_false_friends_are_no_gpus(text: str) -> None:
    assert read(text, text)[0] == []


def test_where_it_works_is_not_where_it_fails() -> None:
    assert read("It fails on B200. It works on H100.")[0] == ["B200"]


def test_the_cpu_build_has_no_gpu_even_if_one_is_listed() -> None:
    assert read(
        "PyTorch version: 2.5.1+cpu\nGPU models and configuration: GPU 0: NVIDIA GeForce MX330\nOS: x\n"
    ) == (
        ["CPU"],
        None,
    )


def test_visible_devices_count_when_nothing_else_does() -> None:
    assert read("export CUDA_VISIBLE_DEVICES=0,1,2")[1] == 3


def test_tensor_parallel_flag_alone_counts_nothing() -> None:
    assert read("vllm serve org/m-7b --tensor-parallel-size 8")[1] is None


def test_a_comment_speaks_only_when_the_issue_is_silent() -> None:
    assert read("fails", "t", "same on a B200", "same on an A100")[0] == ["B200"]
    assert read("fails on H200", "t", "same on a B200")[0] == ["H200"]


@given(
    st.lists(
        st.sampled_from([*list("x× 84()\n,éG"), "H100", "RTX 4090", "GPUs", "TP ", "NVIDIA "]), max_size=60
    ).map("".join)
)
def test_quotes_equal_their_spans(text: str) -> None:
    document = read_document(IssueText(1, text, text))
    environment = read_environment(document)
    count = count_gpus(document, environment)
    for evidence in (*find_gpus(document, environment), *([count] if count else [])):
        assert document.sources[evidence.source][evidence.start : evidence.end] == evidence.quote
