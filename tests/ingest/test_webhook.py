"""What a delivery brings is stored as the sync would have stored it, once, and for the wanted repositories."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from sqlalchemy import func, select

from app.errors import InputError, StoreError
from app.extract.reader import RULES_VERSION
from app.store.derived.readings import stale_numbers
from app.store.github.issues import find_comments, find_issue, find_repository
from app.store.github.releases import first_releases_of, tags_of
from app.store.github.sync_state import DELIVERIES_KEPT, find_cursor
from app.store.records import CommentRecord, IssueRecord
from app.store.session import Store
from app.store.tables import metadata
from ingest.webhook import process_delivery
from tests.ingest.conftest import API, REPO, FakeDerive, FakeGitHub, at

REPOS = (REPO, "acme/second")


def an_issue(number: int = 7, updated: int = 10, **more: Any) -> dict[str, Any]:
    github = FakeGitHub()
    github.put_issue(number, updated, **more)
    return github.issues[number]


def a_comment(key: int = 501, updated: int = 20, **more: Any) -> dict[str, Any]:
    return {
        "id": key,
        "issue_url": f"{API}/repos/{REPO}/issues/7",
        "body": f"Remark {key}",
        "user": {"login": "bob"},
        "author_association": "MEMBER",
        "created_at": at(0),
        "updated_at": at(updated),
        **more,
    }


def a_pull(number: int = 9, **more: Any) -> dict[str, Any]:
    return an_issue(
        number, **{"merged_at": None, "draft": False, "head": {"ref": "x"}, "base": {"ref": "main"}, **more}
    )


def told(action: str, repo: str = REPO, **parts: Any) -> dict[str, Any]:
    return {"action": action, "repository": {"full_name": repo}, "sender": {"login": "ada"}, **parts}


class Taker:
    """Takes deliveries as they come, each under a new id."""

    def __init__(self, store: Store, derive: FakeDerive) -> None:
        self.store, self.derive, self.count = store, derive, 0

    def __call__(self, event: str, payload: Any, key: str | None = None) -> str:
        self.count += 1
        key = key or f"delivery-{self.count}"
        return process_delivery(self.store, REPOS, event, payload, delivery_id=key)

    def issue(self, number: int, repo: str = REPO) -> IssueRecord | None:
        with self.store.reading() as session:
            repo_id = find_repository(session, repo)
            return find_issue(session, repo_id, number) if repo_id else None

    def comments(self, number: int) -> list[CommentRecord]:
        with self.store.reading() as session:
            return find_comments(session, find_repository(session, REPO) or 0, [number]).get(number, [])

    def rows(self, table: str) -> int:
        with self.store.reading() as session:
            return int(
                session.connection()
                .execute(select(func.count()).select_from(metadata.tables[table]))
                .scalar_one()
            )


@pytest.fixture
def take(store: Store, derive: FakeDerive) -> Taker:
    return Taker(store, derive)


@pytest.mark.parametrize(
    ("action", "more", "wanted"),
    [
        ("opened", {}, ("open", "Fault 7", ())),
        ("edited", {"title": "Another title"}, ("open", "Another title", ())),
        ("closed", {"state": "closed", "closed_at": at(10)}, ("closed", "Fault 7", ())),
        ("reopened", {"state": "open"}, ("open", "Fault 7", ())),
        ("labeled", {"labels": [{"name": "bug"}]}, ("open", "Fault 7", ("bug",))),
        ("unlabeled", {"labels": []}, ("open", "Fault 7", ())),
        ("pinned", {}, ("open", "Fault 7", ())),
    ],
)
def test_an_issue_is_stored_and_read(take: Taker, action: str, more: Any, wanted: Any) -> None:
    take("issues", told("opened", issue=an_issue(updated=5, labels=[{"name": "old"}])))
    assert take("issues", told(action, issue=an_issue(updated=10, **more))) == "stored"

    found = take.issue(7)
    assert found is not None
    assert (found.state, found.title, found.labels) == wanted
    assert take.derive.numbers == [7, 7]


@pytest.mark.parametrize("action", ["deleted", "transferred"])
def test_a_lost_issue_is_marked_gone_at_once_and_kept(take: Taker, action: str) -> None:
    take("issues", told("opened", issue=an_issue()))
    assert take("issues", told(action, issue=an_issue(updated=30))) == "stored"

    found = take.issue(7)
    assert found is not None
    assert (found.gone_reason, found.title) == (action, "Fault 7")
    assert found.gone_at is not None


def test_a_lost_issue_that_was_never_stored_stays_unknown(take: Taker) -> None:
    assert take("issues", told("deleted", issue=an_issue())) == "stored"
    assert take.issue(7) is None


def test_an_older_delivery_under_a_new_id_brings_nothing_back(take: Taker) -> None:
    take("issues", told("opened", issue=an_issue()))
    take("issue_comment", told("created", issue=an_issue(), comment=a_comment()))
    take("issue_comment", told("deleted", issue=an_issue(), comment=a_comment()))
    take("issues", told("deleted", issue=an_issue()))
    take("issues", told("opened", issue=an_issue()))
    take("issue_comment", told("created", issue=an_issue(), comment=a_comment()))

    found = take.issue(7)
    assert found is not None
    assert found.gone_reason == "deleted"
    assert take.comments(7) == []


def test_an_issue_that_changed_after_it_was_gone_is_back(take: Taker) -> None:
    take("issues", told("opened", issue=an_issue()))
    take("issues", told("transferred", issue=an_issue()))
    later = (datetime.now(UTC) + timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    take("issues", told("edited", issue={**an_issue(), "updated_at": later}))

    found = take.issue(7)
    assert found is not None
    assert found.gone_at is None


def test_deliveries_in_the_wrong_order_leave_the_newer_state(take: Taker) -> None:
    take("issues", told("closed", issue=an_issue(updated=20, state="closed")))
    take("issues", told("opened", issue=an_issue(updated=10)))

    found = take.issue(7)
    assert found is not None
    assert found.state == "closed"


def test_comments_are_stored_changed_and_marked_gone(take: Taker) -> None:
    issue = an_issue(comments=1)
    assert take("issue_comment", told("created", issue=issue, comment=a_comment())) == "stored"
    assert [c.body for c in take.comments(7)] == ["Remark 501"]
    assert take.issue(7) is not None

    take("issue_comment", told("edited", issue=issue, comment=a_comment(updated=30, body="Other words")))
    assert [c.body for c in take.comments(7)] == ["Other words"]

    read = len(take.derive.numbers)
    take("issue_comment", told("deleted", issue=issue, comment=a_comment(updated=30)))
    assert take.comments(7) == []
    assert take.rows("comment") == 1
    assert take.derive.numbers[read:] == [7]


def test_a_comment_on_a_pull_request_leaves_it_one(take: Taker) -> None:
    take(
        "issue_comment",
        told("created", issue=an_issue(pull_request={"merged_at": None}), comment=a_comment()),
    )

    found = take.issue(7)
    assert found is not None
    assert found.is_pull_request


def test_a_pull_request_is_stored_with_its_merge(take: Taker) -> None:
    assert take("pull_request", told("opened", number=9, pull_request=a_pull())) == "stored"
    merged = a_pull(state="closed", merged_at=at(40), merge_commit_sha="a" * 40, updated_at=at(40))
    take("pull_request", told("closed", number=9, pull_request=merged))

    found = take.issue(9)
    assert found is not None
    assert (found.is_pull_request, found.state, found.merge_commit_sha) == (True, "closed", "a" * 40)
    assert found.merged_at is not None


def test_a_release_is_stored_with_the_pull_requests_it_names(take: Taker) -> None:
    release = {"tag_name": "v1.2.0", "body": "* A fix by @ada in #9", "published_at": at(50), "draft": False}
    assert take("release", told("published", release=release)) == "stored"

    with take.store.reading() as session:
        repo_id = find_repository(session, REPO) or 0
        assert tags_of(session, repo_id) == {"v1.2.0"}
        assert first_releases_of(session, repo_id, [9]) == {9: "v1.2.0"}


@pytest.mark.parametrize(("action", "draft"), [("deleted", False), ("unpublished", False), ("created", True)])
def test_a_release_that_is_not_out_is_ignored(take: Taker, action: str, draft: bool) -> None:
    release = {"tag_name": "v1.2.0", "body": "", "draft": draft}

    assert take("release", told(action, release=release)) == "ignored"
    assert take.rows("release") == 0


@pytest.mark.parametrize("event", ["ping", "push", "star", "workflow_run", ""])
def test_other_events_are_ignored(take: Taker, event: str) -> None:
    assert take(event, told("created", issue=an_issue())) == "ignored"
    assert [take.rows(table) for table in ("repository", "issue", "delivery")] == [0, 0, 0]


@pytest.mark.parametrize("repository", [{"full_name": "evil/engine"}, {}, None, {"full_name": None}])
def test_another_repository_is_ignored(take: Taker, repository: Any) -> None:
    payload = {**told("opened", issue=an_issue()), "repository": repository}

    assert take("issues", payload) == "ignored"
    assert [take.rows(table) for table in ("repository", "issue", "delivery")] == [0, 0, 0]


def test_the_repository_is_kept_under_the_name_of_the_settings(take: Taker) -> None:
    take("issues", told("opened", repo="Acme/ENGINE", issue=an_issue()))

    assert take.issue(7, REPO) is not None


def test_a_second_repository_is_kept_apart(take: Taker) -> None:
    take("issues", told("opened", repo="acme/second", issue=an_issue()))

    assert take.issue(7, REPO) is None
    assert take.issue(7, "acme/second") is not None


def test_a_delivery_is_taken_once(take: Taker) -> None:
    assert take("issues", told("opened", issue=an_issue(updated=10)), "same") == "stored"
    assert take("issues", told("edited", issue=an_issue(updated=90, title="Later")), "same") == "seen"

    found = take.issue(7)
    assert found is not None
    assert found.title == "Fault 7"
    assert len(take.derive.calls) == 1


@pytest.mark.parametrize(
    "payload",
    [
        [],
        "text",
        None,
        told("opened"),
        told("opened", issue=[]),
        told("opened", issue={"number": 0}),
        told("opened", issue={**an_issue(), "state": "ajar"}),
        {**told("opened"), "repository": []},
    ],
)
def test_a_payload_that_cannot_be_used_is_refused_and_may_come_again(take: Taker, payload: Any) -> None:
    with pytest.raises(InputError):
        take("issues", payload, "again")
    assert take.rows("delivery") == 0
    assert take("issues", told("opened", issue=an_issue()), "again") == "stored"


def test_nothing_is_kept_of_a_delivery_that_could_not_be_stored(
    take: Taker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise StoreError("the database refused")

    with monkeypatch.context() as broken:
        broken.setattr("ingest.webhook.save_issues", refuse)
        with pytest.raises(StoreError):
            take("issues", told("opened", issue=an_issue()), "again")
    assert take.rows("delivery") == 0
    assert take("issues", told("opened", issue=an_issue()), "again") == "stored"


def test_an_issue_that_could_not_be_read_is_stored_and_left_to_the_sync(
    store: Store, take: Taker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise StoreError("the database refused")

    monkeypatch.setattr("app.knowledge.indexing.batches.derive_issues", fail)

    assert take("issues", told("opened", issue=an_issue())) == "stored"
    with store.reading() as session:
        assert stale_numbers(session, find_repository(session, REPO) or 0, RULES_VERSION) == [7]


def test_no_cursor_moves(store: Store, take: Taker) -> None:
    take("issues", told("opened", issue=an_issue()))

    with store.reading() as session:
        assert find_cursor(session, find_repository(session, REPO) or 0, "issues") == {}


def test_old_deliveries_are_forgotten(take: Taker) -> None:
    with time_machine.travel(datetime.now(UTC) - DELIVERIES_KEPT - timedelta(hours=1), tick=False):
        take("issues", told("opened", issue=an_issue()), "old")
    take("issues", told("edited", issue=an_issue(updated=40)), "new")

    assert take.rows("delivery") == 1
    assert take("issues", told("edited", issue=an_issue(updated=40)), "new") == "seen"
