"""What is computed from the content of all issues is kept until content is written."""

from threading import Barrier, Thread

from sqlalchemy.orm import Session

from app.store.engine.connect import sql_rows
from app.store.github.issues import add_repository
from app.store.memo import kept_until_written
from app.store.session import Store

computed: list[int] = []


@kept_until_written
def repositories(session: Session, least: int) -> list[str]:
    computed.append(least)
    return [
        name
        for (name,) in sql_rows(session, "SELECT full_name FROM repository WHERE id >= :least", least=least)
    ]


def asked(store: Store, least: int = 0) -> tuple[list[str], int]:
    """Return the answer and how often it was computed for it."""
    computed.clear()
    with store.reading() as session:
        return repositories(session, least), len(computed)


def test_an_answer_is_kept_by_its_arguments_until_content_is_written(store: Store) -> None:
    with store.unit_of_work() as session:
        add_repository(session, "one/thing")
    assert asked(store) == (["one/thing"], 1)
    assert asked(store) == (["one/thing"], 0)
    assert asked(store, 1_000) == ([], 1)

    with store.unit_of_work(changes="votes"):
        pass
    assert asked(store)[1] == 0

    with store.unit_of_work() as session:
        add_repository(session, "other/thing")
    assert asked(store) == (["one/thing", "other/thing"], 1)


def test_what_is_not_committed_is_not_kept(store: Store) -> None:
    with store.unit_of_work() as session:
        add_repository(session, "one/thing")
        assert repositories(session, 0) == ["one/thing"]
        session.rollback()
    assert asked(store) == ([], 1)


def test_a_session_answers_from_the_data_that_it_sees(store: Store) -> None:
    with store.reading() as before:
        assert repositories(before, 0) == []
        with store.unit_of_work() as session:
            add_repository(session, "one/thing")
        assert asked(store) == (["one/thing"], 1)
        assert repositories(before, 0) == []


def test_those_who_ask_meanwhile_wait_for_the_one_answer(store: Store) -> None:
    began = Barrier(3)
    computed.clear()

    def ask() -> None:
        with store.reading() as session:
            sql_rows(session, "SELECT 1")
            began.wait(10)
            repositories(session, 0)

    threads = [Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert computed == [0]
