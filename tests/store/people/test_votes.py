"""Votes and the key that hides who voted, on each engine."""

from __future__ import annotations

from app.store.github.issues import add_repository, save_issues
from app.store.people.votes import KEY_BYTES, count_votes, find_secret, make_secret, save_vote, votes_by
from app.store.session import Store
from tests.samples import REPO, an_issue

ANNA, BERT = "a" * 64, "b" * 64


def stored(store: Store) -> int:
    with store.unit_of_work() as session:
        repo = add_repository(session, REPO)
        save_issues(session, repo, [an_issue(1), an_issue(2)])
    return repo


def test_votes_are_counted_for_and_against_each_signal(store: Store) -> None:
    repo = stored(store)
    with store.unit_of_work() as session:
        save_vote(session, repo, 1, "works", ANNA, 1)
        save_vote(session, repo, 1, "works", BERT, -1)
        save_vote(session, repo, 1, "flaky", BERT, 1)
        save_vote(session, repo, 2, "works", BERT, 1)

    with store.reading() as session:
        assert count_votes(session, repo, 1) == {"works": (1, 1), "flaky": (1, 0)}
        assert votes_by(session, repo, 1, BERT) == {"works": -1, "flaky": 1}
        assert votes_by(session, repo, 1, "c" * 64) == {}


def test_a_second_vote_takes_the_first_one_s_place_and_zero_takes_it_away(store: Store) -> None:
    repo = stored(store)
    for value, counts in (
        (1, {"works": (1, 0)}),
        (1, {"works": (1, 0)}),
        (-1, {"works": (0, 1)}),
        (0, {}),
        (0, {}),
    ):
        with store.unit_of_work() as session:
            save_vote(session, repo, 1, "works", ANNA, value)
            assert count_votes(session, repo, 1) == counts


def test_votes_outlive_a_new_version_of_the_issue(store: Store) -> None:
    repo = stored(store)
    with store.unit_of_work() as session:
        save_vote(session, repo, 1, "works", ANNA, 1)
    with store.unit_of_work() as session:
        assert save_issues(session, repo, [an_issue(1, title="changed")]) == [1]

    with store.reading() as session:
        assert count_votes(session, repo, 1) == {"works": (1, 0)}


def test_a_secret_is_made_once_and_is_random(store: Store) -> None:
    with store.reading() as session:
        assert find_secret(session, "votes") is None
    with store.unit_of_work() as session:
        made = make_secret(session, "votes")
        assert make_secret(session, "votes") == made
        assert make_secret(session, "other") != made

    with store.reading() as session:
        assert find_secret(session, "votes") == made
    assert len(made) == KEY_BYTES
