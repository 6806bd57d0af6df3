"""Issues by the words that somebody types."""

from __future__ import annotations

import pytest

from app.extract.log.root_cause import read_errors
from app.match.search.terms import line_texts, terms_of
from app.match.search.word_search import PROFILES_MAX, FoundByWords, search_words
from app.store.derived.search_index import hash_terms, index_terms
from app.store.github.issues import add_repository, save_issues
from app.store.session import Store
from tests.samples import REPO, an_issue, marlin_log, rope_log

TEXTS = {
    1: ("[Bug]: marlin kernel refuses the weight", f"Quantised layers fail.\n{marlin_log()}"),
    2: ("[Bug]: rope scaling", f"The kernel is fine. A marlin swam by.\n{rope_log()}"),
    3: ("[Feature]: please add a zebra", "No error here, a kernel of truth only."),
}


@pytest.fixture
def three(store: Store) -> int:
    """A repository of three issues; returns its key."""
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        save_issues(session, repo_id, [an_issue(number, title=title) for number, (title, _) in TEXTS.items()])
        for number, (title, body) in TEXTS.items():
            lines, errors = read_errors(body)
            index_terms(session, repo_id, {number: hash_terms(terms_of([title, *line_texts(lines)], errors))})
    return repo_id


def search(store: Store, repo: int, text: str) -> FoundByWords:
    with store.reading() as session:
        return search_words(session, repo, text)


def ranked(found: FoundByWords) -> list[int]:
    return sorted(found.scores, key=lambda number: -found.scores[number])


def test_all_telling_words_must_stand_in_an_issue(store: Store, three: int) -> None:
    assert ranked(search(store, three, "zebra")) == [3]
    assert ranked(search(store, three, "zebra scaling")) == []
    assert ranked(search(store, three, "ROPE, scaling!")) == [2]


def test_title_neighbouring_words_and_the_error_line_count_most(store: Store, three: int) -> None:
    assert ranked(search(store, three, "marlin kernel")) == [1, 2]


def test_a_word_of_most_issues_narrows_nothing(store: Store, three: int) -> None:
    assert ranked(search(store, three, "zebra kernel")) == [3]
    assert set(search(store, three, "kernel").scores) == {1, 2, 3}


def test_words_that_stand_nowhere_are_told_and_left_out(store: Store, three: int) -> None:
    found = search(store, three, "zebra qqqqq")

    assert (ranked(found), found.unknown) == ([3], ("qqqqq",))
    assert search(store, three, "qqqqq").scores == {}


@pytest.mark.parametrize("text", ["", "a b", "0.19.0", "!!"])
def test_what_the_index_does_not_hold_finds_nothing(store: Store, three: int, text: str) -> None:
    assert search(store, three, text) == FoundByWords({}, (), ())


def test_other_repositories_are_not_searched(store: Store, three: int) -> None:
    assert search(store, three + 1, "zebra").scores == {}


def test_many_issues_are_ranked_without_their_counts(
    store: Store, three: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert PROFILES_MAX > 3
    monkeypatch.setattr("app.match.search.word_search.PROFILES_MAX", 1)

    assert ranked(search(store, three, "marlin kernel")) == [1, 2]
