"""The version of the data: another one after each commit, the same after any reading."""

from __future__ import annotations

from app.store.engine.data_version import DataVersion
from app.store.github.issues import add_repository
from app.store.session import Store


def test_a_commit_of_anybody_changes_the_version(store: Store) -> None:
    version = DataVersion(store.engine)
    before = version.current()
    with store.unit_of_work() as session:
        add_repository(session, "vllm-project/vllm")
    after = version.current()
    assert before != after
    version.close()


def test_reading_leaves_the_version(store: Store) -> None:
    version = DataVersion(store.engine)
    before = version.current()
    with store.reading() as session:
        session.connection()
    assert version.current() == before
    version.close()


def test_a_closed_version_opens_again(store: Store) -> None:
    version = DataVersion(store.engine)
    version.current()
    version.close()
    assert version.current()
    version.close()
