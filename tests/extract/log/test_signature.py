"""Masking: the same failure reads the same on every machine.

Signatures: the same crash has the same one on another machine, another crash has another.
"""

from __future__ import annotations

import hashlib
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.extract.facts import Signature
from app.extract.log.frames import Frame
from app.extract.log.root_cause import read_errors
from app.extract.log.signature import (
    MAX_MESSAGE_CHARS,
    MAX_TEXT_CHARS,
    decisive_places,
    make_signature,
    mask,
    signature_id,
)

CASES = [
    ("illegal address 0x7f31b24b9446", "illegal address <hex>"),
    ("request cmpl-3f2a9c81d0 failed", "request <id> failed"),
    ("actor 123e4567-e89b-12d3-a456-426614174000 died", "actor <id> died"),
    ("connect to 10.1.2.3:8000 refused", "connect to <host> refused"),
    ("cannot bind tcp://127.0.0.1:5557", "cannot bind <host>"),
    ("cannot open /root/.cache/x/y.json", "cannot open <path>"),
    ("no file ~/models/a/config.json", "no file <path>"),
    ("Tried to allocate 20.00 MiB", "Tried to allocate <size>"),
    ("12 bytes and 3GB left", "<size> and <size2> left"),
    ("shape [4, 128, 64] does not fit", "shape <shape> does not fit"),
    ("got torch.Size([2, 3])", "got <shape>"),
    ("tensor on cuda:3", "tensor on <device>"),
    ("KeyError layers.12.mlp.experts.w13_weight", "KeyError layers<layer>.mlp.experts.w13_weight"),
    ("commit 4f5c9d8e7b6a is missing", "commit <hash> is missing"),
    ("needs 40960 but only 28880 fit", "needs <n> but only <n2> fit"),
    ("uses 92.5% of 80", "uses <n>% of <n2>"),
    ("version 0.8.5 is too old", "version <n> is too old"),
    ("scale 1e-05", "scale <n>"),
    (
        "head_size must be a multiple of 8 and w13_weight too",
        "head_size must be a multiple of <n> and w13_weight too",
    ),
    ("no NVIDIA GPU with sm_90", "no NVIDIA GPU with sm_90"),
    ("  folds\t its\nblanks  ", "folds its blanks"),
    ("and/or stays", "and/or stays"),
    ("", ""),
]


@pytest.mark.parametrize(("message", "wanted"), CASES)
def test_what_varies_is_masked(message: str, wanted: str) -> None:
    assert mask(message) == wanted


def test_equal_values_keep_equal_placeholders() -> None:
    assert mask("expected 128, got 96, not 128") == "expected <n>, got <n2>, not <n>"


def test_values_of_each_kind_are_counted_apart() -> None:
    assert mask("0xaa1 of 7 and 0xbb2 of 9") == "<hex> of <n> and <hex2> of <n2>"


def test_of_a_very_long_message_the_beginning_is_masked() -> None:
    assert mask("x" * (MAX_MESSAGE_CHARS + 9)) == "x" * MAX_MESSAGE_CHARS


PIECES = [
    "0x7f31",
    "10.1.2.3:80",
    "tcp://x",
    "/a/b/c.py",
    "20 MiB",
    "[1, 2]",
    "cuda:1",
    "layers.3",
    "4f5c9d8e7b6a",
    "12",
    "3.5",
    "-7",
    "1e-5",
    "80%",
    "word",
    "<n>",
    "<path2>",
    "torch.Size([2])",
    "cmpl-3f2a9c81d0",
    "123e4567-e89b-12d3-a456-426614174000",
]


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.sampled_from([" ", ", ", "; ", " of "]))
@example(["12", "word"], " ")
def test_masking_twice_changes_nothing(words: list[str], between: str) -> None:
    once = mask(between.join(words))

    assert mask(once) == once


@given(st.integers(10, 9999), st.integers(10, 9999), st.integers(0, 7), st.integers(0, 7))
def test_two_runs_of_one_failure_are_masked_alike(one: int, two: int, rank: int, other: int) -> None:
    message = "{} tokens exceed the limit on cuda:{} (block 0x{:x})"

    assert mask(message.format(one, rank, one)) == mask(message.format(two, other, two))


@given(st.text(max_size=200))
def test_any_message_can_be_masked(message: str) -> None:
    assert "  " not in mask(message)


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


def on_a_machine(
    pid: int = 314,
    line: int = 271,
    month: int = 3,
    rank: int = 0,
    size: int = 100,
    root: str = "/opt/venv/site-packages",
) -> str:
    return LOG.format(pid=pid, line=line, month=month, rank=rank, size=size, root=root)


def test_the_text_is_type_masked_message_and_frames_innermost_first() -> None:
    assert signature_of(on_a_machine()).text == (
        "ValueError | <n> is no multiple of <n2> on <device> (<path>) | linear:weight_loader < gpu_worker:load_model"
    )


@given(
    st.integers(1, 999_999),
    st.integers(1, 4_000),
    st.integers(1, 12),
    st.integers(0, 7),
    st.integers(1_000, 9_999),
    st.sampled_from(
        ["/usr/lib/python3.10/dist-packages", "/home/jane/.venv/lib/python3.12/site-packages", "/srv/x"]
    ),
)
def test_the_same_crash_on_another_machine_has_the_same_signature(
    pid: int, line: int, month: int, rank: int, size: int, root: str
) -> None:
    assert signature_of(on_a_machine(pid, line, month, rank, size, root)) == signature_of(on_a_machine())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ValueError", "TypeError"),
        ("is no multiple", "is no divisor"),
        ("weight_loader", "forward"),
        ("linear.py", "fp8.py"),
    ],
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

    assert (
        signature_of(log).text
        == "CUDA error | an illegal memory access was encountered | custom_all_reduce.cuh"
    )
    assert signature_of(log.replace("455", "457")) == signature_of(log)


def test_a_bare_error_is_named_by_its_frames() -> None:
    log = on_a_machine().replace(
        "ValueError: 100 is no multiple of 64 on cuda:0 (/tmp/314/shard.bin)", "AssertionError"
    )

    assert signature_of(log).text == "AssertionError | linear:weight_loader < gpu_worker:load_model"


def test_a_very_long_text_is_cut() -> None:
    log = on_a_machine().replace("is no multiple", "word " * 100)

    assert len(signature_of(log).text) == MAX_TEXT_CHARS


def test_plumbing_is_no_telling_place() -> None:
    frames = [
        Frame("/x/vllm/a.py", "one"),
        Frame("/x/torch/m.py", "_call_impl"),
        Frame("/x/vllm/b.py", "two"),
    ]

    assert decisive_places(frames) == ["b:two", "a:one"]
