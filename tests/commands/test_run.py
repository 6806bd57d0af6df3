"""`triage run` and `triage watch` around real processes: streams, exit codes, signals, the answer under them."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from app.commands import run
from app.terminal.passing import Tail
from tests.command import LOG, environment_of
from tests.loopback import free_port
from tests.real_vllm import models, serving, vllm
from tests.served import CRASH, CRASH_NUMBER, served, starter_settings

__all__ = ["models", "vllm"]  # fixtures

GIGABYTE = 1 << 30
SERVING_S = 3.0
PATIENCE_S = 40.0
"""How long a real server may take to end before it is asked again; a busy one sometimes misses a signal."""
TRIES = 4


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(starter_settings(tmp_path_factory.mktemp("run"))) as address:
        yield address


def run_around(code: str, *options: str, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "app.cli", "run", *options, "--", sys.executable, "-c", code],
        cwd=folder,
        env=environment_of(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_each_stream_passes_as_it_is_and_the_answer_follows(tmp_path: Path, server: str) -> None:
    (tmp_path / "crash.log").write_text(CRASH, encoding="utf-8")
    out_of_it = bytes(range(256)) + b"a line of text\n" * 999
    code = (
        f"OUT = {out_of_it!r}; import sys, os; log = open('crash.log', 'rb').read(); os.write(1, OUT);"
        "os.write(2, log); sys.exit(41)"
    )
    options = ("--url", server, "--on-crash", "wc -c; echo code $1")
    out, errors = (process := run_around(code, *options, folder=tmp_path)).communicate(timeout=60)

    assert process.returncode == 41
    assert out == out_of_it
    assert errors.startswith(CRASH.encode())
    under = errors[len(CRASH) :].decode()
    assert "the command ended with exit code 41" in under
    assert "ROOT CAUSE" in under
    assert f"/issues/{CRASH_NUMBER}" in under
    assert f"{len(CRASH + out_of_it.decode('latin-1'))}\ncode 41\n" in under


def test_a_good_end_is_left_alone_and_the_environment_is_the_callers(tmp_path: Path) -> None:
    code = f"import os; print(os.environ.get('PYTHONSAFEPATH') == {environment_of().get('PYTHONSAFEPATH')!r})"
    out, errors = (process := run_around(code, folder=tmp_path)).communicate(timeout=60)

    assert (process.returncode, out, errors) == (0, b"True\n", b"")


def test_a_command_that_is_not_there_has_a_shells_exit_code(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "app.cli", "run", "no-such-command", "--port", "1"]
    answer = subprocess.run(
        command, env=environment_of(), cwd=tmp_path, capture_output=True, check=False, timeout=60
    )

    assert answer.returncode == 127
    assert answer.stderr.startswith(b"triage: no-such-command cannot be run: ")


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_a_signal_reaches_the_command_and_is_no_failure(tmp_path: Path, number: int) -> None:
    code = (
        "import signal, sys, time\n"
        f"signal.signal({int(number)}, lambda *_: (print('got it'), sys.exit(5)))\n"
        "print('ready', flush=True); time.sleep(60)"
    )
    process = run_around(code, folder=tmp_path)
    assert process.stdout
    assert process.stdout.read(6) == b"ready\n"
    process.send_signal(number)
    out, errors = process.communicate(timeout=60)

    assert (process.returncode, out, errors) == (5, b"got it\n", b"")


def test_a_command_killed_by_a_signal_is_told_as_killed_by_it(tmp_path: Path) -> None:
    process = run_around("import os; os.kill(os.getpid(), 9)", folder=tmp_path)
    process.communicate(timeout=60)

    assert process.returncode == -9


def test_on_a_terminal_the_command_has_one_and_ctrl_c_reaches_it_once(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys, time\n"
        "got = []\n"
        "signal.signal(2, lambda *_: got.append(1))\n"
        "print(os.isatty(1), os.isatty(2), os.get_terminal_size().columns, flush=True)\n"
        "time.sleep(1); time.sleep(1); print('interrupts', len(got)); sys.exit(3)"
    )
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "app.cli", "run", "--", sys.executable, "-c", code]
    process = subprocess.Popen(
        ["setsid", "--ctty", "--wait", *command],
        cwd=tmp_path,
        env=environment_of(),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    output = b""
    try:
        while chunk := os.read(ours, 4096):
            output += chunk
            if output.endswith(b"0\r\n"):  # the terminal has no size
                os.write(ours, b"\x03")
    except OSError:  # Linux tells the end of a terminal so
        pass
    os.close(ours)

    assert process.wait(60) == 3
    assert b"True True" in output
    assert b"interrupts 1\r\n" in output


@pytest.mark.long
def test_who_reads_no_more_ends_the_command_as_without_us(tmp_path: Path) -> None:
    process = run_around("while True: print('x' * 1000)", folder=tmp_path)
    assert process.stdout
    assert process.stderr
    process.stdout.read(10)
    process.stdout.close()
    process.stderr.read()

    assert process.wait(60) == 1
    process.stderr.close()


def test_a_fatal_error_without_an_end_is_answered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []
    monkeypatch.setattr(run, "_ask", lambda log, _options: asked.append(log))
    tail = Tail(limit=10_000)
    answer = run._OneDiagnosis(tail, None, None)
    tail.add(b"INFO all is well\n")
    answer.if_it_hangs()
    tail.add(LOG.encode())
    answer.if_it_hangs()
    assert not asked

    with patch.object(time, "monotonic", lambda: run.HANG_S + 1e9):
        answer.if_it_hangs()
    answer.once("the command ended")

    assert asked == [b"INFO all is well\n" + LOG.encode()]


def test_watch_passes_a_stream_and_answers_at_its_end(tmp_path: Path, server: str) -> None:
    command = [sys.executable, "-m", "app.cli", "watch", "--url", server]
    answer = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment_of(),
        input=CRASH.encode(),
        capture_output=True,
        check=False,
        timeout=60,
    )

    assert answer.returncode == 0
    assert answer.stdout == CRASH.encode()
    assert f"/issues/{CRASH_NUMBER}".encode() in answer.stderr


@pytest.mark.long
def test_a_gigabyte_passes_whole_in_little_memory(tmp_path: Path) -> None:
    code = "import os\nfor _ in range(16384):\n  left = memoryview(b'0123456789abcdef' * 4096)\n  while left: left = left[os.write(1, left):]"
    process = run_around(code, folder=tmp_path)
    assert process.stdout
    assert process.stderr
    drained = threading.Thread(target=process.stderr.read)
    drained.start()
    size, peak_kib = 0, 0
    while chunk := os.read(process.stdout.fileno(), 1 << 20):
        start = b"0123456789abcdef" * (len(chunk) // 16 + 2)
        assert chunk == start[size % 16 : size % 16 + len(chunk)]
        size += len(chunk)
        status = Path(f"/proc/{process.pid}/status").read_text()
        peak_kib = max(
            peak_kib, *(int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line), 0
        )
    drained.join()
    process.stdout.close()
    process.stderr.close()

    assert process.wait(60) == 0
    assert size == GIGABYTE
    assert peak_kib < 60 * 1024


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
def test_a_real_server_ends_by_the_same_signals_as_without_us(
    number: signal.Signals, vllm: Path, models: Path
) -> None:
    bare = end_by(number, vllm, models / "tiny-llama")
    under_run = end_by(number, vllm, models / "tiny-llama", sys.executable, "-m", "app.cli", "run", "--")

    assert under_run == bare
