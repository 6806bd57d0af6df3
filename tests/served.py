"""Servers on the loopback, in a thread of the test or as `triage serve`, over a base of the starter cards."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from app.config import Settings
from app.main import create_app
from tests.loopback import free_port, wait_until
from tests.starter_base import starter_file

CRASH = """\
(APIServer pid=412) INFO 06-03 03:12:44 [api_server.py:866] vLLM API server version 0.19.0
(EngineCore_DP0 pid=71) ERROR 06-03 03:12:51 [core.py:866] Traceback (most recent call last):
(EngineCore_DP0 pid=71) ERROR 06-03 03:12:51 [core.py:866]   File "/srv/vllm/worker/model_runner.py", line 12, in capture
(EngineCore_DP0 pid=71) ERROR 06-03 03:12:51 [core.py:866]   File "/srv/vllm/model_executor/models/mllama.py", line 77, in forward
(EngineCore_DP0 pid=71) ERROR 06-03 03:12:51 [core.py:866] RuntimeError: CUDA error: operation not permitted when stream is capturing
"""
CRASH_NUMBER = 10445
"""The starter card that tells of this crash."""
START_TIMEOUT_S = 60.0


def starter_settings(folder: Path, **more: Any) -> Settings:
    """Settings over a migrated SQLite file with the starter cards in it."""
    settings = Settings(database_url=f"sqlite:///{folder}/triage.db", _env_file=None, **more)  # type: ignore[call-arg]
    shutil.copyfile(starter_file(), folder / "triage.db")
    return settings


@contextmanager
def served(settings: Settings) -> Iterator[str]:
    """The address of a running server."""
    port = free_port()
    config = uvicorn.Config(
        create_app(settings), host="127.0.0.1", port=port, log_level="error", lifespan="on"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until = time.monotonic() + START_TIMEOUT_S
    while not server.started and thread.is_alive() and time.monotonic() < until:
        time.sleep(0.01)
    assert server.started, "the server did not start"
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(START_TIMEOUT_S)


def answers(port: int) -> bool:
    """Whether a server on the loopback answers."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=5, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


@contextmanager
def serving(
    base: str, *options: str, log: Path = Path(os.devnull), open_files: int | None = None, **environment: str
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The process of `triage serve`, which answers, and its port.

    Args:
        log: where what it says on stderr goes.
        open_files: the most files that each of its processes may have open.
    """
    port = free_port()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRIAGE_")}
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "app.cli", "serve", "--port", str(port), *options],
            cwd=Path(__file__).parents[1],
            env=kept | {"TRIAGE_DATABASE_URL": base, "TRIAGE_RATE_LIMIT": "off"} | environment,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )
    if open_files is not None:  # its workers, which look at the limit, come a second later
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (open_files, open_files))

    def is_up() -> bool:
        assert process.poll() is None, "it did not start"
        return answers(port)

    try:
        wait_until(is_up, "it did not answer", START_TIMEOUT_S)
        yield process, port
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
