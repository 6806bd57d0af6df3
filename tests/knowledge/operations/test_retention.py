"""Expired rows are deleted: at start-up, every hour, and with each round of the sync."""

from __future__ import annotations

import threading
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import time_machine

from app.errors import NotFoundError, StoreError
from app.knowledge.indexing.batches import derive_stale
from app.knowledge.issue.view import view_issue
from app.knowledge.operations import retention
from app.knowledge.operations.retention import (
    Forgotten,
    forget_issue,
    forget_kept_log,
    forget_old,
    forget_regularly,
    keep_out,
    kept_out,
)
from app.store.backup.backup import back_up, restore
from app.store.engine.sqlite_file import sqlite_file
from app.store.github.issues import add_repository, find_comments, find_heads, save_comments, save_issues
from app.store.github.sync_state import add_delivery, begin_run, end_run, fresh_as_of, last_runs
from app.store.people import KeptLogRecord, add_kept_log, sum_kept_logs
from app.store.records import CommentRecord
from app.store.session import Store, open_store
from tests.samples import REPO, an_issue

NOW = datetime.now(UTC)


def put(store: Store, days_ago: int, outcome: str = "partial") -> None:
    """A kept log, a delivery and a sync run of some days ago; the log's time is 30 days."""
    day = NOW - timedelta(days=days_ago)
    with time_machine.travel(day), store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        add_delivery(session, f"delivery-{days_ago}", "issues")
        record = KeptLogRecord(f"{days_ago:032}", "k", "log", {}, day, day + timedelta(days=30))
        add_kept_log(session, record)
        end_run(session, begin_run(session, repo_id), outcome=outcome)


def outcomes(store: Store) -> list[str]:
    with store.reading() as session:
        return [run.outcome for run in last_runs(session, 100)]


def test_what_is_past_its_time_goes_and_the_rest_stays(store: Store) -> None:
    for days in (400, 100, 31, 29, 0):
        put(store, days)

    assert forget_old(store) == Forgotten(kept_logs=3, deliveries=3, sync_runs=2)
    assert forget_old(store) == Forgotten(0, 0, 0)
    with store.reading() as session:
        assert sum_kept_logs(session)[0] == 2
    assert len(outcomes(store)) == 3


def test_the_last_complete_run_stays_however_old(store: Store) -> None:
    put(store, 500, "complete")
    put(store, 400, "complete")
    put(store, 300)

    forget_old(store)

    assert outcomes(store) == ["complete"]
    with store.reading() as session:
        assert fresh_as_of(session, 1) == pytest.approx(NOW - timedelta(days=400), abs=timedelta(minutes=1))


def test_a_run_that_goes_on_stays(store: Store) -> None:
    with time_machine.travel(NOW - timedelta(days=200)), store.unit_of_work() as session:
        begin_run(session, add_repository(session, REPO))

    forget_old(store)

    assert outcomes(store) == ["running"]


def test_rounds_go_on_after_one_that_failed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, 31)
    stop, rounds = threading.Event(), 0

    def forget(given: Store, **_: bool) -> Forgotten:
        nonlocal rounds
        rounds += 1
        if rounds == 1:
            raise StoreError("it is locked")
        stop.set()
        return forget_old(given)

    monkeypatch.setattr(retention, "forget_old", forget)
    forget_regularly(store, stop, every_s=0.001)

    assert rounds == 2
    with store.reading() as session:
        assert sum_kept_logs(session)[0] == 0


SECRET = "zqxjkvword"
ISSUE = an_issue(
    7, title=f"[Bug]: {SECRET} title", body=f"RuntimeError: {SECRET} body. It works with `--{SECRET}-flag`."
)
COMMENT = CommentRecord(id=70, issue_number=7, body=f"{SECRET} comment. Use `--{SECRET}-way`, that fixed it.")


def store_all(store: Store) -> int:
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        save_issues(session, repo_id, [replace(ISSUE, updated_at=datetime.now(UTC))])
        save_comments(session, repo_id, [COMMENT])
    derive_stale(store, REPO)
    return repo_id


@pytest.mark.parametrize("keep_out", [False, True])
def test_an_issue_leaves_no_text_and_comes_back_only_where_it_may(store: Store, keep_out: bool) -> None:
    repo_id = store_all(store)
    forget_issue(store, REPO, 7, keep_out=keep_out)
    forget_issue(store, REPO, 7, keep_out=False)

    assert SECRET not in view_issue(store, REPO, 7).model_dump_json()
    if file := sqlite_file(str(store.engine.url)):
        for path in Path(file).parent.iterdir():
            assert SECRET.encode() not in path.read_bytes(), path.name

    store_all(store)
    with store.reading() as session:
        (head,) = find_heads(session, repo_id, [7])
        comments = find_comments(session, repo_id, [7])
    assert (SECRET in head.title) is not keep_out
    assert bool(comments) is not keep_out


def test_what_is_not_stored_cannot_be_forgotten(store: Store) -> None:
    store_all(store)
    with pytest.raises(NotFoundError):
        forget_issue(store, REPO, 8, keep_out=True)
    with pytest.raises(NotFoundError):
        forget_kept_log(store, "https://triage.example.org/d/abc")
    assert not forget_kept_log(store, "7")


def test_what_one_base_keeps_out_another_one_with_or_without_its_text_keeps_out_too(
    store: Store, tmp_path: Path
) -> None:
    store_all(store)
    back_up(store, tmp_path / "old.backup")
    forget_issue(store, REPO, 7, keep_out=True)
    issues = [*kept_out(store.engine.url.render_as_string(hide_password=False)), ("a/b", 9)]
    restored = f"sqlite:///{tmp_path}/restored.db"
    restore(tmp_path / "old.backup", restored)

    with closing(open_store(restored)) as other:
        assert (keep_out(other, issues), keep_out(other, issues)) == (2, 0)
        assert SECRET not in view_issue(other, REPO, 7).model_dump_json()
        store_all(other)
        assert SECRET not in view_issue(other, REPO, 7).model_dump_json()
    assert SECRET.encode() not in (tmp_path / "restored.db").read_bytes()
    assert kept_out(restored) == [("a/b", 9), (REPO, 7)]
    assert kept_out(f"sqlite:///{tmp_path}/nothing.db") == []
