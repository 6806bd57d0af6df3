"""The schema's version: up, down, repeated, too new, too old, not writable."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import insert, inspect, text

from app.errors import SchemaError, StoreError
from app.paths import migrations_dir
from app.store.derived.search_index import find_frequencies, hash_terms, index_terms, term_id
from app.store.engine import connect as dialect
from app.store.github.issues import add_repository, find_repository, save_issues
from app.store.schema import check_current, current_revision, known_revisions, migrate, newest_revision
from app.store.session import Store, open_store
from app.store.tables import metadata
from tests.samples import EARLY, an_issue
from tests.store.derived.test_facts import readings


@pytest.fixture
def empty(empty_url: str) -> Iterator[Store]:
    opened = open_store(empty_url)
    yield opened
    opened.close()


def tables_of(store: Store) -> set[str]:
    with store.engine.connect() as connection:
        return set(inspect(connection).get_table_names())


def claim_revision(store: Store, revision: str) -> None:
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})


def pragma(store: Store, name: str) -> object:
    with store.engine.connect() as connection:
        return connection.exec_driver_sql(f"PRAGMA {name}").scalar()


def test_an_empty_database_has_no_revision(empty: Store) -> None:
    assert current_revision(empty) is None


def test_migrate_goes_up_from_nothing(empty: Store) -> None:
    assert migrate(empty) == newest_revision()
    assert tables_of(empty) == {*metadata.tables, "alembic_version"}


def test_migrate_is_safe_to_repeat(empty: Store) -> None:
    migrate(empty)
    with empty.unit_of_work() as session:
        add_repository(session, "a/b")

    assert migrate(empty) == newest_revision()
    with empty.reading() as session:
        assert find_repository(session, "a/b")


def test_migrate_goes_down_to_nothing(empty: Store) -> None:
    migrate(empty)

    assert migrate(empty, "base") == "base"
    assert tables_of(empty) == {"alembic_version"}


def test_migrate_goes_up_again_after_it_went_down(empty: Store) -> None:
    migrate(empty)
    migrate(empty, "base")
    migrate(empty)

    check_current(empty)
    assert tables_of(empty) == {*metadata.tables, "alembic_version"}


def test_migrate_goes_to_a_named_revision(empty: Store) -> None:
    assert migrate(empty, newest_revision()) == newest_revision()


def test_what_lists_filter_by_is_told_of_readings_that_are_there_already(empty: Store) -> None:
    migrate(empty)
    found = {
        "failure_kind": "oom",
        "error": {"type": "E" * 200, "message": "m"},
        "workarounds": [{"outcome": "works"}],
    }
    vain = {"failure_kind": "hang", "error": None, "workarounds": [{"outcome": "fails"}]}
    with empty.unit_of_work() as session:
        repo_id = add_repository(session, "a/b")
        save_issues(session, repo_id, [an_issue(number) for number in (1, 2, 3)])
        for number, facts in ((1, found), (2, vain), (3, None)):
            row = {
                "repo_id": repo_id,
                "number": number,
                "rules_version": "r",
                "facts": facts,
                "read_at": EARLY,
            }
            session.connection().execute(insert(metadata.tables["reading"]).values(row))
    migrate(empty, "20261126_clusters")
    migrate(empty)

    with empty.reading() as session:
        assert readings(session, repo_id) == [
            ("", "", False, [3]),
            ("hang", "", False, [2]),
            ("oom", "E" * 120, True, [1]),
        ]


def test_terms_are_counted_anew_by_the_postings_that_are_there(empty: Store) -> None:
    migrate(empty)
    with empty.unit_of_work() as session:
        repo_id = add_repository(session, "a/b")
        save_issues(session, repo_id, [an_issue(number) for number in (1, 2)])
        index_terms(session, repo_id, {1: hash_terms({(1, "cuda"): 2}), 2: hash_terms({(1, "cuda"): 1})})
    migrate(empty, "20261209_issue_times")
    migrate(empty)

    with empty.reading() as session:
        assert find_frequencies(session, [term_id(1, "cuda")]) == {term_id(1, "cuda"): 2}


def test_migrate_of_an_empty_database_to_base_changes_nothing(empty: Store) -> None:
    assert migrate(empty, "base") == "base"


def test_migrations_and_tables_agree(store: Store) -> None:
    with store.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "render_as_batch": True})
        differences = compare_metadata(context, metadata)

    assert differences == []


GITHUBS = (
    "issue",
    "comment",
    "pull_request",
    "release",
    "release_pull",
    "reading",
    "link",
    "vote",
    "card",
    "profile",
)


@pytest.mark.parametrize("name", GITHUBS)
def test_what_comes_from_github_is_keyed_by_repository_first(name: str) -> None:
    assert next(iter(metadata.tables[name].primary_key)).name == "repo_id"


def test_a_current_database_is_accepted(store: Store) -> None:
    check_current(store)

    assert current_revision(store) == newest_revision()


def test_a_database_that_was_never_migrated_is_sent_to_triage_migrate(empty: Store) -> None:
    with pytest.raises(SchemaError, match="run `triage migrate`"):
        check_current(empty)


def test_a_database_of_a_newer_version_is_refused(empty: Store) -> None:
    migrate(empty)
    claim_revision(empty, "29991231_of_the_future")

    with pytest.raises(SchemaError, match="29991231_of_the_future, made by a newer version"):
        check_current(empty)


def test_a_database_of_a_newer_version_is_not_migrated(empty: Store) -> None:
    migrate(empty)
    claim_revision(empty, "29991231_of_the_future")

    with pytest.raises(SchemaError):
        migrate(empty)
    assert current_revision(empty) == "29991231_of_the_future"


def test_a_place_below_a_plain_file_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("x")

    with pytest.raises(StoreError) as caught:
        open_store(f"sqlite:///{tmp_path}/plain/triage.db")
    assert "\n" not in str(caught.value)
    assert str(tmp_path / "plain") in str(caught.value)


def test_a_folder_in_the_files_place_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        open_store(f"sqlite:///{tmp_path}")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_database_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "triage.db").write_text(
        "this is a letter, not a database, and long enough to be seen as such " * 9
    )

    with pytest.raises(StoreError) as caught:
        migrate(open_store(f"sqlite:///{tmp_path}/triage.db"))
    assert "\n" not in str(caught.value)


def test_a_server_that_does_not_answer_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        migrate(open_store(f"postgresql+psycopg://nobody@/nothing?host={tmp_path}"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("address", ["nonsense", "sqlite:", "://"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(StoreError):
        migrate(open_store(address))


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(StoreError):
        open_store("oracle://somewhere/x")


def test_missing_folders_are_made(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/one/two/triage.db")
    migrate(store)
    store.close()

    assert (tmp_path / "one" / "two" / "triage.db").is_file()


def test_an_old_sqlite_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialect.sqlite3, "sqlite_version_info", (3, 39, 9))
    monkeypatch.setattr(dialect.sqlite3, "sqlite_version", "3.39.9")

    with pytest.raises(StoreError, match=r"SQLite 3\.39\.9 is too old; 3\.40"):
        open_store(f"sqlite:///{tmp_path}/triage.db")


@pytest.mark.parametrize(
    ("name", "wanted"), [("journal_mode", "wal"), ("foreign_keys", 1), ("busy_timeout", 30_000)]
)
def test_sqlite_is_set_up(sqlite_store: Store, name: str, wanted: object) -> None:
    assert pragma(sqlite_store, name) == wanted


def test_a_database_locked_for_longer_than_the_timeout_is_told(
    tmp_path: Path, sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialect, "BUSY_TIMEOUT_MS", 1)
    hasty = open_store(str(sqlite_store.engine.url))
    holder = sqlite3.connect(tmp_path / "triage.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreError, match="locked"), hasty.unit_of_work() as session:
        add_repository(session, "a/b")
    holder.close()
    hasty.close()


def test_facts_of_an_issue_that_is_not_stored_are_refused(store: Store) -> None:
    with pytest.raises(StoreError), store.unit_of_work() as session:
        session.connection().execute(
            text("INSERT INTO pull_request (repo_id, number, is_draft) VALUES (7, 7, false)")
        )


def test_many_that_migrate_an_empty_database_at_once_do_so_in_turn(empty_url: str) -> None:
    together = threading.Barrier(6)

    def migrate_one(_number: int) -> str:
        store = open_store(empty_url)
        together.wait(60)
        try:
            return migrate(store)
        finally:
            store.close()

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(migrate_one, range(6))) == [newest_revision()] * 6


def test_the_files_of_migrations_are_named_for_their_revisions_in_order() -> None:
    config = Config()
    config.set_main_option("script_location", str(migrations_dir()))
    chain = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
    assert known_revisions() == chain[::-1]
