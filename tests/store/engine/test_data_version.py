"""The stamp of the data: another one after each commit, the same after any reading."""

from __future__ import annotations

from app.store.engine.data_version import Stamp
from app.store.github.issues import add_repository
from app.store.session import Store


def test_a_commit_of_anybody_changes_the_stamp(store: Store) -> None:
    stamp = Stamp(store)
    before = stamp.now()
    with store.unit_of_work() as session:
        add_repository(session, "vllm-project/vllm")
    after = stamp.now()
    assert before != after
    stamp.close()


def test_reading_leaves_the_stamp(store: Store) -> None:
    stamp = Stamp(store)
    before = stamp.now()
    with store.reading() as session:
        session.connection()
    assert stamp.now() == before
    stamp.close()


def test_a_closed_stamp_opens_again(store: Store) -> None:
    stamp = Stamp(store)
    stamp.now()
    stamp.close()
    assert stamp.now()
    stamp.close()
