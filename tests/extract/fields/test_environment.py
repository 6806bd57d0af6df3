"""collect_env dumps in all the forms they are pasted in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.extract.fields.environment import environment_facts, read_environment
from app.extract.text.blocks import read_document, read_log_document
from app.extract.text.document import IssueText

OLD = """Collecting environment information...
PyTorch version: 2.6.0+cu124
Is debug build: False
CUDA used to build PyTorch: 12.4
ROCM used to build PyTorch: N/A

OS: Ubuntu 22.04.5 LTS (x86_64)
GCC version: (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0
Python version: 3.12.9 (main, Feb  5 2025, 08:49:00) [GCC 11.4.0] (64-bit runtime)
GPU models and configuration:
GPU 0: NVIDIA L40S
GPU 1: NVIDIA L40S

Nvidia driver version: 550.54.15
cuDNN version: Could not collect

Versions of relevant libraries:
[pip3] numpy==1.26.4
[pip3] nvidia-nccl-cu12==2.21.5
[pip3] torch==2.6.0
[pip3] transformers==4.51.1
[conda] transformers              4.40.1                   pypi_0    pypi
ROCM Version: Could not collect
Neuron SDK Version: N/A
vLLM Version: 0.8.4
vLLM Build Flags:
CUDA Archs: Not Set; ROCm: Disabled; Neuron: Disabled
"""

NEW = """==============================
        System Info
==============================
OS                           : Ubuntu 24.04.1 LTS (aarch64)
GCC version                  : Could not collect
==============================
       PyTorch Info
==============================
PyTorch version              : 2.9.0+cu129
CUDA used to build PyTorch   : 12.9
==============================
       CUDA / GPU Info
==============================
GPU models and configuration : GPU 0: NVIDIA GB10
Nvidia driver version        : 580.95.05
vLLM Version                 : 0.11.2.dev340+ge5a621b72 (git sha: e5a621b72)
"""


def dump_of(body: str):
    return read_environment(read_document(IssueText(1, "t", body)))


def value(environment, label: str) -> str | None:
    entry = environment.entries.get(label)
    return entry.value if entry else None


def test_the_old_form_is_read_line_by_line() -> None:
    env = dump_of(f"### Your current environment\n\n```text\n{OLD}```\n")
    assert value(env, "PyTorch version") == "2.6.0+cu124"
    assert value(env, "Nvidia driver version") == "550.54.15"
    assert value(env, "vLLM Version") == "0.8.4"
    assert [gpu.value for gpu in env.gpus] == ["NVIDIA L40S", "NVIDIA L40S"]
    assert env.is_indexed


def test_the_new_form_with_banners_is_read() -> None:
    env = dump_of(NEW)
    assert value(env, "OS") == "Ubuntu 24.04.1 LTS (aarch64)"
    assert value(env, "CUDA used to build PyTorch") == "12.9"
    assert [gpu.value for gpu in env.gpus] == ["NVIDIA GB10"]


def test_a_text_without_line_breaks_splits_at_the_known_labels() -> None:
    env = dump_of(" ".join((OLD + NEW.replace("\n", " ")).split()))
    assert value(env, "PyTorch version") == "2.6.0+cu124"
    assert value(env, "OS") == "Ubuntu 22.04.5 LTS (x86_64)"
    assert [gpu.value for gpu in env.gpus] == ["NVIDIA L40S", "NVIDIA L40S"]


def test_a_value_glued_to_the_next_label_is_split() -> None:
    env = dump_of("PyTorch version: 2.5.1\nIs XNNPACK available: TrueROCM Version: 6.2.4\n")
    assert value(env, "ROCM Version") == "6.2.4"


def test_words_for_not_known_are_no_values() -> None:
    env = dump_of(OLD)
    for label in ("cuDNN version", "ROCM used to build PyTorch", "Neuron SDK Version"):
        assert label not in env.entries


def test_rocm_lists_one_line_without_an_index() -> None:
    env = dump_of("PyTorch version: 2.7.0\nGPU models and configuration: AMD Instinct MI300X (gfx942)\n")
    assert [gpu.value for gpu in env.gpus] == ["AMD Instinct MI300X (gfx942)"]
    assert not env.is_indexed


def test_pip_wins_over_conda() -> None:
    assert dump_of(OLD).packages["transformers"].value == "4.51.1"


def test_facts_hold_what_has_no_field_of_its_own() -> None:
    facts = environment_facts(dump_of(OLD))
    assert facts["os"] == "Ubuntu 22.04.5 LTS (x86_64)"
    assert facts["nccl"] == "2.21.5"
    assert facts["numpy"] == "1.26.4"
    assert "torch" not in facts


def test_the_empty_template_is_no_dump() -> None:
    assert not dump_of("### Your current environment\n\nThe output of `python collect_env.py`\n").has_dump


@given(
    st.lists(
        st.sampled_from([*list("OSGPU :\n=[]pipv3.0é\r"), "PyTorch version", "vLLM Version"]), max_size=60
    ).map("".join)
)
def test_every_span_holds_its_value(text: str) -> None:
    document = read_log_document(text)
    env = read_environment(document)
    for entry in (*env.entries.values(), *env.gpus, *env.packages.values()):
        source, start, end = entry.span
        assert document.sources[source][start:end] == entry.value
