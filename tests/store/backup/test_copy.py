"""A base moved to the other engine and back: all rows, alike; or, whatever stops it, none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from app.errors import SchemaError, StoreError
from app.store.backup import copy as copying
from app.store.backup.copy import copy_database, find_filled
from app.store.engine.sync_lock import sync_lock
from app.store.github.issues import add_repository, find_issue, save_issues
from app.store.records import Progress
from app.store.schema import current_revision, migrate, newest_revision
from app.store.session import Store, open_store
from tests.samples import an_issue
from tests.store.conftest import RAW, contents, fill


@pytest.fixture(params=[("sqlite", "postgresql"), ("postgresql", "sqlite")], ids="-to-".join)
def direction(request: pytest.FixtureRequest) -> tuple[str, str]:
    found: tuple[str, str] = request.param
    return found


@pytest.fixture
def store(request: pytest.FixtureRequest, direction: tuple[str, str]) -> Store:
    opened: Store = request.getfixturevalue(f"{direction[0]}_store")
    return opened


@pytest.fixture
def target(request: pytest.FixtureRequest, direction: tuple[str, str], tmp_path: Path) -> Iterator[Store]:
    """A base in which nothing was ever made."""
    if direction[1] == "sqlite":
        url = f"sqlite:///{tmp_path}/empty.db"
    else:
        url = request.getfixturevalue("postgresql").new_database()
    opened = open_store(url)
    yield opened
    opened.close()


def rows(store: Store) -> str | None:
    with store.reading() as session:
        return find_filled(session.connection())


def test_every_row_arrives_on_the_other_engine(
    store: Store, target: Store, direction: tuple[str, str]
) -> None:
    fill(store)

    copied = copy_database(store, target)

    assert contents(target) == contents(store)
    assert copied == {name: len(found) for name, found in contents(store).items()}
    assert (store.engine.name, target.engine.name) == direction
    assert sum(count > 0 for count in copied.values()) >= 14
    assert current_revision(target) == newest_revision()


def test_json_times_and_odd_letters_arrive_as_they_were(store: Store, target: Store) -> None:
    fill(store)
    copy_database(store, target)

    with store.reading() as ours, target.reading() as theirs:
        assert find_issue(ours, 1, 11) == find_issue(theirs, 1, 11)
        raw = find_issue(theirs, 1, 11).raw  # type: ignore[union-attr]
    assert raw == {**RAW, "number": 11}


def test_the_copy_goes_on_counting_where_the_source_stands(store: Store, target: Store) -> None:
    fill(store)
    copy_database(store, target)

    with target.unit_of_work() as session:
        assert add_repository(session, "other/repo") == 2
        fact = session.connection().execute(text("SELECT max(id) FROM fact")).scalar_one()
    with target.unit_of_work() as session:
        save_issues(session, 1, [an_issue(500)])
        asked = "INSERT INTO fact (repo_id, number, position, field, value, value_key, quote, source, start, \"end\", rule, confidence) VALUES (1, 500, 0, 'f', 'v', 'v', 'q', 'body', 0, 1, 'r', 1) RETURNING id"
        assert session.connection().execute(text(asked)).scalar_one() == fact + 1


def test_postgresql_has_statistics_as_soon_as_a_copy_ends(
    sqlite_store: Store, postgresql_store: Store
) -> None:
    fill(sqlite_store)
    copy_database(sqlite_store, postgresql_store)

    with postgresql_store.reading() as session:
        known = session.connection().execute(text("SELECT DISTINCT tablename FROM pg_stats")).scalars()
        assert {"issue", "fact"} <= set(known)


def test_a_target_with_rows_is_refused_and_left_alone(store: Store, target: Store) -> None:
    fill(store)
    migrate(target)
    with target.unit_of_work() as session:
        add_repository(session, "their/own")
    before = contents(target)

    with pytest.raises(StoreError, match="has rows; name an empty database"):
        copy_database(store, target)
    assert contents(target) == before


def test_rows_that_are_there_go_only_when_they_are_to_be_replaced(store: Store, target: Store) -> None:
    fill(store)
    migrate(target)
    fill(target, issues=5)

    copy_database(store, target, replacing=True)

    assert contents(target) == contents(store)


@pytest.mark.parametrize(("side", "name"), [("source", "the source"), ("target", "the target")])
def test_a_base_of_another_schema_is_refused(store: Store, target: Store, side: str, name: str) -> None:
    fill(store)
    migrate(target)
    with (store if side == "source" else target).unit_of_work(changes=None) as session:
        session.connection().execute(text("UPDATE alembic_version SET version_num = '20261121_first_tables'"))
    try:
        with pytest.raises(SchemaError, match=f"{name}: .*`triage migrate`"):
            copy_database(store, target)
    finally:
        with store.unit_of_work() as session:
            again = {"revision": newest_revision()}
            session.connection().execute(text("UPDATE alembic_version SET version_num = :revision"), again)
    assert rows(target) is None


class Stop(BaseException):
    """As Ctrl-C, in the middle."""


def test_a_copy_that_is_stopped_leaves_the_target_empty(store: Store, target: Store) -> None:
    fill(store)
    steps = 0

    def stop(_step: Progress) -> None:
        nonlocal steps
        steps += 1
        if steps == 4:
            raise Stop

    with pytest.raises(Stop):
        copy_database(store, target, stop)
    assert rows(target) is None

    copy_database(store, target)
    assert contents(target) == contents(store)


def test_a_copy_that_loses_a_row_is_found_out_and_undone(
    store: Store, target: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store)
    insert = copying.insert_rows

    def lossy(connection: object, table: str, columns: list[str], told: list[list[object]]) -> None:
        insert(connection, table, columns, told[1:] if table == "issue" else told)  # type: ignore[arg-type]

    monkeypatch.setattr(copying, "insert_rows", lossy)
    with pytest.raises(StoreError):
        copy_database(store, target)
    assert rows(target) is None


def test_writers_go_on_while_their_base_is_copied_as_it_was(store: Store, target: Store) -> None:
    fill(store)
    before, written = contents(store), 0

    def write(step: Progress) -> None:
        nonlocal written
        if step.done < step.total:
            written += 1
            with store.unit_of_work() as session:
                save_issues(session, 1, [an_issue(2000 + written)])

    copy_database(store, target, write)

    assert written > 3
    assert contents(target) == before != contents(store)


def test_a_target_that_a_sync_holds_is_refused(store: Store, target: Store) -> None:
    with sync_lock(target.engine), pytest.raises(StoreError, match="a sync is writing to the target"):
        copy_database(store, target)


def test_a_row_that_the_other_engine_cannot_hold_is_told_with_its_table(
    sqlite_store: Store, postgresql_store: Store
) -> None:
    with sqlite_store.unit_of_work() as session:
        add_repository(session, "a/b")
        session.connection().execute(text("UPDATE repository SET full_name = 'a' || char(0) || 'b'"))

    with pytest.raises(StoreError, match="the table repository cannot be written"):
        copy_database(sqlite_store, postgresql_store)
    assert rows(postgresql_store) is None


def test_a_base_that_is_not_there_is_not_made_by_looking(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/new.db")
    assert rows(store) is None
    store.close()
