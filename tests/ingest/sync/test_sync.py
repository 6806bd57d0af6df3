"""The sync: nothing lost, nothing asked twice, whatever moves or breaks while it runs."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

import ingest.sync.lists
from app.store.derived.readings import links_from
from app.store.github.issues import find_comments, find_issue, numbers_of, save_issues
from app.store.github.presence import mark_gone
from app.store.github.releases import first_releases_of
from app.store.github.sync_state import find_cursor, last_runs
from app.store.records import IssueRecord, Progress
from app.store.session import Store
from ingest.one_issue import fetch_issue
from ingest.sync.run import SyncResult
from ingest.sync.sync import sync
from tests.ingest.conftest import REPO

REPO_ID = 1


def run(store: Store, github: Any, derive: Any, **more: Any) -> SyncResult:
    with github.client() as client:
        return sync(store, client, REPO, **more)


def numbers(store: Store) -> list[int]:
    with store.reading() as session:
        return numbers_of(session, REPO_ID, limit=100_000)


def comment_ids(store: Store, issues: list[int]) -> list[int]:
    with store.reading() as session:
        return sorted(c.id for rows in find_comments(session, REPO_ID, issues).values() for c in rows)


def fill(github: Any, issues: int, comments: int = 0) -> None:
    for n in range(1, issues + 1):
        github.put_issue(n, n * 90)
    for n in range(1, comments + 1):
        github.put_comment(n, 1 + n % issues, n * 90)


# ---- what a sync stores and what it costs


def test_everything_is_stored_within_the_request_bound(store: Store, github: Any, derive: Any) -> None:
    fill(github, 730, 410)
    github.put_release("v1.0.0", "## What's Changed\n* One by @a in #5\n")
    result = run(store, github, derive)
    assert result.complete
    assert (result.issues, result.comments, result.releases) == (730, 410, 1)
    assert numbers(store) == list(range(1, 731))
    assert comment_ids(store, numbers(store)) == list(range(1, 411))
    assert result.requests == len(github.asked) <= 1.05 * (730 + 410 + 1) / 100 + 10
    with store.reading() as session:
        assert first_releases_of(session, REPO_ID, [5, 6]) == {5: "v1.0.0"}


def test_nothing_new_costs_three_requests_and_reads_nothing(store: Store, github: Any, derive: Any) -> None:
    fill(github, 230, 130)
    github.put_release("v1.0.0")
    run(store, github, derive)
    derive.calls.clear()
    first, second = run(store, github, derive), run(store, github, derive)
    assert (first.requests, second.requests, second.not_modified) == (3, 3, 3)
    assert (first.issues, first.comments, first.releases, first.read) == (0, 0, 0, 0)
    assert derive.calls == []


def test_only_what_changed_is_asked_and_read_again(store: Store, github: Any, derive: Any) -> None:
    fill(github, 300, 200)
    run(store, github, derive)
    derive.calls.clear()
    github.put_issue(17, 300 * 90 + 400, state="closed", closed_at="2025-02-01T00:00:00Z")
    github.put_issue(301, 300 * 90 + 500)
    github.put_comment(900, 40, 200 * 90 + 900, body="A new remark")
    result = run(store, github, derive)
    assert (result.issues, result.comments) == (2, 1)
    assert sorted(derive.numbers) == [17, 40, 301]
    assert result.requests <= 5 + 1 + 1
    with store.reading() as session:
        stored = find_issue(session, REPO_ID, 17)
    assert stored is not None
    assert stored.state == "closed"


def test_an_issue_is_read_once_in_a_run_however_often_it_is_touched(
    store: Store, github: Any, derive: Any
) -> None:
    fill(github, 150)
    for n in range(300):
        github.put_comment(n + 1, 7, n)
    result = run(store, github, derive)
    assert result.read == 150
    assert len(derive.numbers) == len(set(derive.numbers)) == 150


def test_a_comment_whose_issue_is_not_stored_waits_for_it(store: Store, github: Any, derive: Any) -> None:
    fill(github, 3)
    github.put_comment(1, 44, 10)
    assert run(store, github, derive).complete
    assert sorted(derive.numbers) == [1, 2, 3]
    github.put_issue(44, 1000)
    run(store, github, derive)
    assert 44 in derive.numbers


def test_a_row_that_cannot_be_used_is_told_and_stops_nothing(store: Store, github: Any, derive: Any) -> None:
    fill(github, 5)
    github.put_issue(3, 270, state="ajar")
    result = run(store, github, derive)
    assert numbers(store) == [1, 2, 4, 5]
    assert result.skipped == ("issue 3: state is neither open nor closed",)
    assert not result.complete
    assert result.error is None


def test_an_empty_repository_is_complete(store: Store, github: Any, derive: Any) -> None:
    result = run(store, github, derive)
    assert result.complete
    assert result.requests == 3


def test_progress_is_told_for_every_stage(store: Store, github: Any, derive: Any) -> None:
    fill(github, 130, 20)
    found: list[Progress] = []
    run(store, github, derive, report=found.append)
    assert [p.stage for p in found] == ["releases", "issues", "issues", "comments", "facts", "facts"]
    assert (found[-1].done, found[-1].total) == (130, 130)


def test_the_run_is_noted_with_its_figures(store: Store, github: Any, derive: Any) -> None:
    fill(github, 12)
    result = run(store, github, derive)
    with store.reading() as session:
        (noted,) = last_runs(session)
    assert (noted.repo, noted.outcome, noted.stored, noted.fault) == (REPO, "complete", 12, None)
    assert (noted.requests, noted.remaining) == (result.requests, 4321)
    assert noted.ended_at is not None


# ---- rows that move


def test_rows_that_move_between_pages_are_not_lost(store: Store, github: Any, derive: Any) -> None:
    fill(github, 600, 500)
    chance = random.Random(7)
    newest = 600 * 90

    def touch(fake: Any, _count: int) -> None:
        nonlocal newest
        for _ in range(3):
            newest += 1
            key = chance.choice(sorted(fake.issues))
            fake.put_issue(key, newest, title=f"Touched at {newest}")
            key = chance.choice(sorted(fake.comments))
            fake.put_comment(key, 5, newest, body=f"Edited at {newest}")

    github.before = touch
    run(store, github, derive)
    github.before = None
    run(store, github, derive)
    assert numbers(store) == list(range(1, 601))
    assert comment_ids(store, numbers(store)) == list(range(1, 501))
    with store.reading() as session:
        for number, row in github.issues.items():
            stored = find_issue(session, REPO_ID, number)
            assert stored is not None
            assert stored.title == row["title"]


@pytest.mark.parametrize("size", [100, 101, 250, pytest.param(1000, marks=pytest.mark.long)])
def test_a_burst_of_rows_with_one_update_time_is_walked_to_its_end(
    store: Store, github: Any, derive: Any, size: int
) -> None:
    fill(github, 40)
    for n in range(1, size + 1):
        github.put_issue(1000 + n, 50_000)
        github.put_comment(n, 1000 + n, 50_000)
    github.put_issue(5000, 60_000)
    github.put_comment(5000, 5000, 60_000)
    result = run(store, github, derive)
    assert len(numbers(store)) == 41 + size
    assert len(comment_ids(store, [*range(1001, 1001 + size), 5000])) == size + 1
    assert result.requests <= 1.05 * (42 + 2 * size) / 100 + 10


def test_rows_that_move_out_of_a_burst_are_not_lost(store: Store, numbered_github: Any, derive: Any) -> None:
    github = numbered_github
    for n in range(1, 451):
        github.put_issue(n, 50_000)
    chance = random.Random(3)
    newest = 50_000

    def touch(fake: Any, count: int) -> None:
        nonlocal newest
        if count < 12:
            still = [
                n for n, row in fake.issues.items() if row["updated_at"] == fake.issues[450]["updated_at"]
            ]
            for number in chance.sample(still[:150], min(4, len(still) - 1)) if len(still) > 150 else []:
                newest += 1
                fake.put_issue(number, newest)

    github.before = touch
    result = run(store, github, derive)
    assert result.complete
    assert numbers(store) == list(range(1, 451))


def test_a_deleted_row_inside_a_burst_hides_none_behind_it(
    store: Store, numbered_github: Any, derive: Any
) -> None:
    github = numbered_github
    for n in range(1, 401):
        github.put_issue(n, 50_000)
    gone = [3, 4, 5, 6, 7, 8, 9, 10, 120, 121]

    def remove(fake: Any, count: int) -> None:
        if count >= 3 and gone:
            fake.issues.pop(gone.pop(0), None)

    github.before = remove
    run(store, github, derive)
    assert set(github.issues) <= set(numbers(store))


# ---- stops


@pytest.mark.parametrize(
    "stop_at", [pytest.param(at, marks=[] if at % 3 == 1 else pytest.mark.long) for at in range(1, 14)]
)
def test_a_stopped_run_goes_on_where_it_was(store: Store, github: Any, derive: Any, stop_at: int) -> None:
    fill(github, 640, 450)
    github.put_release("v1")

    def stop(_fake: Any, count: int) -> None:
        if count == stop_at:
            raise KeyboardInterrupt

    github.before = stop
    with pytest.raises(KeyboardInterrupt):
        run(store, github, derive)
    github.before = None
    result = run(store, github, derive)
    assert result.complete
    assert len(numbers(store)) == 640
    assert len(comment_ids(store, numbers(store))) == 450
    assert sorted(derive.numbers) == list(range(1, 641))
    assert len(github.asked) <= 13 + 2
    with store.reading() as session:
        assert last_runs(session)[0].outcome == "complete"


def test_a_run_killed_while_it_reads_is_read_to_the_end_by_the_next(
    store: Store, github: Any, derive: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(github, 450)

    def dies(session: Any, repo_id: int, repo: str, batch: Any, *_: Any) -> Any:
        if len(derive.calls) == 2:
            raise KeyboardInterrupt
        return derive(session, repo_id, repo, batch)

    monkeypatch.setattr("app.knowledge.indexing.batches.derive_issues", dies)
    with pytest.raises(KeyboardInterrupt):
        run(store, github, derive)
    monkeypatch.setattr("app.knowledge.indexing.batches.derive_issues", derive)
    asked = len(github.asked)
    result = run(store, github, derive)
    assert len(github.asked) - asked == 2
    assert sorted(derive.numbers) == list(range(1, 451))
    assert result.read == 250


def test_a_page_and_its_cursor_are_stored_together_or_not_at_all(
    store: Store, github: Any, derive: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(github, 30)

    def refuse(*_args: Any) -> None:
        raise RuntimeError("disk gone")

    monkeypatch.setattr(ingest.sync.lists, "save_cursor", refuse)
    with pytest.raises(RuntimeError):
        run(store, github, derive)
    assert numbers(store) == []
    with store.reading() as session:
        assert find_cursor(session, REPO_ID, "issues") == {}
        assert last_runs(session)[0].outcome == "failed"


def test_a_refusal_on_the_way_keeps_and_reads_what_is_stored(store: Store, github: Any, derive: Any) -> None:
    fill(github, 350, 10)
    github.before = lambda _fake, count: httpx.Response(401, json={}) if count >= 3 else None
    result = run(store, github, derive)
    assert not result.complete
    assert "TRIAGE_GITHUB_TOKEN" in str(result.error)
    assert result.issues == result.read == len(numbers(store)) == 100
    with store.reading() as session:
        noted = last_runs(session)[0]
    assert (noted.outcome, noted.fault) == ("partial", str(result.error))
    github.before = None
    assert run(store, github, derive).complete
    assert len(numbers(store)) == 350


def test_a_github_out_of_reach_leaves_a_failed_run_and_no_rows(
    store: Store, github: Any, derive: Any
) -> None:
    def unreachable(_fake: Any, _count: int) -> None:
        raise httpx.ConnectError("no route")

    github.before = unreachable
    result = run(store, github, derive)
    assert "could not be reached" in str(result.error)
    with store.reading() as session:
        assert last_runs(session)[0].outcome == "failed"


def test_before_a_long_wait_what_is_stored_is_read(store: Store, github: Any, derive: Any) -> None:
    fill(github, 350)
    read_before_wait: list[int] = []

    def limit(_fake: Any, count: int) -> httpx.Response | None:
        if count == 4:
            return httpx.Response(429, json={}, headers={"retry-after": "90"})
        if count == 5:
            read_before_wait.append(len(derive.numbers))
        return None

    github.before = limit
    found: list[Progress] = []
    result = run(store, github, derive, report=found.append)
    assert result.complete
    assert read_before_wait[0] >= 190
    (waiting,) = [p for p in found if p.stage == "waiting"]
    assert waiting.done == 90
    assert "secondary" in waiting.note
    assert sorted(derive.numbers) == list(range(1, 351))


# ---- options


def test_a_limit_stops_each_list_and_the_next_run_goes_on(store: Store, github: Any, derive: Any) -> None:
    fill(github, 340, 30)
    result = run(store, github, derive, limit=120)
    assert (result.issues, result.comments, result.limited, result.complete) == (120, 30, True, True)
    assert numbers(store) == list(range(1, 121))
    assert not run(store, github, derive).limited
    assert len(numbers(store)) == 340


def test_a_limit_of_one_gets_on_at_each_start(store: Store, github: Any, derive: Any) -> None:
    for n in range(1, 6):
        github.put_issue(n, n)
    for n in range(1, 6):
        run(store, github, derive, limit=1)
        assert len(numbers(store)) == n


def test_a_full_run_walks_everything_and_moves_no_cursor_back(store: Store, github: Any, derive: Any) -> None:
    fill(github, 230, 20)
    run(store, github, derive)
    with store.reading() as session:
        before = find_cursor(session, REPO_ID, "issues")
    github.issues[7]["title"] = "Changed without a new update time"
    derive.calls.clear()
    result = run(store, github, derive, full=True)
    assert result.complete
    assert result.requests >= 5
    assert derive.numbers == [7]
    with store.reading() as session:
        after = find_cursor(session, REPO_ID, "issues")
        assert find_cursor(session, REPO_ID, "issues.full") == {}
    assert after["since"] == before["since"]


def test_a_stopped_full_run_goes_on_when_it_is_asked_for_again(
    store: Store, github: Any, derive: Any
) -> None:
    fill(github, 550)
    run(store, github, derive)
    start = len(github.asked)

    def stop(_fake: Any, count: int) -> None:
        if count == start + 5:
            raise KeyboardInterrupt

    github.before = stop
    with pytest.raises(KeyboardInterrupt):
        run(store, github, derive, full=True)
    github.before = None
    begin = len(github.asked)
    assert run(store, github, derive, full=True).complete
    assert len(github.asked) - begin <= 5


# ---- one issue


def test_one_issue_is_fetched_with_all_its_comments(store: Store, github: Any, derive: Any) -> None:
    github.put_issue(9, 50)
    for n in range(1, 251):
        github.put_comment(n, 9, n)
    with github.client() as client:
        assert fetch_issue(store, client, REPO, 9)
        assert not fetch_issue(store, client, REPO, 10)
    assert comment_ids(store, [9]) == list(range(1, 251))
    assert derive.numbers == [9]


# ---- what GitHub no longer has: found by a full run, confirmed, labelled, kept; and back when it is back


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
    monkeypatch.setattr("ingest.sync.sync.TOO_OLD", timedelta(days=-1))
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
