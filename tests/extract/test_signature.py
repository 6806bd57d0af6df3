"""Signatures: the same crash has the same one on another machine, another crash has another."""

from __future__ import annotations

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.facts import Signature
from app.extract.rootcause import read_errors
from app.extract.signature import MAX_TEXT_CHARS, make_signature, signature_id, telling_places
from app.extract.tracebacks import Frame

LOG = """\
(Worker_TP{rank} pid={pid}) ERROR {month:02}-14 09:26:53 [multiproc_executor.py:{line}] Traceback (most recent call last):
(Worker_TP{rank} pid={pid}) ERROR {month:02}-14 09:26:53 [multiproc_executor.py:{line}]   File "{root}/vllm/v1/worker/gpu_worker.py", line {line}, in load_model
(Worker_TP{rank} pid={pid}) ERROR {month:02}-14 09:26:53 [multiproc_executor.py:{line}]   File "{root}/torch/nn/modules/module.py", line {line}, in _call_impl
(Worker_TP{rank} pid={pid}) ERROR {month:02}-14 09:26:53 [multiproc_executor.py:{line}]   File "{root}/vllm/model_executor/layers/linear.py", line {line}, in weight_loader
(Worker_TP{rank} pid={pid}) ERROR {month:02}-14 09:26:53 [multiproc_executor.py:{line}] ValueError: {size} is no multiple of 64 on cuda:{rank} (/tmp/{pid}/shard.bin)
"""


def signature_of(log: str) -> Signature:
    found = read_errors(log)[1].cause
    assert found is not None
    return make_signature(found)


def on_a_machine(pid: int = 314, line: int = 271, month: int = 3, rank: int = 0, size: int = 100, root: str = "/opt/venv/site-packages") -> str:
    return LOG.format(pid=pid, line=line, month=month, rank=rank, size=size, root=root)


def test_the_text_is_type_masked_message_and_frames_innermost_first() -> None:
    assert signature_of(on_a_machine()).text == (
        "ValueError | <n> is no multiple of <n2> on <device> (<path>) | linear:weight_loader < gpu_worker:load_model"
    )


@given(
    st.integers(1, 999_999), st.integers(1, 4_000), st.integers(1, 12), st.integers(0, 7), st.integers(1_000, 9_999),
    st.sampled_from(["/usr/lib/python3.10/dist-packages", "/home/jane/.venv/lib/python3.12/site-packages", "/srv/x"]),
)  # fmt: skip
def test_the_same_crash_on_another_machine_has_the_same_signature(
    pid: int, line: int, month: int, rank: int, size: int, root: str
) -> None:
    assert signature_of(on_a_machine(pid, line, month, rank, size, root)) == signature_of(on_a_machine())


@pytest.mark.parametrize(
    ("old", "new"),
    [("ValueError", "TypeError"), ("is no multiple", "is no divisor"), ("weight_loader", "forward"), ("linear.py", "fp8.py")],
)
def test_another_crash_has_another_signature(old: str, new: str) -> None:
    assert signature_of(on_a_machine().replace(old, new)).id != signature_of(on_a_machine()).id


def test_an_id_is_the_version_and_twelve_digits_of_the_text_s_hash() -> None:
    text = "KeyError | <n>"

    assert signature_id(text) == f"s1-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


@given(st.text(st.characters(codec="utf-8")))
def test_every_id_has_the_same_shape(text: str) -> None:
    assert re.fullmatch(r"s1-[0-9a-f]{12}", signature_id(text)) is not None


def test_a_late_error_s_python_frames_are_left_out() -> None:
    log = on_a_machine().replace("ValueError: 100 is", "RuntimeError: CUDA error: it is")

    assert signature_of(log).text == "CUDA error | it is no multiple of <n> on <device> (<path>)"


def test_a_native_fault_is_named_by_its_file_without_the_line() -> None:
    log = "Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:455 'an illegal memory access was encountered'"

    assert signature_of(log).text == "CUDA error | an illegal memory access was encountered | custom_all_reduce.cuh"
    assert signature_of(log.replace("455", "457")) == signature_of(log)


def test_a_bare_error_is_named_by_its_frames() -> None:
    log = on_a_machine().replace("ValueError: 100 is no multiple of 64 on cuda:0 (/tmp/314/shard.bin)", "AssertionError")

    assert signature_of(log).text == "AssertionError | linear:weight_loader < gpu_worker:load_model"


def test_a_very_long_text_is_cut() -> None:
    log = on_a_machine().replace("is no multiple", "word " * 100)

    assert len(signature_of(log).text) == MAX_TEXT_CHARS


def test_plumbing_is_no_telling_place() -> None:
    frames = [Frame("/x/vllm/a.py", "one"), Frame("/x/torch/m.py", "_call_impl"), Frame("/x/vllm/b.py", "two")]

    assert telling_places(frames) == ["b:two", "a:one"]
