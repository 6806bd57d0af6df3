"""Work in the background of a server: when a round runs, and the separate process that runs it.

The server's own process loads no client of GitHub or of a model for it: `rounds` does, in that process.
"""

import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing, suppress

from app.config import Settings
from app.errors import StoreError
from app.store.github.issues import add_repository
from app.store.github.sync_state import begin_run, end_run
from app.store.session import open_store
from app.terminal.events import announce

LOOK_EVERY_S = 0.2
STOP_TIMEOUT_S = 5.0

Background = Callable[[threading.Event], object]
"""Runs until the event is set."""


def background_sync(one_round: Background, every_s: float | None) -> Background:
    """Return a function that runs a round now, and then one every `every_s` until stopped."""

    def run(stop: threading.Event) -> None:
        pause: float | None = 0.0
        while pause is not None and not stop.wait(pause):
            one_round(stop)
            pause = every_s

    return run


def round_apart(settings: Settings, stop: threading.Event) -> None:
    """Run one sync round in a separate low-priority process, so that it does not slow down responses.

    The process is not in the server's process group, and exits when its stdin closes, as the server stops or
    dies. A failed round is recorded in the database, so that all pages and `/readyz` show it.
    """
    if code := _run_apart([sys.executable, "-m", "app.server.rounds", "sync"], stop):
        _note_death(settings, code)


def reading_apart(stop: threading.Event) -> None:
    """Run one round of the operator's models in a separate process."""
    if code := _run_apart([sys.executable, "-m", "app.server.rounds", "reading"], stop):
        announce(f"reading by the model ended with code {code}, and its log says why")


def _run_apart(command: list[str], stop: threading.Event) -> int:
    """Run a process that exits when its stdin closes; return its exit code, or 0 if it was stopped."""
    try:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, process_group=0)
    except OSError as error:
        announce(f"a round could not begin: {error.strerror}")
        return 0
    with child:
        while child.poll() is None:
            if stop.wait(LOOK_EVERY_S) and child.stdin is not None:
                child.stdin.close()
                try:
                    child.wait(STOP_TIMEOUT_S)
                except subprocess.TimeoutExpired:
                    child.kill()
    return 0 if stop.is_set() else child.returncode


def _note_death(settings: Settings, code: int) -> None:
    fault = f"its process ended with code {code}, and its log says why"
    announce(f"the background sync failed: {fault}")
    with (
        suppress(StoreError),
        closing(open_store(settings.database_url)) as store,
        store.unit_of_work() as session,
    ):
        run_id = begin_run(session, add_repository(session, settings.default_repo))
        end_run(session, run_id, outcome="failed", fault=fault)
