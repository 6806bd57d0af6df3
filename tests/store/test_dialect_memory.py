"""What a connection remembers of an unchanged base."""

from __future__ import annotations

import pytest
from sqlmodel import Session

from app.store.dialect_memory import remembered
from app.store.issues import add_repository, save_issues
from app.store.session import Store, open_store
from app.store.stock import Stock, find_stock
from app.store.terms import count_indexed, index_terms
from tests.samples import REPO, an_issue


def put(session: Session, *numbers: int) -> None:
    repo_id = add_repository(session, REPO)
    save_issues(session, repo_id, [an_issue(number) for number in numbers])
    index_terms(session, repo_id, {number: {(1, "word"): 1} for number in numbers})


def indexed(store: Store) -> int:
    with store.reading() as session:
        return count_indexed(session)


def asked_for(store: Store, *names: str) -> list[str]:
    """Which of the names are asked about anew."""
    asked: list[str] = []
    for name in names:
        with store.reading() as session:
            assert remembered(session, name, lambda name=name: asked.append(name) or name) == name
    return asked


def test_an_unchanged_base_is_asked_once(sqlite_store: Store) -> None:
    assert asked_for(sqlite_store, "one", "two", "one", "two") == ["one", "two"]


def test_an_engine_that_does_not_tell_is_asked_each_time(postgresql_store: Store) -> None:
    assert asked_for(postgresql_store, "one", "one") == ["one", "one"]


def test_what_the_same_process_writes_is_counted(store: Store) -> None:
    counts = [indexed(store)]
    for number in (1, 2):
        with store.unit_of_work() as session:
            put(session, number)
        counts.append(indexed(store))

    assert counts == [0, 1, 2]


def test_what_another_process_writes_is_counted(store: Store) -> None:
    before = indexed(store)
    other = open_store(store.engine.url.render_as_string(hide_password=False))
    with other.unit_of_work() as session:
        put(session, 1, 2)
    other.close()

    assert (before, indexed(store)) == (0, 2)


def test_what_was_never_committed_is_not_remembered(store: Store) -> None:
    inside = []

    def fail(session: Session) -> None:
        put(session, 1)
        inside.append(count_indexed(session))
        raise RuntimeError

    with pytest.raises(RuntimeError), store.unit_of_work() as session:
        fail(session)

    assert (inside, indexed(store)) == ([1], 0)


def test_the_stock_names_the_repositories_of_which_anything_is_stored(store: Store) -> None:
    with store.unit_of_work() as session:
        put(session, 1, 2, 3)

    with store.reading() as session:
        stock = find_stock(session, (REPO, "nobody/nothing"))

    assert stock == Stock({1: REPO}, issues=3, as_of=None)
