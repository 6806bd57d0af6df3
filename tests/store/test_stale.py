"""Which issues must be read again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from app.extract.facts import Facts
from app.store.comments import save_comments
from app.store.issues import add_repository, save_issues
from app.store.readings import Reading, save_readings
from app.store.session import Store
from app.store.stale import stale_numbers
from tests.samples import LATE, REPO, a_comment, an_issue

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def read(store: Store) -> Store:
    """Two issues, fetched at noon and read an hour later under rules "1"."""
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        save_issues(session, repo_id, [an_issue(number, fetched_at=NOON) for number in (1, 2)])
        with time_machine.travel(NOON + HOUR, tick=False):
            save_readings(session, repo_id, [Reading(n, Facts(number=n)) for n in (1, 2)], rules_version="1")
    return store


def stale(store: Store, rules: str = "1", **where: int) -> list[int]:
    with store.reading() as session:
        return stale_numbers(session, 1, rules, **where)


def test_what_was_read_after_it_was_fetched_is_not_stale(read: Store) -> None:
    assert stale(read) == []


def test_what_was_never_read_is_stale(read: Store) -> None:
    with read.unit_of_work() as session:
        save_issues(session, 1, [an_issue(3, fetched_at=NOON)])

    assert stale(read) == [3]


def test_what_was_fetched_again_is_stale(read: Store) -> None:
    with read.unit_of_work() as session:
        save_issues(session, 1, [an_issue(2, title="edited", updated_at=LATE, fetched_at=NOON + 2 * HOUR)])

    assert stale(read) == [2]


def test_what_got_a_comment_is_stale(read: Store) -> None:
    with read.unit_of_work() as session, time_machine.travel(NOON + 2 * HOUR, tick=False):
        save_comments(session, 1, [a_comment(5, 1, "it helps")])

    assert stale(read) == [1]


def test_other_rules_make_everything_stale(read: Store) -> None:
    assert stale(read, "2") == [1, 2]


def test_a_walk_over_the_stale_goes_on_where_it_stood(read: Store) -> None:
    assert (stale(read, "2", limit=1), stale(read, "2", after=1)) == ([1], [2])


def test_another_repository_is_not_looked_at(read: Store) -> None:
    with read.unit_of_work() as session:
        save_issues(session, add_repository(session, "other/engine"), [an_issue(9)])

    assert stale(read) == []
