"""One sync at a time: the lock is refused to a second holder and freed by whatever ends the first."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.errors import StoreError
from app.store.engine.sync_lock import sync_holder, sync_lock
from app.store.github.issues import add_repository, find_repository
from app.store.session import Store, open_store

REPO = "acme/engine"
HOLDER = """
import sys, time
from app.store.session import open_store
from app.store.engine.sync_lock import sync_lock
with sync_lock(open_store(sys.argv[1]).engine) as held:
    print(held, flush=True)
    time.sleep(60)
"""


def url_of(store: Store) -> str:
    return store.engine.url.render_as_string(hide_password=False)


@pytest.fixture
def other(store: Store) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, url_of(store)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "True\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def freed_within(store: Store, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with sync_lock(store.engine) as held:
            if held:
                return True
        time.sleep(0.05)
    return False


def test_the_first_holds_and_the_second_is_refused(store: Store) -> None:
    with sync_lock(store.engine) as first, sync_lock(store.engine) as second:
        assert (first, second) == (True, False)


def test_the_end_frees_it(store: Store) -> None:
    with sync_lock(store.engine):
        pass
    with sync_lock(store.engine) as held:
        assert held


def test_an_error_frees_it(store: Store) -> None:
    with pytest.raises(LookupError), sync_lock(store.engine):
        raise LookupError
    with sync_lock(store.engine) as held:
        assert held


def test_another_process_is_refused_too_and_named(store: Store, other: subprocess.Popen[str]) -> None:
    with sync_lock(store.engine) as held:
        assert not held
    assert sync_holder(store.engine) == f"process {other.pid} on {socket.gethostname()}"


def test_kill_9_frees_it(store: Store, other: subprocess.Popen[str]) -> None:
    other.send_signal(signal.SIGKILL)
    other.wait()

    assert freed_within(store, 10)


def test_without_a_holder_there_is_no_name(store: Store) -> None:
    assert sync_holder(store.engine) is None
    with sync_lock(store.engine):
        assert str(os.getpid()) in (sync_holder(store.engine) or "")
    assert sync_holder(store.engine) is None


def test_a_look_at_the_holder_refuses_it_to_nobody(store: Store) -> None:
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            sync_holder(store.engine)
            time.sleep(0.01)

    looking = [threading.Thread(target=look) for _ in range(3)]
    for thread in looking:
        thread.start()
    try:
        for _ in range(20):
            with sync_lock(store.engine) as held:
                assert held
    finally:
        stop.set()
        for thread in looking:
            thread.join()


def test_readers_and_writers_do_not_wait_for_it(store: Store, other: subprocess.Popen[str]) -> None:
    with store.unit_of_work() as session:
        added = add_repository(session, REPO)
    with store.reading() as session:
        assert find_repository(session, REPO) == added


def test_who_waits_is_told_once_and_gets_it(store: Store, other: subprocess.Popen[str]) -> None:
    holders: list[str] = []

    def note(holder: str) -> None:
        holders.append(holder)
        other.kill()

    with sync_lock(store.engine, wait_s=20, on_wait=note) as held:
        assert held
    assert holders == [f"process {other.pid} on {socket.gethostname()}"]


def test_waiting_ends(store: Store, other: subprocess.Popen[str]) -> None:
    began = time.monotonic()
    with sync_lock(store.engine, wait_s=0.6) as held:
        assert not held
    assert time.monotonic() - began < 5


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/triage.db")
    (tmp_path / "triage.db.sync-lock").mkdir()
    with pytest.raises(StoreError, match="sync lock"), sync_lock(store.engine):
        pass
    store.close()
