"""What is taken down leaves no text behind, and comes back only where it may."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.errors import NotFoundError
from app.knowledge.indexing.batches import derive_stale
from app.knowledge.issue.view import view_issue
from app.knowledge.operations.takedown import forget_issue, forget_kept_log
from app.store.engine.sqlite_file import sqlite_file
from app.store.github.comments import find_comments, save_comments
from app.store.github.issues import add_repository, find_heads, save_issues
from app.store.records import CommentRecord
from app.store.session import Store
from tests.samples import REPO, an_issue

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
