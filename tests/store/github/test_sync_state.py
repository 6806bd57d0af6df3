"""Cursors and runs."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine

from app.errors import NotFoundError
from app.store.github.issues import add_repository
from app.store.github.sync_state import begin_run, end_run, find_cursor, fresh_as_of, last_runs, save_cursor
from app.store.records import SyncRunRecord
from app.store.session import Store
from tests.samples import EARLY, LATE, REPO


@pytest.fixture
def repo_id(store: Store) -> int:
    with store.unit_of_work() as session:
        return add_repository(session, REPO)


def run(store: Store, repo_id: int, outcome: str, at=EARLY, **figures) -> None:
    with store.unit_of_work() as session, time_machine.travel(at, tick=False):
        end_run(session, begin_run(session, repo_id), outcome=outcome, **figures)


def test_a_stream_that_never_moved_has_an_empty_cursor(store: Store, repo_id: int) -> None:
    with store.reading() as session:
        assert find_cursor(session, repo_id, "issues") == {}


def test_a_cursor_moves(store: Store, repo_id: int) -> None:
    with store.unit_of_work() as session:
        save_cursor(session, repo_id, "issues", {"since": "2026-01-01T00:00:00Z", "page": 1})
    with store.unit_of_work() as session:
        save_cursor(session, repo_id, "issues", {"since": "2026-02-01T00:00:00Z"})

    with store.reading() as session:
        assert find_cursor(session, repo_id, "issues") == {"since": "2026-02-01T00:00:00Z"}


def test_each_stream_of_each_repository_has_its_own_cursor(store: Store, repo_id: int) -> None:
    with store.unit_of_work() as session:
        other = add_repository(session, "other/engine")
        save_cursor(session, repo_id, "issues", {"page": 1})
        save_cursor(session, repo_id, "comments", {"page": 2})
        save_cursor(session, other, "issues", {"page": 3})

    with store.reading() as session:
        keys = ((repo_id, "issues"), (repo_id, "comments"), (other, "issues"), (other, "comments"))
        assert [find_cursor(session, *key) for key in keys] == [{"page": 1}, {"page": 2}, {"page": 3}, {}]


def test_a_cursor_does_not_move_when_its_page_is_not_stored(store: Store, repo_id: int) -> None:
    with pytest.raises(LookupError), store.unit_of_work() as session:  # noqa: PT012
        save_cursor(session, repo_id, "issues", {"page": 2})
        raise LookupError

    with store.reading() as session:
        assert find_cursor(session, repo_id, "issues") == {}


def test_a_run_is_running_until_it_ends(store: Store, repo_id: int) -> None:
    with store.unit_of_work() as session:
        begin_run(session, repo_id)

    with store.reading() as session:
        assert [(item.outcome, item.ended_at) for item in last_runs(session)] == [("running", None)]


def test_a_run_keeps_its_figures(store: Store, repo_id: int) -> None:
    run(store, repo_id, "partial", requests=3, not_modified=1, remaining=57, stored=200, fault="rate limit")

    with store.reading() as session:
        assert last_runs(session) == [
            SyncRunRecord(REPO, EARLY, EARLY, "partial", 3, 1, 57, 200, "rate limit")
        ]


def test_the_newest_runs_come_first(store: Store, repo_id: int) -> None:
    for outcome in ("failed", "partial", "complete"):
        run(store, repo_id, outcome)

    with store.reading() as session:
        assert [item.outcome for item in last_runs(session, 2)] == ["complete", "partial"]


def test_the_base_is_as_fresh_as_its_newest_complete_run(store: Store, repo_id: int) -> None:
    run(store, repo_id, "complete", LATE)
    run(store, repo_id, "complete", EARLY)
    run(store, repo_id, "partial", LATE + timedelta(days=9))

    with store.reading() as session:
        assert fresh_as_of(session, repo_id) == LATE


def test_before_the_first_complete_run_there_is_no_freshness(store: Store, repo_id: int) -> None:
    run(store, repo_id, "failed")

    with store.reading() as session:
        assert fresh_as_of(session, repo_id) is None


def test_a_run_that_never_began_cannot_end(store: Store) -> None:
    with pytest.raises(NotFoundError, match="sync run 7"), store.unit_of_work() as session:
        end_run(session, 7, outcome="complete")
