"""From stored to read: what is stale, and that nothing is read twice or forgotten."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.extract.reader import RULES_VERSION
from app.knowledge.indexing.batches import derive_changed, derive_stale
from app.knowledge.indexing.derive import DeriveResult
from app.store.derived.readings import Reading, save_readings, stale_numbers
from app.store.github.issues import add_repository, save_comments, save_issues
from app.store.records import CommentRecord, IssueRecord, Progress
from app.store.session import Store

REPO = "acme/engine"
NEVER = datetime(2000, 1, 1, tzinfo=UTC)


def an_issue(number: int, **more: Any) -> IssueRecord:
    return IssueRecord(number, f"Fault {number}", "", "open", "https://x.test", **more)


def put(store: Store, *records: IssueRecord) -> None:
    with store.unit_of_work() as session:
        save_issues(session, add_repository(session, REPO), records)


def stale(store: Store, rules: str = RULES_VERSION) -> list[int]:
    with store.reading() as session:
        return stale_numbers(session, 1, rules)


def test_an_issue_is_stale_until_it_is_read(store: Store, derive: Any) -> None:
    put(store, *map(an_issue, range(1, 8)))
    assert stale(store) == [1, 2, 3, 4, 5, 6, 7]
    derive_changed(store, REPO, [2, 3])
    assert stale(store) == [1, 4, 5, 6, 7]
    derive_stale(store, REPO)
    assert stale(store) == []


def test_it_is_stale_again_when_it_or_a_comment_changes_or_the_rules_do(store: Store, derive: Any) -> None:
    put(store, an_issue(1), an_issue(2), an_issue(3))
    derive_stale(store, REPO)
    put(store, replace(an_issue(1), title="Another"))
    assert stale(store) == [1]
    with store.unit_of_work() as session:
        save_comments(session, 1, [CommentRecord(7, 3, "It works", updated_at=NEVER)])
    assert stale(store) == [1, 3]
    derive_stale(store, REPO)
    with store.unit_of_work() as session:
        assert save_comments(session, 1, [CommentRecord(7, 3, "It works", updated_at=NEVER)]) == []
    assert stale(store) == []
    assert stale(store, "other rules") == [1, 2, 3]


def test_an_issue_whose_reading_failed_is_not_tried_again_and_again(store: Store) -> None:
    put(store, an_issue(1))
    with store.unit_of_work() as session:
        save_readings(session, 1, [Reading(1, None, fault="ValueError")], rules_version=RULES_VERSION)
    assert stale(store) == []


def test_batches_are_stored_one_by_one_and_told(store: Store, derive: Any) -> None:
    put(store, *map(an_issue, range(1, 251)))
    found: list[Progress] = []
    result = derive_changed(store, REPO, [*range(250, 0, -1), 7, 7], found.append)
    assert result == DeriveResult(250, 0)
    assert [len(call) for call in derive.calls] == [100, 100, 50]
    assert found == [Progress("facts", 100, 250), Progress("facts", 200, 250), Progress("facts", 250, 250)]


def test_what_was_read_before_a_fault_stays_read(
    store: Store, derive: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, *map(an_issue, range(1, 251)))

    def breaks(session: Any, repo_id: int, repo: str, numbers: Any, *_: Any) -> Any:
        result = derive(session, repo_id, repo, numbers)
        if len(derive.calls) == 2:
            raise RuntimeError("broken rule book")
        return result

    monkeypatch.setattr("app.knowledge.indexing.batches.derive_issues", breaks)
    with pytest.raises(RuntimeError):
        derive_stale(store, REPO)
    assert stale(store) == list(range(101, 251))


def test_a_row_seen_again_unchanged_is_not_stored_again(store: Store) -> None:
    record = an_issue(1, raw={"number": 1}, updated_at=NEVER, fetched_at=NEVER)
    put(store, record)
    with store.unit_of_work() as session:
        later = NEVER + timedelta(days=1)
        assert save_issues(session, 1, [replace(record, fetched_at=later)]) == []
        assert save_issues(session, 1, [replace(record, raw={"number": 1, "more": 1})]) == [1]
        gone = replace(record, gone_at=later, gone_reason="deleted", raw={"number": 1, "more": 1})
        assert save_issues(session, 1, [gone]) == [1]
        assert save_issues(session, 1, [replace(record, raw={"number": 1, "more": 1})]) == [1]


def test_the_newest_of_two_rows_in_one_batch_wins_in_either_order(store: Store) -> None:
    new = an_issue(1, updated_at=NEVER + timedelta(days=1))
    old = replace(new, title="old", updated_at=NEVER)
    for pair in ([new, old], [old, new]):
        put(store, *(replace(record, number=len(pair)) for record in pair))
    with store.reading() as session:
        from app.store.github.issues import get_issue

        assert get_issue(session, REPO, 2)[1].title == "Fault 1"
