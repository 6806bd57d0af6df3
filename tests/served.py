"""A server on the loopback, in a thread of the test, over a base of the starter cards."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import socket
from typing import Any

import uvicorn

from app.config import Settings
from app.knowledge.starter_set import load_starter_set
from app.main import create_app
from app.store.schema import migrate
from app.store.session import open_store

CRASH = """\
(APIServer pid=412) INFO 06-03 03:12:44 [api_server.py:866] vLLM API server version 0.19.0
(EngineCore_DP0 pid=71) ERROR 06-03 03:12:51 [core.py:866] Traceback (most recent call last):
(EngineCore_DP0 pid=71) ERROR 06-03 03:12:51 [core.py:866]   File "/srv/vllm/worker/model_runner.py", line 12, in capture
(EngineCore_DP0 pid=71) ERROR 06-03 03:12:51 [core.py:866]   File "/srv/vllm/model_executor/models/mllama.py", line 77, in forward
(EngineCore_DP0 pid=71) ERROR 06-03 03:12:51 [core.py:866] RuntimeError: CUDA error: operation not permitted when stream is capturing
"""
CRASH_NUMBER = 10445
"""The starter card that tells of this crash."""
START_TIMEOUT_S = 20.0


def starter_settings(folder: Path, **more: Any) -> Settings:
    """Settings over a migrated SQLite file with the starter cards in it."""
    settings = Settings(database_url=f"sqlite:///{folder}/triage.db", _env_file=None, **more)  # type: ignore[call-arg]
    store = open_store(settings.database_url)
    migrate(store)
    load_starter_set(store)
    store.close()
    return settings


@contextmanager
def served(settings: Settings) -> Iterator[str]:
    """The address of a running server."""
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    config = uvicorn.Config(create_app(settings), host="127.0.0.1", port=port, log_level="error", lifespan="on")
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
