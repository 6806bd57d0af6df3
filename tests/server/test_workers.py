"""Whatever signal comes, and to whomever: no worker stays, the port is free, and who was being answered is."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from socket import IPPROTO_TCP, SO_REUSEADDR, SOL_SOCKET, TCP_NODELAY, create_connection, socket

import httpx
import pytest
from uvicorn import Config

from app.server.workers import bind
from tests.loopback import free_port, wait_until

ROOT = Path(__file__).parents[2]
WAIT_S = 30.0


def processes_of(session: int) -> set[int]:
    """Ids of the living ones."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            answer = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if answer[3] == str(session) and answer[0] != "Z":
            found.add(int(path.parent.name))
    return found


@dataclass
class Served:
    """The small server, alone in a session of its own."""

    process: subprocess.Popen[bytes]
    port: int
    workers: set[str] = field(default_factory=set)

    def ask(self, path: str = "/") -> str:
        answer = httpx.get(f"http://127.0.0.1:{self.port}{path}", timeout=WAIT_S, trust_env=False)
        assert answer.status_code == 200
        return answer.text

    def answering(self) -> set[str]:
        """Ids of the workers that answered just now; of a worker that starts, none."""
        try:
            return {self.ask() for _ in range(6)}
        except httpx.HTTPError:
            return set()

    def signal_all(self, number: int) -> None:
        os.killpg(self.process.pid, number)

    def is_gone(self) -> bool:
        """No process is left, and the port can be had."""
        if processes_of(self.process.pid):
            return False
        with socket() as probe:
            probe.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", self.port))
            probe.listen()
        return True


Start = Callable[..., Served]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Served] = []

    def run(*options: str, stdin: int = subprocess.DEVNULL, is_up: bool = True) -> Served:
        port = free_port()
        with (tmp_path / "log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.small_server", str(port), *options],
                cwd=ROOT,
                stdin=stdin,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        found = Served(process, port)
        started.append(found)
        if is_up:
            wait_until(
                lambda: found.workers.update(found.answering()) or len(found.workers) == 2, "it did not start"
            )
        return found

    yield run
    for found in started:
        for left in processes_of(found.process.pid):
            os.kill(left, signal.SIGKILL)
        found.process.wait()


@pytest.fixture
def terminal() -> Iterator[int]:
    """One that controls the server and can be closed by it alone."""
    ours, theirs = pty.openpty()
    with closing(os.fdopen(ours, "rb", buffering=0)), closing(os.fdopen(theirs, "rb", buffering=0)):
        yield theirs


def asked_slowly(served: Served) -> tuple[threading.Thread, list[str]]:
    """Somebody who is being answered now, and later the answer."""
    answers: list[str] = []
    thread = threading.Thread(target=lambda: answers.append(served.ask("/slow")))
    thread.start()
    time.sleep(0.3)
    return thread, answers


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.long), signal.SIGTERM])
def test_a_signal_to_all_ends_all_and_cuts_nobody_off(start: Start, number: int) -> None:
    served = start()
    thread, answers = asked_slowly(served)
    served.signal_all(number)

    assert served.process.wait(WAIT_S) == 0
    thread.join(WAIT_S)
    assert len(answers) == 1
    wait_until(served.is_gone, "a worker stays")


@pytest.mark.long
def test_a_signal_to_all_ends_all_that_have_died_of_it_before(start: Start) -> None:
    served = start()
    served.signal_all(signal.SIGQUIT)

    assert served.process.wait(WAIT_S) == 0
    wait_until(served.is_gone, "a worker stays")


@pytest.mark.long
def test_workers_end_with_a_parent_that_was_killed_and_cut_nobody_off(start: Start) -> None:
    served = start()
    thread, answers = asked_slowly(served)
    served.process.kill()
    served.process.wait()

    thread.join(WAIT_S)
    assert len(answers) == 1
    wait_until(served.is_gone, "a worker stays")


@pytest.mark.long
def test_a_hangup_of_the_terminal_ends_all_and_cuts_nobody_off(start: Start, terminal: int) -> None:
    served = start("terminal", stdin=terminal)
    thread, answers = asked_slowly(served)
    served.signal_all(signal.SIGHUP)

    assert served.process.wait(WAIT_S) == 0
    thread.join(WAIT_S)
    assert len(answers) == 1
    wait_until(served.is_gone, "a worker stays")


@pytest.mark.long
def test_a_hangup_that_is_ignored_changes_nothing(start: Start, terminal: int) -> None:
    served = start("terminal", "ignoring", stdin=terminal)
    served.signal_all(signal.SIGHUP)
    time.sleep(0.8)  # longer than the parent takes to look

    assert served.answering() <= served.workers


@pytest.mark.long
def test_a_hangup_without_a_terminal_renews_the_workers_and_cuts_nobody_off(start: Start) -> None:
    served = start()
    thread, answers = asked_slowly(served)
    served.process.send_signal(signal.SIGHUP)

    def are_new() -> bool:
        assert served.ask()  # at every moment somebody answers
        now = served.answering()
        return len(now) == 2 and not now & served.workers

    wait_until(are_new, "they stay the old ones")
    thread.join(WAIT_S)
    assert set(answers) <= served.workers
    old = {int(worker) for worker in served.workers}
    wait_until(lambda: not processes_of(served.process.pid) & old, "an old worker stays")


def test_a_worker_that_died_is_started_again_and_ends_with_the_others(start: Start) -> None:
    served = start()
    dead = next(iter(served.workers))
    os.kill(int(dead), signal.SIGKILL)
    wait_until(lambda: len(served.answering() - {dead}) == 2, "it was not started again")
    served.signal_all(signal.SIGTERM)

    assert served.process.wait(WAIT_S) == 0
    wait_until(served.is_gone, "a worker stays")


def test_workers_that_cannot_start_end_the_server_and_it_says_so(start: Start) -> None:
    served = start("failing", is_up=False)

    assert served.process.wait(WAIT_S) == 9
    wait_until(served.is_gone, "a worker stays")


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_all_at_any_moment_of_the_start_leaves_nothing(start: Start, number: int) -> None:
    for at in range(12):
        served = start(is_up=False)
        time.sleep(0.15 * at)
        served.signal_all(number)
        served.process.wait(WAIT_S)
        wait_until(served.is_gone, f"a worker stays after {0.15 * at:.2f} s")


@pytest.mark.long
@pytest.mark.parametrize("first", [None, signal.SIGHUP])
def test_a_frozen_worker_holds_up_no_end(start: Start, first: int | None) -> None:
    served = start("hasty")
    for worker in served.workers:
        os.kill(int(worker), signal.SIGSTOP)
    if first is not None:
        served.process.send_signal(first)
        time.sleep(0.2)
    served.process.send_signal(signal.SIGTERM)

    assert served.process.wait(20) == 0
    wait_until(served.is_gone, "a worker stays")


def test_the_body_of_an_answer_does_not_wait_for_the_clients_acknowledgement_of_its_head() -> None:
    with closing(bind(Config("none", port=0))) as listening:
        listening.listen()
        with create_connection(listening.getsockname()), closing(listening.accept()[0]) as accepted:
            assert accepted.getsockopt(IPPROTO_TCP, TCP_NODELAY)
