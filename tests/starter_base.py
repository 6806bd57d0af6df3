"""A base of the starter cards, made once in a run of all tests: reading the cards takes some seconds."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import time
from functools import cache
from pathlib import Path

from app.knowledge.indexing.batches import load_starter_set
from app.store.backup.copy import copy_base
from app.store.schema import migrate
from app.store.session import Store, open_store

WAIT_S = 120.0
"""For a worker of pytest-xdist that makes the base; then each makes one of its own."""


def shared_folder(run: str) -> Path:
    """Where the workers of one run of pytest-xdist share the base; its controller removes it at the end."""
    return Path(tempfile.gettempdir()) / f"triage-cards-{run}"


@cache
def starter_file() -> Path:
    """A migrated SQLite file with the starter cards in it; to be copied, not to be changed."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None:
        folder = Path(tempfile.mkdtemp(prefix="triage-cards-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return _make(folder)
    shared = shared_folder(run)
    try:
        shared.mkdir()
    except FileExistsError:
        made, until = shared / "triage.db", time.monotonic() + WAIT_S
        while not made.exists() and time.monotonic() < until:
            time.sleep(0.1)
        return made if made.exists() else _make(Path(tempfile.mkdtemp(dir=shared)))
    return _make(shared)


def _make(folder: Path) -> Path:
    draft = folder / "draft.db"
    store = open_store(f"sqlite:///{draft}")
    migrate(store)
    load_starter_set(store)
    store.close()
    return draft.rename(folder / "triage.db")


def put_cards(store: Store) -> None:
    """The starter cards, copied into a migrated, empty archive."""
    cards = open_store(f"sqlite:///{starter_file()}")
    copy_base(cards, store)
    cards.close()
