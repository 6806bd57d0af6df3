"""Loading the starter cards into an empty base."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from app.knowledge.indexing.batches import load_starter_set
from app.paths import cards_dir
from app.starter.cards import CardError
from app.store.github.counts import count_issues
from app.store.github.issues import find_issue, find_repository
from app.store.session import Store
from tests.knowledge.conftest import Keep
from tests.samples import REPO, a_pull, an_issue

CARDS = len(list(cards_dir().glob("*.toml")))


def counts(store: Store) -> dict[str, int] | None:
    with store.reading() as session:
        repo_id = find_repository(session, REPO)
        return None if repo_id is None else count_issues(session, repo_id)


def test_an_empty_base_gets_all_cards(store: Store) -> None:
    assert load_starter_set(store) == CARDS
    assert counts(store) == {"issues": CARDS, "pulls": 0, "from_cards": CARDS}


def test_a_second_time_nothing_is_loaded(store: Store) -> None:
    load_starter_set(store)

    assert load_starter_set(store) == 0


def test_a_base_that_holds_issues_gets_none(store: Store, keep: Keep) -> None:
    keep(an_issue(1))

    assert load_starter_set(store) == 0
    assert counts(store) == {"issues": 1, "pulls": 0, "from_cards": 0}


def test_a_base_of_pull_requests_only_gets_them(store: Store, keep: Keep) -> None:
    keep(a_pull(1))

    assert load_starter_set(store) == CARDS


def test_a_base_of_another_repository_gets_them(store: Store, keep: Keep) -> None:
    keep(an_issue(1), repo="other/engine")

    assert load_starter_set(store) == CARDS


def test_a_card_becomes_an_issue_that_says_where_it_is_from(store: Store) -> None:
    load_starter_set(store)
    with store.reading() as session:
        issue = find_issue(session, 1, 39288)

    assert issue is not None
    assert (issue.origin, issue.url, issue.raw) == ("card", f"https://github.com/{REPO}/issues/39288", None)


def test_one_faulty_card_keeps_all_out(store: Store, tmp_path: Path) -> None:
    shutil.copytree(cards_dir(), tmp_path / "cards")
    (tmp_path / "cards" / "1-broken.toml").write_text("number = 'one'")

    with pytest.raises(CardError, match=r"^1-broken\.toml: "):
        load_starter_set(store, tmp_path / "cards")
    assert counts(store) is None
