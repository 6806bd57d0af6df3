"""Issues, pull requests, comments and releases: what replaces what, and how they are found again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta, timezone

import pytest
from sqlalchemy.orm import Session

from app.errors import NotFoundError
from app.extract.facts import ErrorFact, Facts
from app.store.derived.readings import Reading, save_readings
from app.store.derived.search_index import count_indexed, hash_terms, index_terms
from app.store.github.issues import (
    StoredRepositories,
    add_repository,
    count_issues,
    find_cards,
    find_comments,
    find_issues,
    find_repository,
    find_stored_repositories,
    get_issue,
    numbers_of,
    save_cards,
    save_comments,
    save_issues,
)
from app.store.github.releases import first_releases_of, newest_release, save_releases, tags_of
from app.store.github.sync_state import begin_run, end_run, fresh_as_of
from app.store.records import CARD, IssueRecord
from app.store.schema import migrate
from app.store.session import Store
from tests.samples import EARLY, LATE, REPO, a_comment, a_pull, a_release, an_issue
from tests.store.conftest import fill

CARD_ROW = an_issue(1, origin=CARD, title="The card's title", raw=None, updated_at=None)


def save(store: Store, *issues: IssueRecord) -> list[int]:
    with store.unit_of_work() as session:
        return save_issues(session, add_repository(session, REPO), issues)


def stored(store: Store, number: int = 1) -> IssueRecord:
    with store.reading() as session:
        return get_issue(session, REPO, number)[1]


def test_an_issue_comes_back_as_it_was_stored(store: Store) -> None:
    issue = an_issue(
        1,
        state="closed",
        state_reason="not_planned",
        author="someone",
        author_association="MEMBER",
        labels=("bug", "ci/build"),
        comments=3,
        reactions=2,
        closed_at=LATE,
        fetched_at=LATE,
        body="Emoji 🦙, quotes ' \" and a tab\t.",
    )
    save(store, issue)

    assert stored(store) == issue


def test_a_pull_request_comes_back_with_its_merge(store: Store) -> None:
    pull = a_pull(2, merged_at=LATE, merge_commit_sha="4f5c9d8e7b6a", is_draft=True, fetched_at=LATE)
    save(store, pull)

    assert stored(store, 2) == pull


def test_github_s_json_is_kept_whole(store: Store) -> None:
    raw = {
        "number": 1,
        "user": {"login": "x"},
        "labels": [{"name": "bug"}],
        "score": 1.5,
        "pull_request": None,
    }
    save(store, an_issue(1, raw=raw))

    assert stored(store).raw == raw


def test_times_come_back_in_utc(store: Store) -> None:
    tokyo = timezone(timedelta(hours=9))
    save(store, an_issue(1, created_at=EARLY.astimezone(tokyo)))

    assert stored(store).created_at == EARLY
    assert stored(store).created_at.utcoffset() == timedelta(0)  # type: ignore[union-attr]


def test_a_newer_row_replaces_an_older_one(store: Store) -> None:
    save(store, an_issue(1, title="old", updated_at=EARLY))

    assert save(store, an_issue(1, title="new", updated_at=LATE)) == [1]
    assert stored(store).title == "new"


def test_an_older_row_never_replaces_a_newer_one(store: Store) -> None:
    save(store, an_issue(1, title="new", updated_at=LATE))

    assert save(store, an_issue(1, title="old", updated_at=EARLY)) == []
    assert stored(store).title == "new"


def test_of_two_rows_in_one_batch_the_newer_stays(store: Store) -> None:
    save(store, an_issue(1, title="new", updated_at=LATE), an_issue(1, title="old", updated_at=EARLY))

    assert stored(store).title == "new"


def test_of_two_rows_of_one_time_the_later_one_stays(store: Store) -> None:
    save(store, an_issue(1, title="first"), an_issue(1, title="second"))

    assert stored(store).title == "second"


def test_a_row_that_says_the_same_changes_nothing(store: Store) -> None:
    save(store, an_issue(1, fetched_at=EARLY))

    assert save(store, an_issue(1, fetched_at=LATE)) == []
    assert stored(store).fetched_at == EARLY


def test_a_row_without_a_time_replaces(store: Store) -> None:
    save(store, an_issue(1, title="old", updated_at=LATE))

    assert save(store, an_issue(1, title="new", updated_at=None)) == [1]


def test_github_s_row_replaces_a_card(store: Store) -> None:
    save(store, CARD_ROW)

    assert save(store, an_issue(1, title="GitHub's title")) == [1]
    assert (stored(store).title, stored(store).origin) == ("GitHub's title", "github")


def test_a_card_never_replaces_github_s_row(store: Store) -> None:
    save(store, an_issue(1, title="GitHub's title"))

    assert save(store, CARD_ROW) == []
    assert (stored(store).title, stored(store).origin) == ("GitHub's title", "github")


def test_a_card_in_one_batch_with_github_s_row_loses(store: Store) -> None:
    save(store, an_issue(1, title="GitHub's title"), CARD_ROW)

    assert stored(store).title == "GitHub's title"


def test_a_newer_card_replaces_a_card(store: Store) -> None:
    save(store, CARD_ROW)
    save(store, replace(CARD_ROW, title="Told better"))

    assert stored(store).title == "Told better"


def test_one_number_in_two_repositories_is_two_issues(store: Store) -> None:
    with store.unit_of_work() as session:
        for name in (REPO, "other/engine"):
            save_issues(session, add_repository(session, name), [an_issue(1, title=name)])

    with store.reading() as session:
        assert [get_issue(session, name, 1)[1].title for name in (REPO, "other/engine")] == [
            REPO,
            "other/engine",
        ]


def test_a_repository_is_added_once(store: Store) -> None:
    with store.unit_of_work() as session:
        assert add_repository(session, REPO) == add_repository(session, REPO)


def test_an_unknown_repository_is_not_found(store: Store) -> None:
    with store.reading() as session:
        assert find_repository(session, "no/body") == 0


def test_an_issue_that_is_not_stored_is_named(store: Store) -> None:
    save(store, an_issue(1))

    with pytest.raises(NotFoundError, match="vllm-project/vllm#77 is not stored"):
        stored(store, 77)


def test_issues_come_in_the_order_asked_for(store: Store) -> None:
    save(store, an_issue(1), an_issue(2), an_issue(3))

    with store.reading() as session:
        found = find_issues(session, 1, [3, 9, 1])
    assert [issue.number for issue in found] == [3, 1]


def test_a_walk_meets_every_number_once(store: Store) -> None:
    save(store, *(an_issue(number) for number in range(1, 8)))
    walked: list[int] = []
    with store.reading() as session:
        while page := numbers_of(session, 1, after=walked[-1] if walked else 0, limit=3):
            walked += page

    assert walked == [1, 2, 3, 4, 5, 6, 7]


def test_more_rows_than_one_statement_takes_are_stored(store: Store) -> None:
    assert len(save(store, *(an_issue(number) for number in range(1, 1202)))) == 1201


def test_issues_pulls_and_cards_are_counted(store: Store) -> None:
    save(store, CARD_ROW, an_issue(2), a_pull(3), a_pull(4))

    with store.reading() as session:
        assert count_issues(session, 1) == {"issues": 2, "pulls": 2, "from_cards": 1}


# Comments


@pytest.fixture
def thread(store: Store) -> Store:
    save(store, an_issue(1), an_issue(2))
    return store


def bodies(store: Store, number: int = 1) -> list[str]:
    with store.reading() as session:
        return [comment.body for comment in find_comments(session, 1, [number]).get(number, [])]


def test_comments_come_oldest_first(thread: Store) -> None:
    with thread.unit_of_work() as session:
        save_comments(session, 1, [a_comment(5, 1, "second", created_at=LATE), a_comment(9, 1, "first")])

    assert bodies(thread) == ["first", "second"]


def test_comments_without_a_time_come_first_by_their_id(thread: Store) -> None:
    with thread.unit_of_work() as session:
        undated = [a_comment(key, 1, f"undated {key}", created_at=None) for key in (9, 7)]
        save_comments(session, 1, [a_comment(1, 1, "dated"), *undated])

    assert bodies(thread) == ["undated 7", "undated 9", "dated"]


def test_comments_are_saved_with_the_number_of_their_issue(thread: Store) -> None:
    with thread.unit_of_work() as session:
        assert save_comments(session, 1, [a_comment(5, 2, "b"), a_comment(6, 1, "a")]) == [1, 2]


def test_an_edited_comment_replaces(thread: Store) -> None:
    with thread.unit_of_work() as session:
        save_comments(session, 1, [a_comment(5, 1, "old")])
        save_comments(session, 1, [a_comment(5, 1, "new", updated_at=LATE)])

    assert bodies(thread) == ["new"]


def test_an_older_comment_never_replaces(thread: Store) -> None:
    with thread.unit_of_work() as session:
        save_comments(session, 1, [a_comment(5, 1, "new", updated_at=LATE)])

        assert save_comments(session, 1, [a_comment(5, 1, "old")]) == []
    assert bodies(thread) == ["new"]


def test_an_unchanged_comment_is_not_reported(thread: Store) -> None:
    with thread.unit_of_work() as session:
        save_comments(session, 1, [a_comment(5, 1, "same")])

        assert save_comments(session, 1, [a_comment(5, 1, "same")]) == []


def test_a_comment_may_arrive_before_its_issue(thread: Store) -> None:
    with thread.unit_of_work() as session:
        assert save_comments(session, 1, [a_comment(5, 404, "early")]) == [404]


# Releases


def releases(store: Store, *records) -> None:
    with store.unit_of_work() as session:
        save_releases(session, add_repository(session, REPO), records)


def first_of(store: Store, pull: int) -> str | None:
    with store.reading() as session:
        return first_releases_of(session, 1, [pull]).get(pull)


def test_a_pull_request_is_in_the_first_full_release_that_names_it(store: Store) -> None:
    releases(store, a_release("v0.9.1", 7, published_at=LATE), a_release("v0.9.0", 7), a_release("v0.8.0"))

    assert first_of(store, 7) == "v0.9.0"


def test_a_prerelease_is_no_release_of_a_fix(store: Store) -> None:
    releases(store, a_release("v0.9.0rc1", 7, is_prerelease=True))

    assert first_of(store, 7) is None


def test_a_release_without_a_date_is_not_the_first_with_a_fix(store: Store) -> None:
    releases(store, a_release("v9-draft", 7, published_at=None), a_release("v0.9.0", 7))

    assert first_of(store, 7) == "v0.9.0"


def test_release_notes_that_change_replace_what_they_named(store: Store) -> None:
    releases(store, a_release("v0.9.0", 7))
    releases(store, a_release("v0.9.0", 8, 8))

    assert (first_of(store, 7), first_of(store, 8)) == (None, "v0.9.0")


def test_the_newest_release_is_the_last_by_date(store: Store) -> None:
    releases(store, a_release("v0.9.0", published_at=LATE), a_release("v0.10.0"))

    with store.reading() as session:
        assert newest_release(session, 1) == "v0.9.0"
        assert tags_of(session, 1) == {"v0.9.0", "v0.10.0"}


def test_a_release_without_a_date_is_not_the_newest(store: Store) -> None:
    releases(store, a_release("v0.9.0"), a_release("v9-draft", published_at=None))

    with store.reading() as session:
        assert newest_release(session, 1) == "v0.9.0"


# The newest failures


def read(session: Session, number: int, *, error: bool = True) -> None:
    found = ErrorFact(type="ValueError", message="no") if error else None
    facts = Facts(number=number, is_failure=error, failure_kind="exception" if error else "none", error=found)
    save_readings(session, 1, [Reading(number, facts)], rules_version="1")


def test_cards_are_found_by_number(store: Store) -> None:
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        save_cards(session, repo_id, {1: "number = 1", 2: "number = 2"})

        assert find_cards(session, repo_id, [2, 3]) == {2: "number = 2"}


def test_a_card_saved_again_is_replaced(store: Store) -> None:
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        save_cards(session, repo_id, {1: "old"})
        save_cards(session, repo_id, {1: "new"})

        assert find_cards(session, repo_id, [1]) == {1: "new"}


def test_a_card_stays_when_github_s_row_arrives(store: Store) -> None:
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        save_cards(session, repo_id, {1: "kept"})
        save_issues(session, repo_id, [an_issue(1)])

        assert find_cards(session, repo_id, [1]) == {1: "kept"}


def test_a_card_belongs_to_its_repository(store: Store) -> None:
    with store.unit_of_work() as session:
        save_cards(session, add_repository(session, REPO), {1: "kept"})

        assert find_cards(session, add_repository(session, "other/engine"), [1]) == {}


OTHER = "vllm-project/vllm-ascend"


def put(session: Session, *numbers: int, repo: str = REPO) -> None:
    repo_id = add_repository(session, repo)
    save_issues(session, repo_id, [an_issue(number) for number in numbers])
    index_terms(session, repo_id, {number: hash_terms({(1, "word"): 1}) for number in numbers})


def test_a_base_goes_back_to_kept_counts_and_forth(store: Store) -> None:
    fill(store)
    migrate(store, "20261127_browse")
    migrate(store)
    with store.reading() as session:
        assert find_stored_repositories(session, (REPO,)).issues > 0


def test_what_is_indexed_again_is_counted_once(store: Store) -> None:
    for numbers in ((1, 2, 3), (3, 4)):
        with store.unit_of_work() as session:
            put(session, *numbers)
    with store.reading() as session:
        assert count_indexed(session) == 4


def test_the_stock_names_the_repositories_of_which_anything_is_stored(store: Store) -> None:
    for repo, numbers in ((REPO, (1, 2, 3)), (OTHER, (4,))):
        with store.unit_of_work() as session:
            put(session, *numbers, repo=repo)
            for _ in range(2):
                run = begin_run(session, add_repository(session, repo))
                end_run(session, run, outcome="complete")
    with store.reading() as session:
        ended = [fresh_as_of(session, repo_id) for repo_id in (1, 2)]
        mine, both = (
            find_stored_repositories(session, (REPO, "nobody/nothing")),
            find_stored_repositories(session, (OTHER, REPO)),
        )

    assert mine == StoredRepositories({1: REPO}, issues=3, as_of=ended[0])
    assert both == StoredRepositories({2: OTHER, 1: REPO}, issues=4, as_of=min(ended, key=str))
