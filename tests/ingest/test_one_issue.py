"""An issue that somebody asks for comes with the linked ones that are not stored, and no more than that."""

from __future__ import annotations

from typing import Any

import pytest

from app.config import Settings
from app.errors import GitHubError
from app.store.github.issues import find_heads, find_issue
from app.store.session import Store
from ingest.one_issue import KEPT_FOR_SYNC, LINKED_MAX, FetchForVisitors, fetch_with_links
from tests.hourly_github import hourly_github
from tests.ingest.conftest import REPO

REPO_ID = 1


def stored(store: Store, *numbers: int) -> list[int]:
    with store.reading() as session:
        return [issue.number for issue in find_heads(session, REPO_ID, numbers)]


def refers(*numbers: int) -> list[dict[str, Any]]:
    return [{"event": "cross-referenced", "source": {"issue": {"number": number}}} for number in numbers]


def test_what_refers_to_an_issue_is_fetched_with_it(store: Store, github: Any, derive: Any) -> None:
    github.put_issue(9, 50)
    github.put_issue(21, 50, pull_request={"merged_at": "2026-04-09T00:00:00Z"})
    github.timeline = [
        *refers(21, 22),
        {
            "event": "cross-referenced",
            "source": {"issue": {"number": 4, "html_url": "https://github.com/acme/other/pull/4"}},
        },
    ]
    with github.client() as client:
        assert fetch_with_links(store, client, REPO, 9)

    assert stored(store, 9, 21, 22, 4) == [9, 21]
    with store.reading() as session:
        pull = find_issue(session, REPO_ID, 21)
    assert pull is not None
    assert pull.merged_at is not None
    assert not any("acme/other" in str(request.url) for request in github.asked)


def test_only_so_many_linked_ones_are_asked_for(store: Store, github: Any, derive: Any) -> None:
    numbers = range(100, 140)
    github.put_issue(9, 50)
    for number in numbers:
        github.put_issue(number, 50)
    github.timeline = refers(*numbers)
    with github.client() as client:
        assert fetch_with_links(store, client, REPO, 9)

    assert len(stored(store, *numbers)) == LINKED_MAX


def test_a_linked_one_that_cannot_be_used_does_not_spoil_the_issue(
    store: Store, github: Any, derive: Any
) -> None:
    github.put_issue(9, 50)
    github.put_issue(21, 50, updated_at="yesterday")
    github.timeline = refers(21)
    with github.client() as client:
        assert fetch_with_links(store, client, REPO, 9)

    assert stored(store, 9) == [9]


def test_what_github_does_not_have_is_not_fetched(store: Store, github: Any, derive: Any) -> None:
    with github.client() as client:
        assert not fetch_with_links(store, client, REPO, 9)
    assert stored(store, 9) == []


def test_a_refusal_of_the_issue_itself_is_told(store: Store, github: Any, derive: Any) -> None:
    github.put_issue(9, 50, updated_at="yesterday")
    with github.client() as client, pytest.raises(GitHubError):
        fetch_with_links(store, client, REPO, 9)


def test_visitors_leave_the_sync_most_of_what_github_gives_without_a_token(store: Store) -> None:
    with hourly_github(60) as (url, asked):
        settings = Settings(github_api_url=url, github_token=None, _env_file=None)  # type: ignore[call-arg]
        fetch = FetchForVisitors()
        fetched = [fetch(settings, store, REPO, number) for number in range(1, 7)]
        for number in range(10, 40):
            with pytest.raises(GitHubError, match="without a token"):
                fetch(settings, store, REPO, number)

    assert fetched == [True] * 6
    assert len(asked) == 60 - KEPT_FOR_SYNC


def test_what_was_just_fetched_is_not_asked_for_again(store: Store) -> None:
    with hourly_github(60) as (url, asked):
        settings = Settings(github_api_url=url, github_token=None, _env_file=None)  # type: ignore[call-arg]
        assert FetchForVisitors()(settings, store, REPO, 7)
        before = len(asked)
        assert FetchForVisitors()(settings, store, REPO, 7)

    assert len(asked) == before
