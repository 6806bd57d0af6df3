"""The version of the data: another one after each commit of its kind, the same after any other."""

from __future__ import annotations

from app.store.engine.data_version import DataVersion
from app.store.github.issues import add_repository
from app.store.session import Store


def test_a_commit_of_anybody_changes_the_version(store: Store) -> None:
    version = DataVersion(store.engine)
    before = version.current("content")
    with store.unit_of_work() as session:
        add_repository(session, "vllm-project/vllm")
    assert version.current("content") != before
    version.close()


def test_a_vote_leaves_the_version_of_all_else(store: Store) -> None:
    version = DataVersion(store.engine)
    content, both = version.current("content"), version.current("content", "votes")
    with store.unit_of_work(changes="votes") as session:
        add_repository(session, "vllm-project/vllm")
    assert version.current("content") == content
    assert version.current("content", "votes") != both
    version.close()


def test_reading_leaves_the_version(store: Store) -> None:
    version = DataVersion(store.engine)
    before = version.current("content")
    with store.reading() as session:
        session.connection()
    with store.unit_of_work():
        pass
    assert version.current("content") == before
    version.close()


def test_a_closed_version_opens_again(store: Store) -> None:
    version = DataVersion(store.engine)
    with store.unit_of_work() as session:
        add_repository(session, "vllm-project/vllm")
    version.current("content")
    version.close()
    assert version.current("content")
    version.close()
