"""Which program printed a log: vLLM, another one, or one that the log does not tell."""

from __future__ import annotations

import pytest

from app.extract.log.programs import SCRIPT, Printer
from app.extract.reader import read_log
from app.extract.rules.rules import load_rules


def find_printer(log: str) -> Printer:
    return read_log(log).printer


SCRIPT_LOG = """\
Traceback (most recent call last):
  File "{path}", line 212, in <module>
    main()
  File "/opt/conda/lib/python3.10/site-packages/torch/_tensor.py", line 522, in backward
    torch.autograd.backward(
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
"""


@pytest.mark.parametrize(
    "log",
    [
        '  File "/opt/venv/site-packages/vllm/v1/engine/core.py", line 3, in step\nValueError: x',
        "(EngineCore_DP0 pid=7) ERROR 03-01 10:00:00 [core.py:708] ValueError: x",
        SCRIPT_LOG.format(path="/home/me/serve.py") + "    from vllm import LLM",
    ],
)
def test_a_log_that_names_vllm_is_of_vllm(log: str) -> None:
    assert find_printer(log).is_vllm is True


@pytest.mark.parametrize("rule", load_rules("programs"), ids=lambda rule: rule.id)
def test_what_only_another_program_prints_tells_it_unless_vllm_is_named(rule) -> None:
    assert find_printer(f"started\n{rule.hit}\n") == find_printer(rule.hit)
    assert (find_printer(rule.hit).is_vllm, find_printer(rule.hit).name) == (False, rule["value"])
    assert find_printer(f"{rule.hit}\nvllm serve org/model").is_vllm is True


def test_a_whole_traceback_of_somebody_s_script_tells_it() -> None:
    log = SCRIPT_LOG.format(path="/home/me/proj/train.py")
    of_a_rank = "".join(f"[rank0]: {line}\n" for line in log.splitlines())

    assert (find_printer(log).name, find_printer(of_a_rank).name) == (SCRIPT, SCRIPT)


@pytest.mark.parametrize(
    "log",
    [
        "ValueError: x",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n" * 30,
        SCRIPT_LOG.partition("\n")[2].partition("\n")[2],
        SCRIPT_LOG.format(path="<string>"),
        SCRIPT_LOG.format(path="/usr/lib/python3/dist-packages/ray/_private/workers/default_worker.py"),
        SCRIPT_LOG.format(path="/build/setup.py"),
        "docker: Error response from daemon: could not select device driver with capabilities: [[gpu]].",
    ],
)
def test_a_log_of_which_the_program_is_not_told_stays_undecided(log: str) -> None:
    assert find_printer(log).is_vllm is None
