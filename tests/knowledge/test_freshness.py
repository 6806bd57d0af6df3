"""How fresh a copy is, each repository by itself.

What the base holds and how fresh it is.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine

from app.knowledge.freshness import STALE_AFTER, freshness, overview, status
from app.paths import cards_dir
from app.store.engine.sync_lock import sync_lock
from app.store.github.issues import add_repository
from app.store.github.sync_state import begin_run, end_run, save_cursor
from app.store.session import Store
from tests.knowledge.conftest import Keep
from tests.samples import EARLY, LATE, REPO, a_pull, a_release, an_issue, fenced, marlin_log
from tests.starter_base import put_cards


def run(store: Store, outcome: str, at=EARLY, repo: str = REPO, **figures) -> None:
    with store.unit_of_work() as session, time_machine.travel(at, tick=False):
        end_run(session, begin_run(session, add_repository(session, repo)), outcome=outcome, **figures)


def test_what_was_never_synced_is_stale(store: Store) -> None:
    found = freshness(store, REPO)

    assert (found.as_of, found.age_s, found.is_stale, found.last_run, found.cursors) == (
        None,
        None,
        True,
        None,
        {},
    )


@pytest.mark.parametrize(
    ("age", "stale"),
    [(STALE_AFTER - timedelta(seconds=1), False), (STALE_AFTER + timedelta(seconds=1), True)],
)
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
    with sync_lock(store.engine):
        busy = status(store, [REPO])

    assert idle.syncing is None
    assert (busy.syncing or "").startswith("process ")
    assert [(item.repo, item.requests, item.stored) for item in idle.runs] == [(REPO, 4, 7)]
    found = idle.repositories[REPO].freshness.cursors["comments"]
    assert found.position == {"since": "2026-01-01T00:00:00Z"}
    assert idle.repositories["acme/engine"].stored.issues == 0


HUB = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"


def a_failure(number: int, **fields):
    return an_issue(number, **{"body": fenced("It works with `--quantization awq`.", marlin_log()), **fields})


def test_a_run_that_no_process_carries_on_is_told_as_killed(store: Store) -> None:
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        begin_run(session, repo_id)
    with sync_lock(store.engine):
        running = status(store, (REPO,)).runs[0].outcome
    (left,) = status(store, (REPO,)).runs

    assert (running, left.outcome) == ("running", "killed")


def test_an_unknown_repository_is_empty(store: Store) -> None:
    found = overview(store, REPO)

    assert (found.issues, found.pulls, found.as_of, found.newest_release, found.is_starter_only) == (
        0,
        0,
        None,
        None,
        False,
    )


def test_issues_and_pull_requests_are_counted(store: Store, keep: Keep) -> None:
    keep(an_issue(1), an_issue(2), a_pull(3))

    assert (overview(store, REPO).issues, overview(store, REPO).pulls) == (2, 1)


def test_a_base_of_cards_only_says_so(store: Store) -> None:
    put_cards(store)
    loaded = len(list(cards_dir().glob("*.toml")))
    found = overview(store, REPO)

    assert (found.is_starter_only, found.issues, found.from_cards) == (True, loaded, loaded)


def test_a_base_with_a_real_issue_is_no_starter_set(store: Store, keep: Keep) -> None:
    put_cards(store)
    keep(an_issue(1))

    assert overview(store, REPO).is_starter_only is False


def test_the_newest_release_is_named_without_its_v(store: Store, keep: Keep) -> None:
    keep(a_release("v0.9.1"), a_release("v0.9.2", published_at=LATE))

    assert overview(store, REPO).newest_release == "0.9.2"


def test_freshness_is_that_of_the_newest_complete_sync(store: Store, keep: Keep) -> None:
    repo_id = keep(an_issue(1))
    with store.unit_of_work() as session, time_machine.travel(EARLY, tick=False):
        end_run(session, begin_run(session, repo_id), outcome="complete")

    assert overview(store, REPO).as_of == EARLY
