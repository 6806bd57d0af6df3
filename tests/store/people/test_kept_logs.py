"""Logs that their owners chose to keep, on each engine."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from app.store.people.kept_logs import (
    KeptLogRecord,
    add_kept_log,
    delete_kept_log,
    find_kept_log,
    purge_kept_logs,
    sum_kept_logs,
)
from app.store.session import Store

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
RECORD = KeptLogRecord(
    "a" * 32, "b" * 64, "ValueError: größe 🦙", {"x": [1, None]}, NOW, NOW + timedelta(days=30)
)


def keep(store: Store, *records: KeptLogRecord) -> None:
    with store.unit_of_work() as session:
        for record in records:
            add_kept_log(session, record)


def find(store: Store, key: str, now: datetime = NOW) -> KeptLogRecord | None:
    with store.reading() as session:
        return find_kept_log(session, key, now)


def test_a_kept_log_is_found_as_it_was(store: Store) -> None:
    keep(store, RECORD)

    assert find(store, RECORD.id) == RECORD
    assert find(store, "c" * 32) is None


def test_a_log_whose_time_is_over_is_not_found_and_goes_with_the_next_purge(store: Store) -> None:
    keep(store, RECORD, replace(RECORD, id="c" * 32, expires_at=NOW + timedelta(days=60)))
    later = NOW + timedelta(days=30)

    assert find(store, RECORD.id, later) is None
    with store.unit_of_work() as session:
        assert purge_kept_logs(session, later) == 1
        assert sum_kept_logs(session)[0] == 1


def test_only_the_right_key_deletes(store: Store) -> None:
    keep(store, RECORD)
    with store.unit_of_work() as session:
        assert delete_kept_log(session, RECORD.id, "0" * 64) is False
        assert delete_kept_log(session, RECORD.id, RECORD.delete_key) is True
        assert delete_kept_log(session, RECORD.id, RECORD.delete_key) is False

    assert find(store, RECORD.id) is None


def test_a_clock_far_ahead_deletes_nothing_unless_it_is_sure(store: Store) -> None:
    keep(store, RECORD)
    with store.unit_of_work() as session:
        assert purge_kept_logs(session, NOW + timedelta(days=365)) == 0
        assert purge_kept_logs(session, NOW + timedelta(days=365), is_sure=True) == 1
