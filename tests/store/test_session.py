"""The one place that commits."""

from __future__ import annotations

import threading
from contextlib import suppress
from datetime import datetime

import pytest
from sqlalchemy import text
from sqlalchemy.exc import StatementError

from app.errors import StoreError
from app.store.github.issues import add_repository, find_issue, find_repository, save_issues
from app.store.session import Store
from tests.samples import an_issue

REPO = "vllm-project/vllm"


def known(store: Store, name: str) -> bool:
    with store.reading() as session:
        return bool(find_repository(session, name))


def test_a_unit_of_work_commits_what_it_did(store: Store) -> None:
    with store.unit_of_work() as session:
        add_repository(session, REPO)

    assert known(store, REPO) is True


def test_a_unit_of_work_that_fails_leaves_nothing(store: Store) -> None:
    with pytest.raises(LookupError), store.unit_of_work() as session:  # noqa: PT012
        repo_id = add_repository(session, REPO)
        save_issues(session, repo_id, [an_issue(1)])
        raise LookupError

    assert known(store, REPO) is False


def test_what_is_not_committed_is_not_seen_by_others(store: Store) -> None:
    with store.unit_of_work() as session:
        add_repository(session, REPO)

        assert known(store, REPO) is False


def test_a_reading_session_keeps_nothing(store: Store) -> None:
    with suppress(StoreError), store.reading() as session:  # PostgreSQL refuses at once
        add_repository(session, REPO)

    assert known(store, REPO) is False


def test_a_reading_session_sees_one_state_however_often_it_asks(store: Store) -> None:
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        save_issues(session, repo_id, [an_issue(1, title="before")])
    with store.reading() as reader:
        find_issue(reader, repo_id, 1)
        with store.unit_of_work() as writer:
            save_issues(writer, repo_id, [an_issue(2)])

        assert find_issue(reader, repo_id, 2) is None


def test_an_archive_can_be_used_again_after_a_failed_unit_of_work(store: Store) -> None:
    with pytest.raises(LookupError), store.unit_of_work() as session:  # noqa: PT012
        add_repository(session, REPO)
        raise LookupError
    with store.unit_of_work() as session:
        add_repository(session, "other/repo")

    assert known(store, "other/repo") is True


def test_two_threads_that_write_wait_for_each_other(store: Store) -> None:
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
    start = threading.Barrier(2)
    faults: list[Exception] = []

    def write(first: int) -> None:
        try:
            start.wait(10)
            for number in range(first, first + 10):
                with store.unit_of_work() as session:
                    seen = find_issue(session, repo_id, number - 1)
                    save_issues(session, repo_id, [an_issue(number, comments=0 if seen is None else 1)])
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=write, args=(first,)) for first in (1, 101)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    with store.reading() as session:
        stored = session.connection().execute(text("SELECT count(*) FROM issue")).scalar()
    assert (faults, stored) == ([], 20)


def test_a_writer_and_a_reader_do_not_hinder_each_other(store: Store) -> None:
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        save_issues(session, repo_id, [an_issue(1, title="before")])
    with store.reading() as reader:
        assert find_issue(reader, repo_id, 1).title == "before"  # type: ignore[union-attr]
        with store.unit_of_work() as writer:
            save_issues(writer, repo_id, [an_issue(2)])

    with store.reading() as session:
        assert find_issue(session, repo_id, 2) is not None


def test_a_time_without_a_zone_is_refused(store: Store) -> None:
    naive = datetime(2026, 4, 8, 9)  # noqa: DTZ001
    with pytest.raises(StatementError, match="without a zone"), store.unit_of_work() as session:
        save_issues(session, add_repository(session, REPO), [an_issue(1, created_at=naive)])


def test_what_the_database_refuses_is_told_in_one_line_without_values(store: Store) -> None:
    with pytest.raises(StoreError) as caught, store.unit_of_work() as session:
        session.connection().execute(text("SELECT nothing FROM nowhere WHERE 'hf_secret' = 'hf_secret'"))

    assert ("\n" in str(caught.value), "hf_secret" in str(caught.value)) == (False, False)


def test_a_commit_of_anybody_changes_the_version_of_the_data(store: Store) -> None:
    before = store.data_version("content")
    with store.unit_of_work() as session:
        add_repository(session, "vllm-project/vllm")
    assert store.data_version("content") != before


def test_a_vote_leaves_the_version_of_all_else(store: Store) -> None:
    content, both = store.data_version("content"), store.data_version("content", "votes")
    with store.unit_of_work(changes="votes") as session:
        add_repository(session, "vllm-project/vllm")
    assert store.data_version("content") == content
    assert store.data_version("content", "votes") != both


def test_reading_leaves_the_version_of_the_data(store: Store) -> None:
    before = store.data_version("content")
    with store.reading() as session:
        session.connection()
    with store.unit_of_work():
        pass
    assert store.data_version("content") == before
