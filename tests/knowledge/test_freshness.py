"""How fresh a copy is, each repository by itself."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine

from app.knowledge.freshness import STALE_AFTER, freshness
from app.knowledge.overview import overview
from app.knowledge.status import status
from app.store.issues import add_repository
from app.store.session import Store
from app.store.sync_lock import sync_lock
from app.store.sync_state import begin_run, end_run, save_cursor
from tests.samples import EARLY, LATE, REPO


def run(store: Store, outcome: str, at=EARLY, repo: str = REPO, **figures) -> None:
    with store.unit_of_work() as session, time_machine.travel(at, tick=False):
        end_run(session, begin_run(session, add_repository(session, repo)), outcome=outcome, **figures)


def test_nothing_stored_is_not_stale(store: Store) -> None:
    found = freshness(store, REPO)

    assert (found.as_of, found.age_s, found.is_stale, found.last_run, found.cursors) == (None, None, False, None, {})


@pytest.mark.parametrize(("age", "stale"), [(STALE_AFTER - timedelta(seconds=1), False), (STALE_AFTER + timedelta(seconds=1), True)])
def test_a_day_without_a_complete_sync_is_stale(store: Store, age: timedelta, stale: bool) -> None:
    run(store, "complete")
    with time_machine.travel(EARLY + age, tick=False):
        found = freshness(store, REPO)

    assert (found.as_of, found.age_s, found.is_stale) == (EARLY, int(age.total_seconds()), stale)
    with time_machine.travel(EARLY + age, tick=False):
        assert overview(store, REPO).is_stale is stale


def test_a_failed_sync_is_told_and_leaves_the_freshness(store: Store) -> None:
    run(store, "complete")
    run(store, "failed", LATE, fault="GitHub could not be reached")
    found = freshness(store, REPO)

    assert found.as_of == EARLY
    assert found.last_run is not None
    assert (found.last_run.outcome, found.last_run.was_cut_short) == ("failed", True)


def test_a_run_that_was_limited_by_request_is_no_failure(store: Store) -> None:
    run(store, "partial")
    found = freshness(store, REPO).last_run

    assert found is not None
    assert found.was_cut_short is False


def test_another_repository_is_not_counted(store: Store) -> None:
    run(store, "complete", LATE, "acme/engine")
    run(store, "complete", EARLY)

    assert (freshness(store, REPO).as_of, freshness(store, "acme/engine").as_of) == (EARLY, LATE)
    assert overview(store, REPO).as_of == EARLY


def test_status_tells_runs_cursors_and_whether_a_sync_runs(store: Store) -> None:
    run(store, "complete", requests=4, stored=7)
    with store.unit_of_work() as session:
        save_cursor(session, add_repository(session, REPO), "comments", {"since": "2026-01-01T00:00:00Z"})
    idle = status(store, [REPO, "acme/engine"])
    with sync_lock(store):
        busy = status(store, [REPO])

    assert idle.syncing is None
    assert (busy.syncing or "").startswith("process ")
    assert [(item.repo, item.requests, item.stored) for item in idle.runs] == [(REPO, 4, 7)]
    told = idle.repositories[REPO].freshness.cursors["comments"]
    assert told.position == {"since": "2026-01-01T00:00:00Z"}
    assert idle.repositories["acme/engine"].stored.issues == 0
