"""A real vLLM ends by the same signals, and with the same exit code, under `triage run` as without it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.loopback import free_port
from tests.real_vllm import models, serving, vllm

__all__ = ["models", "vllm"]  # fixtures

SERVING_S = 3.0
PATIENCE_S = 40.0
"""How long a server may take to end before it is asked again; vLLM sometimes misses a signal."""
TRIES = 4


def end_by(number: signal.Signals, vllm: Path, model: Path, *before: str) -> tuple[int, int]:
    """The exit code of a server that was sent a signal until it ended, and how often."""
    with serving(vllm, model, free_port(), tokens=512, before=before) as process:
        assert process.poll() is None
        time.sleep(SERVING_S)
        for count in range(1, TRIES + 1):
            process.send_signal(number)
            try:
                return process.wait(PATIENCE_S), count
            except subprocess.TimeoutExpired:
                continue
    raise AssertionError(f"still there after {TRIES} signals")


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_ends_by_the_same_signals_as_without_us(
    number: signal.Signals, vllm: Path, models: Path
) -> None:
    bare = end_by(number, vllm, models / "tiny-llama")
    under_run = end_by(number, vllm, models / "tiny-llama", sys.executable, "-m", "app.cli", "run", "--")

    assert under_run == bare
