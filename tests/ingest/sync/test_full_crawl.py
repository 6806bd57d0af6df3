"""What GitHub no longer has: found by a full run, confirmed, labelled, kept; and back when it is back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from app.store.derived.readings import links_from
from app.store.github.comments import find_comments
from app.store.github.issues import find_issue, save_issues
from app.store.github.presence import mark_gone
from app.store.github.sync_state import find_cursor
from app.store.records import IssueRecord
from app.store.session import Store
from ingest.one_issue import fetch_issue
from ingest.sync.run import SyncResult
from ingest.sync.sync import sync
from tests.ingest.conftest import REPO

REPO_ID = 1


def run(store: Store, github: Any, derive: Any, **more: Any) -> SyncResult:
    with github.client() as client:
        return sync(store, client, REPO, **more)


def fill(github: Any, issues: int, comments: int = 0) -> None:
    for n in range(1, issues + 1):
        github.put_issue(n, n * 90)
    for n in range(1, comments + 1):
        github.put_comment(n, 1 + n % issues, n * 90)


def issue(store: Store, number: int) -> IssueRecord:
    with store.reading() as session:
        found = find_issue(session, REPO_ID, number)
    assert found is not None
    return found


def comments_of(store: Store, number: int, **more: Any) -> list[int]:
    with store.reading() as session:
        return [c.id for c in find_comments(session, REPO_ID, [number], **more).get(number, [])]


def singles(github: Any, start: int) -> list[str]:
    return [r.url.path for r in github.asked[start:] if r.url.path.rsplit("/", 1)[-1].isdigit()]


def test_a_full_run_labels_what_is_gone_after_one_question_each(
    store: Store, github: Any, derive: Any
) -> None:
    fill(github, 230, 120)
    run(store, github, derive)
    derive.calls.clear()
    del github.issues[7], github.issues[8], github.comments[50]
    for key in [key for key, row in github.comments.items() if row["issue_url"].endswith(("/7", "/8"))]:
        del github.comments[key]
    start = len(github.asked)
    result = run(store, github, derive, full=True)
    assert (result.complete, result.gone, result.issues, result.comments) == (True, 3, 0, 0)
    prefix = f"/repos/{REPO}/issues"
    assert singles(github, start) == [f"{prefix}/7", f"{prefix}/8", f"{prefix}/comments/50"]
    for number in (7, 8):
        gone = issue(store, number)
        assert (gone.gone_reason, gone.title) == ("deleted", f"Fault {number}")
        assert gone.gone_at is not None
    assert issue(store, 9).gone_at is None
    assert comments_of(store, 51) == []
    assert comments_of(store, 51, with_gone=True) == [50]
    assert comments_of(store, 7) == [6], "what was said of a gone issue is kept with it"
    assert derive.numbers == [7, 8, 51], "what is gone, or lost a comment, is read again: mirrors learn of it"
    start = len(github.asked)
    assert run(store, github, derive, full=True).gone == 0
    assert singles(github, start) == []


def test_an_ordinary_or_a_limited_run_labels_nothing(store: Store, github: Any, derive: Any) -> None:
    fill(github, 130)
    run(store, github, derive)
    del github.issues[7]
    assert run(store, github, derive).gone == 0
    assert run(store, github, derive, full=True, limit=50).gone == 0
    assert issue(store, 7).gone_at is None
    assert run(store, github, derive, full=True).gone == 1


def test_a_crawl_that_fails_labels_nothing_and_is_ended_by_the_next(
    store: Store, github: Any, derive: Any
) -> None:
    fill(github, 430, 150)
    run(store, github, derive)
    del github.issues[7]
    start = len(github.asked)
    github.before = lambda _fake, count: httpx.Response(401, json={}) if count > start + 4 else None
    result = run(store, github, derive, full=True)
    assert (result.gone, result.complete) == (0, False)
    assert issue(store, 7).gone_at is None
    github.before = None
    result = run(store, github, derive, full=True)
    assert (result.gone, result.complete) == (1, True)
    assert len(github.asked) - start <= (5 + 2) + 2 + 6


def test_a_crawl_cut_off_long_ago_begins_anew(
    store: Store, github: Any, derive: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(github, 430)
    run(store, github, derive)
    run(store, github, derive, full=True, limit=150)
    with store.reading() as session:
        assert find_cursor(session, REPO_ID, "issues.full")
    monkeypatch.setattr("ingest.sync.full_crawl.TOO_OLD", timedelta(days=-1))
    start = len(github.asked)
    run(store, github, derive, full=True)
    assert "since" not in next(r for r in github.asked[start:] if r.url.path.endswith("/issues")).url.params


def test_a_row_that_is_missed_but_there_is_stored_and_not_labelled(
    store: Store, github: Any, derive: Any
) -> None:
    fill(github, 30, 10)
    run(store, github, derive)
    with store.unit_of_work() as session:
        stray = IssueRecord(99, "From a file", "", "open", "https://x.test", raw={"number": 99})
        save_issues(session, REPO_ID, [stray])
    hidden = github.issues[30]

    def hide(fake: Any, _count: int) -> None:
        fake.issues.pop(30, None)
        if fake.asked[-1].url.path.endswith("/issues/30"):
            fake.issues[30] = {**hidden, "title": "Changed unseen"}

    github.before = hide
    result = run(store, github, derive, full=True)
    assert (result.gone, result.complete) == (1, True)
    assert issue(store, 99).gone_reason == "deleted"
    assert issue(store, 30).gone_at is None
    assert issue(store, 30).title == "Changed unseen"


def test_what_is_listed_again_is_gone_no_more(store: Store, github: Any, derive: Any) -> None:
    fill(github, 30, 10)
    run(store, github, derive)
    with store.unit_of_work() as session:
        assert mark_gone(session, "issue", REPO_ID, 5, "deleted")
        assert not mark_gone(session, "issue", REPO_ID, 5, "deleted")
        assert mark_gone(session, "comment", REPO_ID, 3)
    run(store, github, derive)
    assert issue(store, 5).gone_at is not None
    derive.calls.clear()
    assert run(store, github, derive, full=True).complete
    assert issue(store, 5).gone_at is None
    assert issue(store, 5).gone_reason is None
    assert comments_of(store, 4) == [3]
    assert sorted(derive.numbers) == [4, 5]


def test_a_page_asked_before_the_word_that_a_row_is_gone_does_not_bring_it_back(store: Store) -> None:
    record = IssueRecord(5, "Fault", "", "open", "https://x.test", raw={"number": 5})
    asked_at = datetime.now(UTC)
    with store.unit_of_work() as session:
        from app.store.github.issues import add_repository

        repo_id = add_repository(session, REPO)
        save_issues(session, repo_id, [record], seen_at=asked_at)
        mark_gone(session, "issue", repo_id, 5, "deleted")
    with store.unit_of_work() as session:
        assert save_issues(session, repo_id, [record], seen_at=asked_at) == []
    assert issue(store, 5).gone_reason == "deleted"
    with store.unit_of_work() as session:
        assert save_issues(session, repo_id, [record], seen_at=datetime.now(UTC)) == [5]
    assert issue(store, 5).gone_at is None


@pytest.mark.parametrize("new_number", [3, 12], ids=["new number", "same number"])
def test_a_transferred_issue_is_labelled_and_its_new_place_kept(
    store: Store, github: Any, derive: Any, new_number: int
) -> None:
    fill(github, 30, 10)
    run(store, github, derive)
    del github.issues[12]
    place = f"/repositories/99/issues/{new_number}"
    github.moved[12] = place
    github.elsewhere[place] = {
        "number": new_number,
        "title": "Not ours",
        "state": "open",
        "html_url": f"https://github.com/acme/other/issues/{new_number}",
    }
    result = run(store, github, derive, full=True)
    assert (result.complete, result.gone) == (True, 1)
    assert issue(store, 12).gone_reason == "transferred"
    assert issue(store, 12).title == "Fault 12"
    with store.reading() as session:
        (link,) = links_from(session, REPO_ID, 12)
    assert (link.target_repo, link.target_number, link.kind) == ("acme/other", new_number, "transferred_to")
    assert run(store, github, derive).complete, "the rest of the repository is asked where it was"
    assert not any("/repositories/99/issues?" in str(r.url) for r in github.asked)


def test_asking_for_one_issue_tells_that_it_is_gone(store: Store, github: Any, derive: Any) -> None:
    fill(github, 3)
    run(store, github, derive)
    del github.issues[2]
    with github.client() as client:
        assert not fetch_issue(store, client, REPO, 2)
    assert issue(store, 2).gone_reason == "deleted"
    github.put_issue(2, 180)
    with github.client() as client:
        assert fetch_issue(store, client, REPO, 2)
    assert issue(store, 2).gone_at is None


def test_one_issue_brings_what_refers_to_it(store: Store, github: Any, derive: Any) -> None:
    github.put_issue(9, 50)
    github.timeline = [
        {"event": "labeled", "label": {"name": "bug"}},
        {"event": "cross-referenced", "source": {"issue": {"number": 21}}},
        {
            "event": "cross-referenced",
            "source": {"issue": {"number": 4, "html_url": "https://github.com/acme/other/pull/4"}},
        },
        {"event": "cross-referenced", "source": None},
    ]
    with github.client() as client:
        assert fetch_issue(store, client, REPO, 9)
    with store.reading() as session:
        links = {
            (link.target_repo, link.target_number, link.kind) for link in links_from(session, REPO_ID, 9)
        }
    assert links == {(REPO, 21, "referenced_by"), ("acme/other", 4, "referenced_by")}
