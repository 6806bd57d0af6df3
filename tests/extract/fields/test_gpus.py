"""Accelerators and how many there are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.fields.environment import read_environment
from app.extract.fields.gpu_count import count_gpus
from app.extract.fields.gpu_names import canonical_name
from app.extract.fields.gpus import find_gpus
from app.extract.fields.settings import read_settings
from app.extract.lists import load
from app.extract.text.blocks import read_document
from app.extract.text.document import CommentText, IssueText


def read(body: str, title: str = "", *comments: str):
    document = read_document(IssueText(1, title, body, comments=tuple(CommentText(c) for c in comments)))
    environment = read_environment(document)
    count = count_gpus(document, environment, read_settings(document))
    return [e.value for e in find_gpus(document, environment)], int(count.value) if count else None


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H100 NVL", "H100 NVL"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("NVIDIA GeForce RTX 4090 D", "RTX 4090 D"),
        ("NVIDIA GeForce RTX 3070 Laptop GPU", "RTX 3070 Laptop"),
        ("NVIDIA GeForce RTX 2080 Ti", "RTX 2080 Ti"),
        ("Tesla V100-PCIE-32GB", "V100"),
        ("Tesla T4", "T4"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA A10G", "A10G"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX PRO 6000 Blackwell"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"),
        ("Quadro RTX 8000", "Quadro RTX 8000"),
        ("AMD Instinct MI300X (gfx942:sramecc+:xnack-)", "MI300X"),
        ("Radeon RX 7900 XTX (gfx1100)", "RX 7900 XTX"),
        ("AMD Radeon PRO W6800NoGCNArchNameOnOldPyTorch", "Radeon PRO W6800"),
        ("TPU VM v3-8", "TPU v3"),
        ("NVIDIA_H100_80GB_HBM3", "H100"),
        ("NVIDIA H20-3e", "H20-3e"),
        ("NVIDIA GB200", "GB200"),
    ],
)
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
        ("crash on 8xH100", ["H100"], 8),
        ("hang with 4 * L20", ["L20"], 4),
        ("two RTX 3090s hang", ["RTX 3090"], 2),
        ("2x 4090 slow", ["RTX 4090"], 2),
        ("3xL20x8 fails", ["L20"], 24),
        ("MI355: garbage at TP 4", ["MI355X"], 4),
        ("[CPU] no such op", ["CPU"], None),
        ("an L40S stops", ["L40S"], 1),
    ],
)
def test_a_title_names_and_counts(title: str, gpus: list[str], count: int | None) -> None:
    assert read("", title) == (gpus, count)


@pytest.mark.parametrize(
    ("body", "gpus", "count"),
    [
        ("Served from an A100 with 4 GPUs.", ["A100"], 4),
        ("GPU is 2 \\* A30 here.", ["A30"], 2),
        ("The host has 2 * 40GB GPUs (NVIDIA L40S).", ["L40S"], 2),
        ("It hangs across two 8xH100 nodes.", ["H100"], 16),
        ("We use 2 nodes with 8xH20 in them.", ["H20"], 16),
        ("A slice v5e-32 (8 hosts/4 chips each).", ["TPU v5e"], 32),
        ("CUDA_VISIBLE_DEVICES=0 vllm serve a/b-7b\nCUDA_VISIBLE_DEVICES=1,2 vllm serve a/b-7b", [], 3),
        ("docker run --gpus 'device=0,1' vllm/vllm-openai", [], 2),
    ],
)
def test_counts_are_read_however_they_are_put(body: str, gpus: list[str], count: int) -> None:
    assert read(body) == (gpus, count)


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("I load it on my RTX 3060.", 1),
        ("It is served by an A100 GPU.", 1),
        ("It is a single 16GB NVIDIA 4060.", 1),
        ("We use A100 GPUs.", None),
        ("device: RTX 4090", None),
        ("It fails on GB200 NVL72.", None),
        ("It fails on H100s.", None),
    ],
)
def test_one_gpu_is_counted_only_where_one_is_spoken_of(body: str, count: int | None) -> None:
    assert read(body)[1] == count


def test_one_gpu_is_not_counted_when_the_run_asks_for_more() -> None:
    assert read("On my A100:\n\n    vllm serve a/b-7b --tensor-parallel-size 2")[1] is None


@pytest.mark.parametrize(
    ("body", "gpus"),
    [
        ("Python: 3.11\nGPU: NVIDIA A100", ["A100"]),
        ("CPU RAM: 200\nGPU: Tesla V100", ["V100"]),
        ("On my A100, as on any SM<90 GPU, it fails.", ["A100"]),
        ("The sm_120 5090 has native support for it.", ["RTX 5090"]),
        ("The estimated maximum length is 122080.", []),
    ],
)
def test_a_number_of_something_else_is_no_count(body: str, gpus: list[str]) -> None:
    assert read(body)[0] == gpus
    assert read(body)[1] in {None, 1}


def test_none_is_no_count() -> None:
    assert read("It needs 0 x H100 to stop.")[1] is None


def test_the_torch_of_a_tpu_is_a_cpu_build() -> None:
    assert read("PyTorch version: 2.6.0+cpu\nOS: x\n\nWe serve on TPU v6e.")[0] == ["TPU v6e"]


def test_a_title_about_tpus_makes_the_cpu_build_a_tpu_s() -> None:
    dump = "PyTorch version: 2.6.0+cpu\nIs debug build: False\n"
    assert read(dump + '@remote(resources={"TPU-v4-8-head": 1})', "Hangs on TPUs")[0] == ["TPU v4"]
    assert read(dump, "Hangs on TPUs")[0] == []
    assert read(dump, "Hangs")[0] == ["CPU"]


@pytest.mark.parametrize("line", ["vllm serve m --device cpu", "VLLM_CPU_KVCACHE_SPACE=40 vllm serve m"])
def test_a_run_told_to_take_the_cpu_has_no_gpu(line: str) -> None:
    assert read(f"```\n{line}\n```")[0] == ["CPU"]


def test_what_a_proposal_mentions_is_nobodys_machine() -> None:
    assert read("We would measure this on H100, with 2 GPUs.", "[RFC]: a new scheduler") == ([], None)


@pytest.mark.parametrize(
    "text",
    [
        "Qwen3-30B-A3B and Qwen3-235B-A22B",
        "see core.py#L20 and #L40",
        "L1d cache, L2 cache",
        "POST /v1 in V100ms",
        "MLA kernels for sm_90",
        "percentile P99",
        "the A2A backend",
        "T4B-instruct",
    ],
)
def test_false_friends_are_no_gpus(text: str) -> None:
    assert read(text, text)[0] == []


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


def test_a_wish_has_no_machine() -> None:
    assert read("It does not run on my RTX 3090.", "[Feature]: a smaller model") == ([], None)
    assert read("GPU: RTX 3090\nRuntimeError: x", "[Feature]: a smaller model")[0] == ["RTX 3090"]


@pytest.mark.parametrize(("said", "found"), [("GPU: T4 *4", (["T4"], 4)), ("on L4 x 2", (["L4"], 2))])
def test_a_short_name_is_known_by_its_label_or_count(said: str, found: tuple[list[str], int]) -> None:
    assert read(said) == found


def test_a_remark_in_a_program_names_no_machine() -> None:
    assert read("```python\n# enough for an A40 GPU\nllm = LLM('x')\n```") == ([], None)


def test_a_bare_gpu_line_is_a_row() -> None:
    assert read("```\nGPU 0: NVIDIA H20\nNvidia driver version: 555.42.02\n```") == (["H20"], 1)


def test_where_it_works_is_not_where_it_fails() -> None:
    assert read("It fails on B200. It works on H100.")[0] == ["B200"]
