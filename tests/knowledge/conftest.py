"""A base with a handful of issues of our own, read as the post room would have them read."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from app.knowledge.indexing.derive import derive_issues
from app.store.github.issues import add_repository, save_comments, save_issues
from app.store.github.releases import save_releases
from app.store.records import CommentRecord, IssueRecord, ReleaseRecord
from app.store.session import Store
from tests.samples import REPO
from tests.shared_work import read_once

Keep = Callable[..., int]


def keep_in(store: Store, *records: IssueRecord | CommentRecord | ReleaseRecord, repo: str = REPO) -> int:
    """Stores and reads what it is given; returns the repository's key."""
    issues = [item for item in records if isinstance(item, IssueRecord)]
    with store.unit_of_work() as session:
        repo_id = add_repository(session, repo)
        save_issues(session, repo_id, issues)
        save_comments(session, repo_id, [item for item in records if isinstance(item, CommentRecord)])
        save_releases(session, repo_id, [item for item in records if isinstance(item, ReleaseRecord)])
        derive_issues(session, repo_id, repo, [item.number for item in issues], read_once)
    return repo_id


@pytest.fixture
def keep(store: Store) -> Keep:
    """`keep_in` the test's archive."""
    return partial(keep_in, store)
