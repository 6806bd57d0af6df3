"""A base of the starter cards, made once in a run of all tests: reading the cards takes some seconds."""

from __future__ import annotations

import os
import tempfile
import time
from functools import cache
from pathlib import Path

from app.knowledge.indexing.batches import load_starter_set
from app.store.backup.copy import copy_database
from app.store.schema import migrate
from app.store.session import Store, open_store

WAIT_S = 120.0
"""For a worker of pytest-xdist that makes the base; then each makes one of its own."""


def set_folder(basetemp: Path) -> None:
    """Where the base is made: pytest removes it. Workers of pytest-xdist share what lies above theirs."""
    is_shared = "PYTEST_XDIST_TESTRUNUID" in os.environ
    _FOLDER.append((basetemp.parent if is_shared else basetemp) / "cards")


_FOLDER: list[Path] = []


@cache
def starter_file() -> Path:
    """A migrated SQLite file with the starter cards in it; to be copied, not to be changed."""
    folder = _FOLDER[-1]
    try:
        folder.mkdir()
    except FileExistsError:
        made, until = folder / "triage.db", time.monotonic() + WAIT_S
        while not made.exists() and time.monotonic() < until:
            time.sleep(0.1)
        return made if made.exists() else _make(Path(tempfile.mkdtemp(dir=folder)))
    return _make(folder)


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
    copy_database(cards, store)
    cards.close()
