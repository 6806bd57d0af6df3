"""What to do when no stored issue is known to be the failure."""

from __future__ import annotations

import pytest

from app.extract.reader import read_log
from app.knowledge.next_steps import MAX_STEPS, conditions_of, next_steps
from tests.samples import FOREIGN_LOG, HEALTHY_LOG, a_traceback

ASYNCHRONOUS = a_traceback("RuntimeError: CUDA error: device-side assert triggered", "vllm/x.py:y")
WRAPPERS = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
MEMORY = a_traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "vllm/x.py:y")
NCCL = a_traceback("RuntimeError: NCCL error: unhandled system error", "vllm/x.py:y")


@pytest.mark.parametrize(
    ("log", "wanted"),
    [
        (HEALTHY_LOG, {"no_error", "no_gpu", "environment_missing"}),
        ("hello", {"no_error", "no_version", "no_gpu", "no_model", "environment_missing"}),
        (WRAPPERS, {"no_error", "only_wrappers"}),
        (ASYNCHRONOUS, {"type:CUDA error", "asynchronous"}),
        (MEMORY, {"type:OutOfMemoryError", "memory"}),
        ("ValueError: No available memory for the cache blocks.", {"type:ValueError", "memory"}),
        (NCCL, {"type:NCCL error", "nccl"}),
        (FOREIGN_LOG, {"type:OperationalError"}),
    ],
)
def test_conditions_are_told_from_the_log(log: str, wanted: set[str]) -> None:
    missing = {"no_version", "no_gpu", "no_model", "environment_missing"}
    told = conditions_of(read_log(log))

    assert (told if wanted & missing else told - missing) == wanted


@pytest.mark.parametrize(
    ("log", "first"),
    [
        (WRAPPERS, "kubectl logs --previous --tail=-1 POD > crash.log"),
        (ASYNCHRONOUS, "CUDA_LAUNCH_BLOCKING=1 vllm serve YOUR_ARGS"),
        (MEMORY, "vllm serve YOUR_ARGS --max-model-len 4096"),
        (NCCL, "NCCL_DEBUG=INFO vllm serve YOUR_ARGS"),
        (FOREIGN_LOG, "vllm collect-env"),
        ("hello", ""),
    ],
)
def test_the_most_telling_step_comes_first(log: str, first: str) -> None:
    assert next_steps(read_log(log))[0].command == first


@pytest.mark.parametrize("log", [WRAPPERS, ASYNCHRONOUS, MEMORY, NCCL, FOREIGN_LOG, HEALTHY_LOG])
def test_there_are_a_few_steps_and_none_twice(log: str) -> None:
    steps = next_steps(read_log(log))

    assert 1 <= len(steps) <= MAX_STEPS
    assert len({step.text for step in steps}) == len(steps)
