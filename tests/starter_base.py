"""A base of the starter cards, made once in each test process: reading the cards takes more than a second."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from app.knowledge.indexing.batches import load_starter_set
from app.store.backup.copy import copy_base
from app.store.schema import migrate
from app.store.session import Store, open_store


@cache
def starter_file() -> Path:
    """A migrated SQLite file with the starter cards in it; to be copied, not to be changed."""
    folder = Path(tempfile.mkdtemp(prefix="triage-cards-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    store = open_store(f"sqlite:///{folder}/triage.db")
    migrate(store)
    load_starter_set(store)
    store.close()
    return folder / "triage.db"


def put_cards(store: Store) -> None:
    """The starter cards, copied into a migrated, empty archive."""
    cards = open_store(f"sqlite:///{starter_file()}")
    copy_base(cards, store)
    cards.close()
