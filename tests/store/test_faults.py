"""What the disk, the engine or the clock do wrong: told in a line that says what to do, and nothing is lost."""

from __future__ import annotations

import resource
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import time_machine
from sqlalchemy import event, text

from app.errors import StoreError
from app.store.derived.readings import stale_numbers
from app.store.engine import connect as dialect
from app.store.github.issues import add_repository, find_issue, numbers_of, save_issues
from app.store.github.sync_state import begin_run, end_run, fresh_as_of
from app.store.schema import migrate
from app.store.session import Store, open_store
from tests.postgresql import PostgreSQL
from tests.samples import REPO, an_issue
from tests.store.conftest import fill

LONG = "It fails. " * 400


def write(store: Store, number: int) -> None:
    with store.unit_of_work() as session:
        save_issues(session, add_repository(session, REPO), [an_issue(number, body=LONG)])


def stored(store: Store) -> list[int]:
    with store.reading() as session:
        return numbers_of(session, 1, limit=100_000)


def write_until_refused(store: Store, most: int = 3000) -> tuple[list[int], str]:
    """What was acknowledged, and the refusal."""
    done: list[int] = []
    for number in range(1, most):
        try:
            write(store, number)
        except StoreError as error:
            return done, error.message
        done.append(number)
    pytest.fail("the fault did not come")


def path_of(store: Store) -> Path:
    return Path(store.engine.url.database or "")


@pytest.fixture
def reopened(sqlite_store: Store) -> Iterator[Store]:
    """The same file, opened later."""
    sqlite_store.close()
    opened = open_store(str(sqlite_store.engine.url))
    yield opened
    opened.close()


# ---- the disk


def test_a_full_disk_loses_nothing_and_writing_goes_on_when_there_is_room(sqlite_store: Store) -> None:
    limits = {"pages": 120}

    def limit(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute(f"PRAGMA max_page_count={limits['pages']}")

    sqlite_store.close()
    event.listen(sqlite_store.engine, "connect", limit)
    done, refusal = write_until_refused(sqlite_store)

    assert "no room left on the disk: free some; what was stored stays" in refusal
    assert stored(sqlite_store) == done != []
    limits["pages"] = 1 << 30
    sqlite_store.close()
    write(sqlite_store, 9000)
    assert stored(sqlite_store) == [*done, 9000]


WRITE = """
import sys
from app.errors import StoreError
from app.store.session import open_store
from tests.store.test_faults import write
store = open_store(sys.argv[1])
for number in range(1, 3000):
    try:
        write(store, number)
    except StoreError as error:
        print(error.message)
        break
    print(number, flush=True)
"""


def test_a_disk_that_refuses_to_write_loses_nothing(sqlite_store: Store) -> None:
    """The file-size limit of the process stands for the disk's end: it stops the log as well as the base."""
    url = str(sqlite_store.engine.url)
    sqlite_store.close()
    size = path_of(sqlite_store).stat().st_size + 300_000
    process = subprocess.run(
        [sys.executable, "-c", WRITE, url],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=Path(__file__).parents[2],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )
    *done, refusal = process.stdout.splitlines()

    assert "look at its free space, quotas and health" in refusal
    opened = open_store(url)
    assert stored(opened) == [int(number) for number in done] != []
    write(opened, 9000)
    opened.close()


def test_a_read_only_file_is_read_and_writing_is_refused_in_words(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(sqlite_store, 1)
    sqlite_store.close()
    monkeypatch.chdir(tmp_path)
    read_only = open_store(f"sqlite:///file:{path_of(sqlite_store)}?mode=ro&uri=true")

    assert stored(read_only) == [1]
    with pytest.raises(StoreError, match="may not be written: let this user write the file and its folder"):
        write(read_only, 2)
    assert stored(read_only) == [1]
    read_only.close()
    assert not Path("file:").exists()


def test_a_lock_is_told_and_writing_goes_on_after_it(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialect, "BUSY_TIMEOUT_MS", 20)
    hasty = open_store(str(sqlite_store.engine.url))
    holder = sqlite3.connect(path_of(sqlite_store), isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreError, match="locked: another process is writing for too long"):
        write(hasty, 1)
    holder.close()
    write(hasty, 1)
    assert stored(hasty) == [1]
    hasty.close()


# ---- damage


def damage(path: Path, start: int) -> None:
    """Overwrite the file from a byte on."""
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"\xee" * (path.stat().st_size - start))


def test_a_damaged_file_is_told_with_the_way_back(sqlite_store: Store) -> None:
    fill(sqlite_store, issues=12)
    sqlite_store.close()
    damage(path_of(sqlite_store), 4096)

    with pytest.raises(StoreError, match=r"damaged: stop the server, .* `triage restore BACKUP --force`"):
        stored(open_store(str(sqlite_store.engine.url)))


def test_a_file_whose_start_is_damaged_is_told_with_the_way_back(sqlite_store: Store) -> None:
    sqlite_store.close()
    damage(path_of(sqlite_store), 0)

    with pytest.raises(
        StoreError, match=r"no SQLite database, or its start is damaged: .* `triage restore BACKUP"
    ):
        open_store(str(sqlite_store.engine.url))


# ---- the server


def test_a_restart_of_the_server_under_load_loses_nothing(own_postgresql: PostgreSQL) -> None:
    store = open_store(own_postgresql.new_database())
    migrate(store)
    write(store, 1)
    done: list[int] = [1]
    refusals: list[str] = []
    stop = threading.Event()

    def work(first: int) -> None:
        number = first
        while not stop.is_set():
            number += 10
            try:
                write(store, number)
            except StoreError as error:
                refusals.append(error.message)
            else:
                done.append(number)

    threads = [threading.Thread(target=work, args=(first,)) for first in (1, 2, 3)]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(done) > 20)
    own_postgresql.stop()
    wait_for(lambda: len(refusals) > 3)
    own_postgresql.start()
    before = len(done)
    wait_for(lambda: len(done) > before + 20)
    stop.set()
    for thread in threads:
        thread.join(20)

    assert set(done) <= set(stored(store))
    assert len(stored(store)) <= len(done) + 3, "of each thread, the row whose acknowledgement was cut off"
    assert all("database refused" in refusal and "\n" not in refusal for refusal in refusals)
    store.close()


def wait_for(holds: object, most_s: float = 20.0) -> None:
    until = time.monotonic() + most_s
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_server_that_takes_no_writes_is_read(postgresql_store: Store) -> None:
    write(postgresql_store, 1)
    url = f"{postgresql_store.engine.url}&options=-c%20default_transaction_read_only%3Don"
    standby = open_store(url)

    with pytest.raises(StoreError, match="the server takes no writes: is it a standby"):
        write(standby, 2)
    assert stored(standby) == [1]
    standby.close()


def test_more_requests_than_connections_wait_and_are_then_refused_in_words(
    postgresql_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialect, "POOL_SIZE", 1)
    monkeypatch.setattr(dialect, "POOL_OVERFLOW", 0)
    monkeypatch.setattr(dialect, "POOL_WAIT_S", 0.05)
    small = open_store(str(postgresql_store.engine.url))

    with small.reading() as session:
        session.connection()
        with pytest.raises(StoreError, match="all connections of this process are in use"):
            write(small, 1)
    write(small, 1)
    small.close()


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("postgresql+psycopg://triage@/postgres?host=/nowhere", "cannot be reached"),
        ("postgresql+psycopg://triage:secret@127.0.0.1:1/postgres", "cannot be reached"),
    ],
)
def test_a_server_that_is_not_there_is_told_without_the_address(address: str, told: str) -> None:
    store = open_store(address)
    with pytest.raises(StoreError, match=told) as caught:
        write(store, 1)
    assert "secret" not in caught.value.message
    store.close()


def test_a_database_that_is_not_there_is_told(postgresql: PostgreSQL) -> None:
    store = open_store(postgresql.url("nothing_of_that_name"))
    with pytest.raises(StoreError, match=r"cannot be reached: .* does not exist"):
        migrate(store)
    store.close()


# ---- the clock


@pytest.mark.parametrize("jump", [timedelta(days=-400), timedelta(days=400)])
def test_a_jump_of_the_clock_loses_no_row_and_ends_no_run_early(store: Store, jump: timedelta) -> None:
    fill(store)
    with store.unit_of_work() as session:
        run = begin_run(session, 1)
    with time_machine.travel(datetime.now(UTC) + jump):
        write(store, 500)
        with store.unit_of_work() as session:
            end_run(session, run, outcome="complete")
    with store.reading() as session:
        assert stale_numbers(session, 1, "any")[-1] == 900
        assert find_issue(session, 1, 500) is not None
        assert fresh_as_of(session, 1) is not None
    assert stored(store) == [11, 12, 13, 500, 900]


def test_what_was_written_before_the_clock_was_set_back_is_read_again_not_forgotten(store: Store) -> None:
    with time_machine.travel(datetime.now(UTC) + timedelta(days=2)):
        write(store, 7)
    fill(store)

    with store.reading() as session:
        assert 7 in stale_numbers(session, 1, "any")


def test_a_writer_that_is_killed_leaves_what_it_committed(sqlite_store: Store) -> None:
    url = str(sqlite_store.engine.url)
    process = subprocess.Popen(
        [sys.executable, "-c", WRITE, url], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )
    assert process.stdout is not None
    done = [int(process.stdout.readline()) for _ in range(20)]
    process.kill()
    done += [int(line) for line in process.stdout.read().splitlines()]
    process.wait()
    process.stdout.close()

    assert set(done) <= set(stored(sqlite_store)) <= {*done, done[-1] + 1}
    with sqlite_store.reading() as session:
        assert session.connection().execute(text("PRAGMA integrity_check")).scalar() == "ok"
