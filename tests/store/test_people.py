"""People's judgement: one in force for each pair, undone and replaced ones kept, nothing derived touches it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sqlalchemy.exc import IntegrityError

from app.errors import StoreError
from app.store.github.issues import add_repository, save_issues
from app.store.people import (
    KEY_BYTES,
    KeptLogRecord,
    Verdict,
    add_kept_log,
    count_votes,
    delete_kept_log,
    find_kept_log,
    find_secret,
    judged_pairs,
    list_judgements,
    make_secret,
    purge_kept_logs,
    save_judgement,
    save_vote,
    sum_kept_logs,
    undo_judgement,
    votes_by,
)
from app.store.schema import migrate
from app.store.session import Store, open_store
from app.store.tables import JUDGEMENT
from tests.samples import EARLY, REPO, an_issue

PAIRS = st.tuples(st.integers(1, 4), st.integers(1, 4)).filter(lambda pair: pair[0] != pair[1])
JUDGE = st.tuples(st.just("judge"), PAIRS, st.sampled_from(["same", "different"]))
UNDO = st.tuples(st.just("undo"), PAIRS, st.none())
_names = count()


@pytest.fixture
def repo_id(store: Store) -> int:
    with store.unit_of_work() as session:
        return add_repository(session, REPO)


def test_a_pair_is_kept_with_its_lower_number_first(store: Store, repo_id: int) -> None:
    with store.unit_of_work() as session:
        record, is_new = save_judgement(session, repo_id, 9, 4, "same", "one bug")

    assert (record.a, record.b, record.verdict, record.note, is_new) == (4, 9, "same", "one bug", True)
    with store.reading() as session:
        assert judged_pairs(session, repo_id, range(20)) == {(4, 9): "same"}


def test_the_same_judgement_again_changes_nothing(store: Store, repo_id: int) -> None:
    with store.unit_of_work() as session:
        first, _ = save_judgement(session, repo_id, 4, 9, "same")
        again, is_new = save_judgement(session, repo_id, 9, 4, "same")

    assert (again, is_new) == (first, False)


def test_another_verdict_replaces_the_former_one_which_stays_in_the_trail(store: Store, repo_id: int) -> None:
    with store.unit_of_work() as session:
        save_judgement(session, repo_id, 4, 9, "same")
    with store.unit_of_work() as session:
        save_judgement(session, repo_id, 4, 9, "different")

    with store.reading() as session:
        assert judged_pairs(session, repo_id, range(20)) == {(4, 9): "different"}
        new, old = list_judgements(session, repo_id, ended=True)
    assert (new.undone_at, new.undone_why) == (None, None)
    assert (old.verdict, old.undone_why) == ("same", "replaced")
    assert old.undone_at is not None
    assert old.undone_at >= old.judged_at


def test_an_undone_judgement_is_no_longer_in_force_but_in_the_trail(store: Store, repo_id: int) -> None:
    with store.unit_of_work() as session:
        record, _ = save_judgement(session, repo_id, 4, 9, "same")
        ended = undo_judgement(session, record.id)
        again = undo_judgement(session, record.id)

    assert ended is not None
    assert ended.undone_why == "undone"
    assert again == ended
    with store.reading() as session:
        assert judged_pairs(session, repo_id, range(20)) == {}
        assert list_judgements(session, repo_id) == []
        assert list_judgements(session, repo_id, ended=True) == [ended]


def test_a_judgement_that_is_not_there_cannot_be_undone(store: Store) -> None:
    with store.unit_of_work() as session:
        assert undo_judgement(session, 77) is None


def test_pairs_are_found_from_either_end(store: Store, repo_id: int) -> None:
    with store.unit_of_work() as session:
        save_judgement(session, repo_id, 1, 2, "same")
        save_judgement(session, repo_id, 2, 3, "different")
        save_judgement(session, repo_id, 8, 9, "same")

    with store.reading() as session:
        assert judged_pairs(session, repo_id, [2]) == {(1, 2): "same", (2, 3): "different"}
        assert judged_pairs(session, repo_id, [3, 9]) == {(2, 3): "different", (8, 9): "same"}
        assert judged_pairs(session, repo_id, []) == {}
        assert judged_pairs(session, repo_id, range(8, 2_500)) == {(8, 9): "same"}
        assert judged_pairs(session, repo_id + 1, range(20)) == {}


def test_the_database_itself_refuses_two_in_force_for_one_pair(store: Store, repo_id: int) -> None:
    rows = [
        {"repo_id": repo_id, "a": 1, "b": 2, "verdict": v, "judged_at": EARLY} for v in ("same", "different")
    ]

    with pytest.raises((IntegrityError, StoreError)), store.unit_of_work() as session:
        session.connection().execute(JUDGEMENT.insert(), rows)


def test_the_list_goes_on_below_an_id(store: Store, repo_id: int) -> None:
    with store.unit_of_work() as session:
        for number in (2, 3, 4):
            save_judgement(session, repo_id, 1, number, "same")
        first = list_judgements(session, repo_id, limit=2)
        rest = list_judgements(session, repo_id, below=first[-1].id, limit=2)

    assert [record.b for record in (*first, *rest)] == [4, 3, 2]


@given(steps=st.lists(st.one_of(JUDGE, UNDO), max_size=12))
@hypothesis_settings(max_examples=25)
def test_what_is_in_force_is_what_was_said_last(
    long_store: Store, steps: list[tuple[str, tuple[int, int], Verdict]]
) -> None:
    said: dict[tuple[int, int], Verdict] = {}
    with long_store.unit_of_work() as session:
        repo_id = add_repository(session, f"said/last-{next(_names)}")
        for what, (a, b), verdict in steps:
            pair = (min(a, b), max(a, b))
            if what == "judge":
                save_judgement(session, repo_id, a, b, verdict)
                said[pair] = verdict
            else:
                for record in list_judgements(session, repo_id):
                    if (record.a, record.b) == pair:
                        undo_judgement(session, record.id)
                said.pop(pair, None)
        assert judged_pairs(session, repo_id, range(20)) == said


@pytest.fixture(scope="module")
def long_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path_factory.mktemp('judged')}/triage.db")
    migrate(opened)
    yield opened
    opened.close()


NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
RECORD = KeptLogRecord(
    "a" * 32, "b" * 64, "ValueError: größe 🦙", {"x": [1, None]}, NOW, NOW + timedelta(days=30)
)


def keep(store: Store, *records: KeptLogRecord) -> None:
    with store.unit_of_work() as session:
        for record in records:
            add_kept_log(session, record)


def find(store: Store, key: str, now: datetime = NOW) -> KeptLogRecord | None:
    with store.reading() as session:
        return find_kept_log(session, key, now)


def test_a_kept_log_is_found_as_it_was(store: Store) -> None:
    keep(store, RECORD)

    assert find(store, RECORD.id) == RECORD
    assert find(store, "c" * 32) is None


def test_a_log_whose_time_is_over_is_not_found_and_goes_with_the_next_purge(store: Store) -> None:
    keep(store, RECORD, replace(RECORD, id="c" * 32, expires_at=NOW + timedelta(days=60)))
    later = NOW + timedelta(days=30)

    assert find(store, RECORD.id, later) is None
    with store.unit_of_work() as session:
        assert purge_kept_logs(session, later) == 1
        assert sum_kept_logs(session)[0] == 1


def test_only_the_right_key_deletes(store: Store) -> None:
    keep(store, RECORD)
    with store.unit_of_work() as session:
        assert delete_kept_log(session, RECORD.id, "0" * 64) is False
        assert delete_kept_log(session, RECORD.id, RECORD.delete_key) is True
        assert delete_kept_log(session, RECORD.id, RECORD.delete_key) is False

    assert find(store, RECORD.id) is None


def test_a_clock_far_ahead_deletes_nothing_unless_it_is_sure(store: Store) -> None:
    keep(store, RECORD)
    with store.unit_of_work() as session:
        assert purge_kept_logs(session, NOW + timedelta(days=365)) == 0
        assert purge_kept_logs(session, NOW + timedelta(days=365), is_sure=True) == 1


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
