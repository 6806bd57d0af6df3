"""The command `triage` as a person meets it, in this process or in one of its own."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import structlog

from app import cli
from app.store.session import Store

LIMIT = 10 * 1024 * 1024

LOG = """\
(EngineCore_DP0 pid=71) ERROR 03-02 10:11:12 [core.py:866] EngineCore failed to start.
(EngineCore_DP0 pid=71) ERROR 03-02 10:11:12 [core.py:866] Traceback (most recent call last):
(EngineCore_DP0 pid=71) ERROR 03-02 10:11:12 [core.py:866]   File "/opt/venv/lib/python3.12/site-packages/vllm/v1/core/kv_cache_utils.py", line 700, in check_enough_kv_cache_memory
(EngineCore_DP0 pid=71) ERROR 03-02 10:11:12 [core.py:866] ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.
"""

OURS = {"TRIAGE_DATABASE_URL": "sqlite:///triage.db", "TRIAGE_GITHUB_API_URL": "http://127.0.0.1:9"}
"""A base in the working folder, and a GitHub that cannot be reached."""

Answer = subprocess.CompletedProcess[bytes]


def environment_of(**settings: str) -> dict[str, str]:
    """This process's environment with no settings of ours but these, and a GitHub that cannot be reached."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRIAGE_")}
    root = str(Path(__file__).parents[1])
    return kept | {"PYTHONPATH": root} | OURS | settings


def triage(*arguments: str | Path, folder: Path, given: bytes = b"", **settings: str) -> Answer:
    """Run the command in this process: a start of Python for each would take most of the time."""
    opened: list[Store] = []
    made = Store.__init__

    def note(store: Store, *parts: Any) -> None:
        made(store, *parts)
        opened.append(store)

    streams = [io.TextIOWrapper(io.BytesIO(text), encoding="utf-8") for text in (given, b"", b"")]
    logging = structlog.get_config()
    with (
        contextlib.chdir(folder),
        patch.dict(os.environ, environment_of(**settings), clear=True),
        patch.multiple(
            sys, argv=["triage", *map(str, arguments)], **dict(zip(_STREAMS, streams, strict=True))
        ),
        patch.object(Store, "__init__", note),
    ):
        try:
            cli.main()
        except SystemExit as left:
            code = left.code
        finally:
            structlog.configure(**logging)
            for store in opened:
                store.close()
    assert isinstance(code, int)
    out, errors = (_written(stream) for stream in streams[1:])
    return Answer(["triage", *map(str, arguments)], code, out, errors)


_STREAMS = ("stdin", "stdout", "stderr")


def _written(stream: io.TextIOWrapper) -> bytes:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue()


def triage_process(*arguments: str | Path, folder: Path, given: bytes = b"", **settings: str) -> Answer:
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "app.cli", *map(str, arguments)],
        cwd=folder,
        env=environment_of(**settings),
        input=given,
        capture_output=True,
        check=False,
        timeout=120,
    )


def one_line(answer: Answer) -> str:
    """What was said on stderr; it must be a single line without a traceback."""
    text = answer.stderr.decode().strip()
    assert "\n" not in text, text
    assert "Traceback" not in text
    return text
