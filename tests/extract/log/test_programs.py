"""Which program printed a log: vLLM, another one, or one that the log does not tell."""

from __future__ import annotations

import pytest

from app.extract.log.programs import PYTHON, Printer
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
        SCRIPT_LOG.format(path="/home/me/serve.py") + "INFO 11-20 08:12:01 [launcher.py:77] Route: /health",
    ],
)
def test_a_log_that_names_vllm_is_of_vllm(log: str) -> None:
    assert find_printer(log).is_vllm is True


@pytest.mark.parametrize("rule", load_rules("programs"), ids=lambda rule: rule.id)
def test_what_only_another_program_prints_tells_it_unless_vllm_is_named(rule) -> None:
    assert find_printer(f"started\n{rule.hit}\n") == find_printer(rule.hit)
    assert (find_printer(rule.hit).is_vllm, find_printer(rule.hit).name) == (False, rule["value"])
    assert find_printer(f"{rule.hit}\nvllm serve org/model").is_vllm is True


def test_what_stands_before_a_line_does_not_hide_the_program() -> None:
    line = "2026/11/20 08:12:01 [error] 77#77: *4 no live upstreams"

    assert find_printer(f"proxy-1  | {line}").name == "nginx"
    assert find_printer(f"Nov 20 08:12:01 host7 proxy[77]: {line}").name == "nginx"


def test_a_whole_traceback_through_somebody_s_own_file_tells_it() -> None:
    log = SCRIPT_LOG.format(path="/home/me/proj/train.py")
    of_a_rank = "".join(f"[rank0]: {line}\n" for line in log.splitlines())
    indented = "".join(f"    {line}\n" for line in log.splitlines())
    windows = SCRIPT_LOG.format(path="C:\\shop\\train.py")
    inside = log.replace(
        '  File "/home', '  File "/venv/lib/python3.12/asyncio/runners.py", line 1, in run\n  File "/home'
    )

    names = {find_printer(text).name for text in (log, of_a_rank, indented, windows, inside)}
    assert names == {f"{PYTHON} (train.py)"}


@pytest.mark.parametrize(
    "log",
    [
        "ValueError: x",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n" * 30,
        SCRIPT_LOG.partition("\n")[2].partition("\n")[2],
        SCRIPT_LOG.format(path="<string>"),
        SCRIPT_LOG.format(path="/usr/lib/python3/dist-packages/ray/_private/workers/default_worker.py"),
        SCRIPT_LOG.format(path="/build/setup.py"),
        SCRIPT_LOG.format(path="/var/cache/torchinductor_me/ab/cab.py"),
        SCRIPT_LOG.format(path="/home/me/ask.py") + "openai.BadRequestError: Error code: 400",
        SCRIPT_LOG.format(path="/home/me/ask.py").replace("main()", "answers = llm.generate(prompts)"),
        SCRIPT_LOG.format(path="/home/me/ask.py").replace("main()", "params = SamplingParams(7)"),
        SCRIPT_LOG.format(path="/home/me/train.py").removesuffix(SCRIPT_LOG.splitlines(keepends=True)[-1]),
        SCRIPT_LOG.format(path="/home/me/train.py").replace("    main()", "..."),
        "Nov 20 08:12:01 gpu7 kernel: NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.",
        "[ 77.323444] Out of memory: Killed process 77 (python3) total-vm:7kB",
        "nginx: [emerg] bind() failed\ntorch.OutOfMemoryError: CUDA out of memory.",
        "docker: Error response from daemon: could not select device driver with capabilities: [[gpu]].",
    ],
)
def test_a_log_of_which_the_program_is_not_told_stays_undecided(log: str) -> None:
    assert find_printer(log).is_vllm is None
