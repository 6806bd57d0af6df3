"""Votes without accounts: one of each visitor and signal; on a remedy one of each signed cookie, within a share.

Nobody can be read out of them.
"""

from __future__ import annotations

import pytest
from sqlalchemy import text

from app.errors import InputError, NotFoundError
from app.knowledge.issue.view import load_issue_page, view_issue
from app.knowledge.issue.votes import SHARE, SIGNALS, RemedyVotes, VoteCount, remedy_id, vote, vote_on_remedy
from app.store.session import Store
from tests.knowledge.conftest import Keep
from tests.samples import REPO, an_issue

ANNA, BERT = "192.0.2.7", "2001:db8:1::/64"


@pytest.fixture(autouse=True)
def _issues(keep: Keep) -> None:
    first = an_issue(1, body="It hangs at the start. Adding `--enforce-eager` fixes it.")
    keep(first, an_issue(2))
    keep(an_issue(1), repo="other/thing")


def test_every_signal_is_counted_from_the_start(store: Store) -> None:
    votes = view_issue(store, REPO, 1).votes

    assert tuple(votes) == SIGNALS
    assert set(votes.values()) == {VoteCount()}


def test_a_visitor_has_one_vote_for_each_signal(store: Store) -> None:
    vote(store, REPO, 1, "works", 1, client=ANNA)
    vote(store, REPO, 1, "works", 1, client=ANNA)
    found = vote(store, REPO, 1, "works", -1, client=BERT)

    assert found.votes["works"] == VoteCount(up=1, down=1)
    assert found.yours == {"works": -1}
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


OFFICE, HOME = "192.0.2.7", "192.0.2.8"
ACTION = "--enforce-eager"
REMEDY = remedy_id(ACTION)


def cast(
    store: Store, value: int, cookie: str | None = None, client: str = OFFICE, remedy: str = REMEDY
) -> str:
    return vote_on_remedy(store, REPO, 1, remedy, value, cookie=cookie, client=client)  # type: ignore[arg-type]


def votes(store: Store, cookie: str | None = None) -> RemedyVotes:
    return load_issue_page(store, REPO, 1, cookie=cookie).remedy_votes.get(REMEDY, RemedyVotes())


def test_an_office_behind_one_address_is_more_than_one_visitor(store: Store) -> None:
    first, second = cast(store, 1), cast(store, -1)

    assert votes(store, first) == RemedyVotes(up=1, down=1, yours=1)
    assert votes(store, second).yours == -1


def test_a_visitor_s_second_vote_takes_the_first_one_s_place_and_0_takes_it_back(store: Store) -> None:
    cookie = cast(store, 1)

    assert cast(store, -1, cookie, HOME) == cookie
    assert votes(store) == RemedyVotes(down=1)
    cast(store, 0, cookie)
    assert votes(store) == RemedyVotes()


def test_who_throws_the_cookie_away_fills_no_more_than_the_share_of_the_address(store: Store) -> None:
    for _ in range(SHARE):
        cast(store, 1)

    with pytest.raises(InputError, match="of your network"):
        cast(store, 1)
    cast(store, 1, client=HOME)
    assert votes(store) == RemedyVotes(up=SHARE + 1)


@pytest.mark.parametrize(
    "forged",
    ["", "x", "00.00", "a" * 32 + "." + "b" * 32, "\udcff.\udcff".encode("utf-8", "replace").decode()],
)
def test_a_cookie_that_this_base_did_not_sign_is_a_new_visitor(store: Store, forged: str) -> None:
    cookie = cast(store, 1)
    other = cast(store, 1, forged)

    assert other.split(".")[0] not in {cookie.split(".")[0], forged.split(".", maxsplit=1)[0]}


def test_what_the_issue_does_not_name_cannot_be_voted_on(store: Store) -> None:
    with pytest.raises(NotFoundError):
        cast(store, 1, remedy=remedy_id("--something-else"))


def test_the_base_keeps_neither_cookie_nor_address(store: Store) -> None:
    cookie = cast(store, 1)
    with store.engine.connect() as connection:
        kept = str(connection.execute(text("SELECT * FROM remedy_vote")).all())

    assert OFFICE not in kept
    assert cookie.split(".")[0] not in kept
