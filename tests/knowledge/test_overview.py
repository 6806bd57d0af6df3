"""What the base holds and how fresh it is."""

from __future__ import annotations

import time_machine

from app.knowledge.overview import overview
from app.knowledge.starter_set import load_starter_set
from app.store.session import Store
from app.store.sync_state import begin_run, end_run
from tests.knowledge.conftest import Keep
from tests.samples import EARLY, LATE, REPO, a_pull, a_release, an_issue, fenced, marlin_log

HUB = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"


def a_failure(number: int, **fields):
    return an_issue(number, **{"body": fenced("It works with `--quantization awq`.", marlin_log()), **fields})


def test_an_unknown_repository_is_empty(store: Store) -> None:
    found = overview(store, REPO)

    assert (found.issues, found.pulls, found.as_of, found.newest_release, found.is_starter_only) == (
        0, 0, None, None, False
    )  # fmt: skip


def test_issues_and_pull_requests_are_counted(store: Store, keep: Keep) -> None:
    keep(an_issue(1), an_issue(2), a_pull(3))

    assert (overview(store, REPO).issues, overview(store, REPO).pulls) == (2, 1)


def test_a_base_of_cards_only_says_so(store: Store) -> None:
    loaded = load_starter_set(store)
    found = overview(store, REPO)

    assert (found.is_starter_only, found.issues, found.from_cards) == (True, loaded, loaded)


def test_a_base_with_a_real_issue_is_no_starter_set(store: Store, keep: Keep) -> None:
    load_starter_set(store)
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
