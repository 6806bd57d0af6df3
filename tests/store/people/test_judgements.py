"""People's judgement: one in force for each pair, undone and replaced ones kept, nothing derived touches it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sqlalchemy.exc import IntegrityError

from app.errors import StoreError
from app.store.github.issues import add_repository
from app.store.people.judgements import (
    Verdict,
    judged_pairs,
    list_judgements,
    save_judgement,
    undo_judgement,
)
from app.store.schema import migrate
from app.store.session import Store, open_store
from app.store.tables import JUDGEMENT
from tests.samples import EARLY, REPO

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
