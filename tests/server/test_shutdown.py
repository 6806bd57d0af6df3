"""`triage serve` told to stop: what is being asked is answered, the process ends, and the sync lock is free."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from app.config import LOG_LIMIT_BYTES
from app.store.engine.sync_lock import sync_holder
from app.store.session import open_store
from tests.loopback import wait_until
from tests.served import CRASH, CRASH_NUMBER, START_TIMEOUT_S, serving, starter_settings

pytestmark = pytest.mark.long

STOP_S = 15.0
ENDED = {0, -signal.SIGTERM, 128 + signal.SIGTERM}
"""uvicorn raises the signal again when it has stopped."""


@pytest.fixture
def base(tmp_path: Path) -> str:
    return starter_settings(tmp_path).database_url


@pytest.fixture
def slow_github() -> Iterator[tuple[str, threading.Event]]:
    """A GitHub that takes a request and does not answer it, and whether one came."""
    asked, done = threading.Event(), threading.Event()

    class Slow(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.set()
            done.wait(START_TIMEOUT_S)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    done.set()
    server.shutdown()
    server.server_close()
    thread.join()


def stop(process: subprocess.Popen[bytes]) -> float:
    """Tell it to stop; how long it took, in seconds."""
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(STOP_S) in ENDED
    return time.monotonic() - began


def holder_of(base: str) -> str | None:
    store = open_store(base)
    try:
        return sync_holder(store.engine)
    finally:
        store.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_log_that_is_being_sent_is_taken_and_answered(base: str, workers: int) -> None:
    log = (CRASH + "\n" * 1000).encode()
    with serving(base, "--workers", str(workers)) as (process, port):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=STOP_S)
        connection.putrequest("POST", "/api/v1/diagnose")
        connection.putheader("Content-Type", "text/plain")
        connection.putheader("Content-Length", str(len(log)))
        connection.endheaders(log[:500])
        time.sleep(0.5)  # one of the workers has begun to read it
        process.send_signal(signal.SIGTERM)
        time.sleep(0.5)  # it is about to stop
        connection.send(log[500:])
        answer = connection.getresponse()
        found = answer.read().decode()
        connection.close()

        assert (answer.status, str(CRASH_NUMBER) in found) == (200, True)
        assert process.wait(STOP_S) in ENDED


@pytest.mark.parametrize("workers", [1, 2])
def test_logs_that_are_being_read_are_answered(base: str, workers: int) -> None:
    log = (CRASH * (LOG_LIMIT_BYTES // len(CRASH))).encode()
    answers: list[int] = []
    with serving(base, "--workers", str(workers)) as (process, port):

        def ask() -> None:
            url = f"http://127.0.0.1:{port}/api/v1/diagnose"
            answers.append(
                httpx.post(
                    url, content=log, headers={"content-type": "text/plain"}, timeout=60, trust_env=False
                ).status_code
            )

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(0.3)  # the bodies are there, their answers are not
        stop(process)
        for thread in threads:
            thread.join(STOP_S)

    assert answers == [200, 200, 200]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_sync_beside_it_ends_too_and_leaves_the_lock_free(
    base: str, workers: int, slow_github: tuple[str, threading.Event]
) -> None:
    url, asked = slow_github
    with serving(base, "--workers", str(workers), "--sync-every", "1h", TRIAGE_GITHUB_API_URL=url) as (
        process,
        _port,
    ):
        wait_until(asked.is_set, "no sync began", START_TIMEOUT_S)
        assert holder_of(base) is not None
        stop(process)
        assert holder_of(base) is None
        wait_until(lambda: not left_of(process), "a process of its own outlives it", START_TIMEOUT_S)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_server_leaves_no_process_and_no_lock(
    base: str, workers: int, slow_github: tuple[str, threading.Event]
) -> None:
    url, asked = slow_github
    with serving(base, "--workers", str(workers), "--sync-every", "1h", TRIAGE_GITHUB_API_URL=url) as (
        process,
        _port,
    ):
        wait_until(asked.is_set, "no sync began", START_TIMEOUT_S)
        process.kill()
        process.wait()
        wait_until(lambda: not left_of(process), "a process of its own outlives it", START_TIMEOUT_S)
        assert holder_of(base) is None


@pytest.mark.parametrize(
    ("workers", "number"), [(1, signal.SIGINT), (1, signal.SIGHUP), (2, signal.SIGINT), (2, signal.SIGTERM)]
)
def test_a_signal_to_all_its_processes_ends_all_and_cuts_nobody_off(
    base: str, workers: int, number: int, slow_github: tuple[str, threading.Event]
) -> None:
    url, asked = slow_github
    log = (CRASH * (LOG_LIMIT_BYTES // 4 // len(CRASH))).encode()
    answers: list[int] = []
    with serving(base, "--workers", str(workers), "--sync-every", "1h", TRIAGE_GITHUB_API_URL=url) as (
        process,
        port,
    ):
        wait_until(asked.is_set, "no sync began", START_TIMEOUT_S)

        def ask() -> None:
            url = f"http://127.0.0.1:{port}/api/v1/diagnose"
            answers.append(
                httpx.post(
                    url, content=log, headers={"content-type": "text/plain"}, timeout=60, trust_env=False
                ).status_code
            )

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        time.sleep(0.3)  # the bodies are there, their answers are not
        os.killpg(process.pid, number)
        assert process.wait(STOP_S) in ENDED | {-number, 128 + number}
        for thread in threads:
            thread.join(STOP_S)
        wait_until(lambda: not left_of(process), "a process of its own outlives it", START_TIMEOUT_S)
        assert holder_of(base) is None

    assert answers == [200, 200]


def left_of(process: subprocess.Popen[bytes]) -> list[str]:
    """Processes of its session that outlive it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().rpartition(")")
        except OSError:
            continue
        if rest.split()[3] == str(process.pid) and rest.split()[0] != "Z":
            found.append(name)
    return found


def test_a_server_without_anything_to_do_stops_at_once(base: str) -> None:
    with serving(base) as (process, _port):
        assert stop(process) < 5
