"""A base's file: its rights, and what is left in it of what was deleted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.knowledge.diagnosis.kept_logs import forget_log
from app.knowledge.operations.retention import forget_old
from app.store.people import KeptLogRecord, add_kept_log
from app.store.schema import migrate
from app.store.session import Store, open_store

NOW = datetime.now(UTC)
SECRET = "0123456789abcdef"
SECRET_HASH = "9f9f5111f7b27a781f1f1ddde5ebc2dd2b796bfc7365c9c28b548e564176929f"


def kept(number: int, log: str, days: int) -> KeptLogRecord:
    return KeptLogRecord(f"{number:032x}", SECRET_HASH, log, {}, NOW, NOW + timedelta(days=days))


def content(store: Store) -> bytes:
    """All bytes of the base and of what lies beside it."""
    path = Path(store.engine.url.database or "")
    return b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))


@pytest.mark.parametrize("length", [60, 300_000])
def test_nothing_is_left_of_a_kept_log_that_was_deleted(sqlite_store: Store, length: int) -> None:
    words = ["the first of the logs ", "the second of the logs "]
    with sqlite_store.unit_of_work() as session:
        add_kept_log(session, kept(1, words[0] * (length // 20), 30))
        add_kept_log(session, kept(2, words[1] * (length // 20), -1))
    assert all(one.encode() in content(sqlite_store) for one in words)

    forget_log(sqlite_store, f"{1:032x}", SECRET)
    assert forget_old(sqlite_store).kept_logs in {0, 1}

    assert not [one for one in words if one.encode() in content(sqlite_store)]


def test_a_base_and_its_log_are_for_their_owner_alone(tmp_path: Path) -> None:
    new, old = tmp_path / "new.db", tmp_path / "old.db"
    old.touch(0o644)
    for path in (new, old):
        store = open_store(f"sqlite:///{path}")
        migrate(store)
        with store.reading():
            modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.glob(f"{path.name}*")}
            assert set(modes.values()) == {0o600}, modes
        store.close()
