"""A backup of a base that is being written: one moment, whole, checked; put back, the same rows."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.errors import SchemaError, StoreError
from app.store.backup import backup as backups
from app.store.backup.backup import back_up, check_backup, restore
from app.store.github.issues import add_repository, save_issues
from app.store.schema import check_current, current_revision, migrate, newest_revision
from app.store.session import Store, open_store
from tests.samples import an_issue
from tests.store.conftest import contents, fill


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "backups" / "triage.backup"


@pytest.fixture(autouse=True)
def _folder(path: Path) -> None:
    path.parent.mkdir()


@pytest.fixture
def there(empty_url: str) -> str:
    """The address of a base that is migrated and empty, or of none."""
    return empty_url


def contents_at(url: str) -> dict[str, list[str]]:
    opened = open_store(url)
    check_current(opened)
    found = contents(opened)
    opened.close()
    return found


def counts_at(url: str) -> dict[str, int]:
    return {name: len(rows) for name, rows in contents_at(url).items()}


class Writer(threading.Thread):
    """Adds issues until it is stopped."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store, self.stop, self.written = store, threading.Event(), 0

    def run(self) -> None:
        while not self.stop.is_set():
            with self.store.unit_of_work() as session:
                save_issues(
                    session, 1, [an_issue(5000 + 2 * self.written), an_issue(5001 + 2 * self.written)]
                )
            self.written += 1

    def __enter__(self) -> Writer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.join(20)


@pytest.mark.long
def test_a_backup_under_load_is_one_moment_and_comes_back_on_either_engine(
    store: Store, there: str, path: Path
) -> None:
    fill(store)
    with Writer(store) as writer:
        while writer.written < 3:
            pass
        before = writer.written
        backed_up = back_up(store, path)
        after = writer.written

    issues = backed_up["issue"] - 4
    assert issues % 2 == 0, "each transaction of the writer is there as a whole or not at all"
    assert 2 * before <= issues <= 2 * (after + 1)
    restored = restore(path, there)

    assert restored.rows == backed_up
    assert counts_at(there) == backed_up


def test_a_backup_equals_the_base_it_was_made_of(store: Store, path: Path, there: str) -> None:
    fill(store)
    rows = back_up(store, path)
    restore(path, there)

    assert contents_at(there) == contents(store)
    assert sum(rows.values()) > 50
    assert check_backup(path) == rows


def test_nothing_is_left_beside_the_backup_and_only_its_owner_may_read_it(store: Store, path: Path) -> None:
    fill(store)
    back_up(store, path)

    assert [item.name for item in path.parent.iterdir()] == [path.name]
    assert path.stat().st_mode & 0o077 == 0


def test_a_file_that_is_there_is_not_overwritten_unless_told_so(store: Store, path: Path) -> None:
    fill(store)
    path.write_text("a letter")

    with pytest.raises(StoreError, match="is there already: name another file"):
        back_up(store, path)
    assert path.read_text() == "a letter"
    back_up(store, path, force=True)
    assert check_backup(path)["issue"] == 4


class Stop(BaseException):
    """As Ctrl-C, in the middle."""


def test_a_backup_that_is_stopped_leaves_no_file(
    store: Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store)

    def stop(_path: Path) -> None:
        raise Stop

    monkeypatch.setattr(backups, "check_backup", stop)
    with pytest.raises(Stop):
        back_up(store, path)
    assert list(path.parent.iterdir()) == []


def test_a_backup_goes_where_there_is_a_folder(store: Store, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"there is no folder .*: make it first"):
        back_up(store, tmp_path / "nowhere" / "file")


def test_an_old_base_is_backed_up_and_comes_back_in_the_newest_schema(
    empty_url: str, sqlite_store: Store, path: Path, tmp_path: Path
) -> None:
    old = open_store(empty_url)
    migrate(old, "20261122_seen_and_deliveries")
    with old.unit_of_work(changes=None) as session:
        add_repository(session, "a/b")
    back_up(old, path)
    old.close()

    url = f"sqlite:///{tmp_path}/new.db"
    restore(path, url)
    assert contents_at(url)["repository"] == ['{"full_name": "a/b", "id": 1}']
    new = open_store(url)
    assert current_revision(new) == newest_revision()
    new.close()


def test_a_base_with_rows_is_kept_unless_told_so_and_then_aside(sqlite_store: Store, path: Path) -> None:
    fill(sqlite_store)
    first = contents(sqlite_store)
    back_up(sqlite_store, path)
    with sqlite_store.unit_of_work() as session:
        save_issues(session, 1, [an_issue(999)])
    later, url = contents(sqlite_store), str(sqlite_store.engine.url)
    sqlite_store.close()

    with pytest.raises(StoreError, match="has rows: add --force"):
        restore(path, url)
    assert contents_at(url) == later
    aside = restore(path, url, force=True).aside
    assert contents_at(url) == first
    assert contents_at(f"sqlite:///{aside}") == later


def test_a_base_on_postgresql_with_rows_is_kept_unless_told_so(postgresql_store: Store, path: Path) -> None:
    fill(postgresql_store)
    first = contents(postgresql_store)
    back_up(postgresql_store, path)
    with postgresql_store.unit_of_work(changes=None) as session:
        save_issues(session, 1, [an_issue(999)])
    later, url = contents(postgresql_store), str(postgresql_store.engine.url)
    postgresql_store.close()

    with pytest.raises(StoreError, match=r"has rows .*--force replaces them"):
        restore(path, url)
    assert contents_at(url) == later
    restore(path, url, force=True)
    assert contents_at(url) == first


def test_a_base_that_is_in_use_is_left_alone(sqlite_store: Store, path: Path) -> None:
    fill(sqlite_store)
    back_up(sqlite_store, path)
    before = contents(sqlite_store)  # and the store is open still, as a server's is

    with pytest.raises(StoreError, match="is in use: stop the server and every sync first"):
        restore(path, str(sqlite_store.engine.url), force=True)
    assert contents(sqlite_store) == before


@pytest.fixture
def made(sqlite_store: Store, path: Path) -> Path:
    fill(sqlite_store)
    back_up(sqlite_store, path)
    return path


def refusal(path: Path, url: str) -> str:
    with pytest.raises(StoreError) as caught:
        restore(path, url)
    return caught.value.message


@pytest.fixture
def place(tmp_path: Path) -> Iterator[str]:
    yield f"sqlite:///{tmp_path}/place/triage.db"
    assert not (tmp_path / "place" / "triage.db").exists()


def test_a_backup_that_lost_bytes_is_refused(made: Path, place: str) -> None:
    size = made.stat().st_size
    with made.open("r+b") as file:
        file.seek(size // 2)
        file.write(b"\xff" * 8192)

    assert str(made) in refusal(made, place)


def test_a_backup_that_was_cut_is_refused(made: Path, place: str) -> None:
    with made.open("r+b") as file:
        file.truncate(made.stat().st_size // 2)

    assert str(made) in refusal(made, place)


def test_what_is_no_backup_is_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "letter").write_text("Dear all, " * 999)
    assert "no SQLite database" in refusal(tmp_path / "letter", place)
    assert "there is no file" in refusal(tmp_path / "nothing", place)
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE note (words TEXT)")
    connection.close()
    assert "was not made by `triage backup`" in refusal(tmp_path / "other.db", place)


def test_a_backup_of_a_newer_program_is_refused(made: Path, place: str) -> None:
    with sqlite3.connect(made) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '29991231_of_the_future'")
    connection.close()

    with pytest.raises(SchemaError, match="made by a newer version"):
        restore(made, place)


def test_a_damaged_base_is_replaced_only_when_told_so_and_kept(made: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(b"SQLite format 3\x00" + b"\xee" * 20_000)
    url = f"sqlite:///{damaged}"

    with pytest.raises(StoreError, match="--force"):
        restore(made, url)
    aside = restore(made, url, force=True).aside
    assert counts_at(url) == check_backup(made)
    assert aside is not None
    assert aside.read_bytes().startswith(b"SQLite format 3\x00\xee")


def test_a_restore_that_fails_leaves_the_base_as_it_was(
    made: Path, sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, url = contents(sqlite_store), str(sqlite_store.engine.url)
    sqlite_store.close()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(backups, "migrate", fail)
    with pytest.raises(StoreError, match="No space left on device"):
        restore(made, url, force=True)
    assert contents_at(url) == before
