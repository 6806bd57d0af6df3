"""A dead connection to PostgreSQL is replaced before it is used."""

from __future__ import annotations

from sqlalchemy import text

from app.store.session import Store, open_store
from tests.postgresql import PostgreSQL


def read_one(store: Store) -> int:
    with store.reading() as session:
        return int(session.connection().execute(text("SELECT pg_backend_pid()")).scalar_one())


def test_one_that_was_ended_is_replaced_unseen(postgresql_store: Store) -> None:
    first = read_one(postgresql_store)
    other = open_store(postgresql_store.engine.url.render_as_string(hide_password=False))
    with other.unit_of_work() as session:
        ended = text("SELECT pg_terminate_backend(CAST(:pid AS integer), 5000)")
        assert session.connection().execute(ended, {"pid": first}).scalar_one()
    other.close()

    assert read_one(postgresql_store) != first


def test_after_a_restart_of_the_server_none_fails(own_postgresql: PostgreSQL) -> None:
    store = open_store(own_postgresql.url("postgres"))
    with store.reading() as one, store.reading() as other:
        for session in (one, other):
            session.connection().execute(text("SELECT 1"))
    own_postgresql.stop()
    own_postgresql.start()

    with store.reading() as one, store.reading() as other:
        assert [session.connection().execute(text("SELECT 1")).scalar_one() for session in (one, other)] == [
            1,
            1,
        ]
    store.close()
