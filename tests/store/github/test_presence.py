"""When a row was last listed, what is gone, and runs that never told their end."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from app.store.derived.links import save_links
from app.store.derived.readings import Reading, links_from, save_readings, stale_numbers
from app.store.github.issues import add_repository, find_comments, get_issue, save_comments, save_issues
from app.store.github.presence import find_unseen, mark_gone
from app.store.github.sync_state import begin_run, end_run, last_runs, note_run
from app.store.records import CARD, LinkRecord
from app.store.session import Store
from tests.samples import REPO, a_comment, an_issue

EARLY = datetime(2026, 1, 1, tzinfo=UTC)
LATE = EARLY + timedelta(hours=1)


@pytest.fixture
def repo_id(store: Store) -> int:
    with store.unit_of_work() as session:
        return add_repository(session, REPO)


def test_a_listed_row_notes_when_and_nothing_else_changes(store: Store, repo_id: int) -> None:
    issue = an_issue(1, raw={"number": 1})
    with store.unit_of_work() as session:
        assert save_issues(session, repo_id, [issue], seen_at=EARLY) == [1]
        assert save_comments(session, repo_id, [a_comment(5, 1, "A remark")], seen_at=EARLY) == [1]
    with store.reading() as session:
        before = get_issue(session, REPO, 1)
    with store.unit_of_work() as session:
        assert save_issues(session, repo_id, [issue], seen_at=LATE) == []
        assert save_comments(session, repo_id, [a_comment(5, 1, "A remark")], seen_at=LATE) == []
        assert save_issues(session, repo_id, [issue], seen_at=EARLY) == [], "a page that came late"
        assert save_issues(session, repo_id, [issue]) == []
    with store.reading() as session:
        assert get_issue(session, REPO, 1) == before
        assert (
            find_unseen(session, "issue", repo_id, LATE)
            == find_unseen(session, "comment", repo_id, LATE)
            == []
        )
        assert find_unseen(session, "issue", repo_id, LATE + timedelta(seconds=1)) == [1]
        assert find_unseen(session, "comment", repo_id, LATE + timedelta(seconds=1)) == [5]


def test_a_row_older_than_the_stored_one_is_listed_all_the_same(store: Store, repo_id: int) -> None:
    with store.unit_of_work() as session:
        save_issues(session, repo_id, [an_issue(1, updated_at=LATE)], seen_at=EARLY)
        assert save_issues(session, repo_id, [an_issue(1, updated_at=EARLY)], seen_at=LATE) == []
        assert find_unseen(session, "issue", repo_id, LATE) == []


def test_unseen_are_neither_gone_rows_nor_cards_nor_what_went_with_an_issue(
    store: Store, repo_id: int
) -> None:
    with store.unit_of_work() as session:
        save_issues(session, repo_id, [an_issue(n) for n in (1, 2)])
        save_issues(session, repo_id, [an_issue(3, origin=CARD, raw=None)])
        save_comments(
            session,
            repo_id,
            [a_comment(5, 1, "A remark"), a_comment(6, 2, "A remark"), a_comment(7, 2, "A remark")],
        )
        assert mark_gone(session, "issue", repo_id, 1, "deleted")
        assert mark_gone(session, "comment", repo_id, 6)
        assert find_unseen(session, "issue", repo_id, EARLY) == [2]
        assert find_unseen(session, "comment", repo_id, EARLY) == [7]


def test_a_gone_comment_is_kept_and_its_issue_is_to_be_read_again(store: Store, repo_id: int) -> None:
    with store.unit_of_work() as session:
        save_issues(session, repo_id, [an_issue(1)])
        save_comments(session, repo_id, [a_comment(5, 1, "A remark")])
        save_readings(session, repo_id, [Reading(1, None)], rules_version="r")
    with store.unit_of_work() as session:
        assert stale_numbers(session, repo_id, "r") == []
        assert mark_gone(session, "comment", repo_id, 5)
        assert not mark_gone(session, "comment", repo_id, 5)
        assert not mark_gone(session, "comment", repo_id, 404)
        assert stale_numbers(session, repo_id, "r") == [1]
        assert find_comments(session, repo_id, [1]) == {}
        (kept,) = find_comments(session, repo_id, [1], with_gone=True)[1]
        assert replace(kept, gone_at=None).body == a_comment(5, 1, "A remark").body
        assert kept.gone_at is not None


def test_links_that_github_tells_outlive_a_reading(store: Store, repo_id: int) -> None:
    found = LinkRecord("acme/other", 3, "transferred_to", "GitHub redirects there")
    with store.unit_of_work() as session:
        save_issues(session, repo_id, [an_issue(1)])
        save_links(session, repo_id, 1, [found, found], kind=found.kind)
        save_links(session, repo_id, 1, [found], kind=found.kind)
        save_readings(session, repo_id, [Reading(1, None)], rules_version="r")
        assert links_from(session, repo_id, 1) == [found]


def test_a_run_that_never_ended_is_closed_by_the_next_and_opened_by_its_own_word(
    store: Store, repo_id: int
) -> None:
    with store.unit_of_work() as session:
        first = begin_run(session, repo_id)
        note_run(session, first, requests=7, stored=200)
    with store.unit_of_work() as session:
        second = begin_run(session, repo_id)
    with store.reading() as session:
        assert [(r.outcome, r.requests) for r in last_runs(session)] == [("running", 0), ("killed", 7)]
    with store.unit_of_work() as session:
        note_run(session, first, requests=8)
        end_run(session, second, outcome="complete")
    with store.reading() as session:
        assert [(r.outcome, r.requests) for r in last_runs(session)] == [("complete", 0), ("running", 8)]
        assert last_runs(session)[1].ended_at is None


def test_noting_what_was_seen_leaves_the_long_columns_alone(sqlite_store: Store) -> None:
    """SQLite writes a row of unchanged length in place: only the pages that differ."""
    long = "A long body. " * 4000
    issues = [an_issue(n, body=long, raw={"number": n, "body": long}) for n in range(1, 101)]
    with sqlite_store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        save_issues(session, repo_id, issues, seen_at=EARLY)

    def wal_pages() -> int:
        with sqlite_store.reading() as session:
            return int(session.connection().execute(text("PRAGMA wal_checkpoint(TRUNCATE)")).one()[1])

    wal_pages()
    with sqlite_store.unit_of_work() as session:
        save_issues(session, repo_id, issues, seen_at=LATE)
    path = sqlite_store.engine.url.database
    assert path is not None
    assert Path(f"{path}-wal").stat().st_size < 1_500_000, "the rows themselves are over ten million bytes"
