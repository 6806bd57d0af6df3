"""The starter cards' texts."""

from __future__ import annotations

from app.store.github.issues import add_repository, find_cards, save_cards, save_issues
from app.store.session import Store
from tests.samples import REPO, an_issue


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
