"""Votes without accounts: one of each visitor and signal, and nobody can be read out of them."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from app.errors import NotFoundError
from app.knowledge.issue.view import view_issue
from app.knowledge.issue.votes import SIGNALS, VoteCount, vote
from app.store.session import Store
from tests.knowledge.conftest import Keep
from tests.samples import REPO, an_issue

ANNA, BERT = "192.0.2.7", "2001:db8:1::/64"


@pytest.fixture(autouse=True)
def _issues(keep: Keep) -> None:
    keep(an_issue(1), an_issue(2))
    keep(an_issue(1), repo="other/thing")


def test_every_signal_is_counted_from_the_start(store: Store) -> None:
    votes = view_issue(store, REPO, 1).votes

    assert tuple(votes) == SIGNALS
    assert set(votes.values()) == {VoteCount()}


def test_a_visitor_has_one_vote_for_each_signal(store: Store) -> None:
    vote(store, REPO, 1, "works", 1, client=ANNA)
    vote(store, REPO, 1, "works", 1, client=ANNA)
    told = vote(store, REPO, 1, "works", -1, client=BERT)

    assert told.votes["works"] == VoteCount(up=1, down=1)
    assert told.yours == {"works": -1}
    assert vote(store, REPO, 1, "works", 0, client=ANNA).votes["works"] == VoteCount(up=0, down=1)


def test_issues_and_repositories_are_voted_on_apart(store: Store) -> None:
    vote(store, REPO, 1, "works", 1, client=ANNA)

    assert view_issue(store, REPO, 2).votes["works"] == VoteCount()
    assert view_issue(store, "other/thing", 1).votes["works"] == VoteCount()


def test_an_issue_s_answer_holds_its_votes(store: Store) -> None:
    vote(store, REPO, 1, "verified", 1, client=ANNA)

    assert view_issue(store, REPO, 1).votes["verified"] == VoteCount(up=1)


def test_the_base_tells_neither_an_address_nor_that_two_votes_are_of_one_visitor(store: Store) -> None:
    for number in (1, 2):
        vote(store, REPO, number, "works", 1, client=ANNA)
    with store.engine.connect() as connection:
        visitors = [row[0] for row in connection.execute(text("SELECT visitor FROM vote"))]

    assert len(set(visitors)) == 2
    assert all(len(visitor) == 64 and ANNA not in visitor for visitor in visitors)


@pytest.mark.parametrize(("repo", "number"), [(REPO, 77), ("nobody/nothing", 1)])
def test_what_is_not_stored_cannot_be_voted_on(store: Store, repo: str, number: int) -> None:
    with pytest.raises(NotFoundError, match="not stored"):
        vote(store, repo, number, "works", 1, client=ANNA)
