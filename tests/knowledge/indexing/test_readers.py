"""Reading in other processes: the same rows as in one, whatever becomes of these processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from app.knowledge.indexing import batches, readers
from app.knowledge.indexing.batches import rederive_all
from app.knowledge.indexing.derive import Source, read_stored
from app.knowledge.indexing.diff import diff_all
from app.knowledge.indexing.readers import reading_apart
from app.store.github.issues import add_repository, save_comments, save_issues
from app.store.records import quiet
from app.store.schema import migrate
from app.store.session import Store, open_store
from tests.knowledge.conftest import Keep
from tests.samples import LATE, REPO, a_comment, a_pull, an_issue, fenced, marlin_log, rope_log

TABLES = (
    "fact",
    "link",
    "occurrence",
    "posting",
    "profile",
    "pair_view",
    "term",
    "cluster",
    "cluster_member",
)
LOGS = (marlin_log(), rope_log())
COUNT = 24


@pytest.fixture
def base(tmp_path: Path) -> Store:
    """Issues that were never read, some of them alike."""
    store = open_store(f"sqlite:///{tmp_path}/unread.db")
    migrate(store)
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        bodies = (fenced(f"Since 0.9.{n}, on {n} H100.", LOGS[n % 2]) for n in range(1, COUNT))
        issues = [an_issue(n, body=body) for n, body in enumerate(bodies, 1)]
        save_issues(session, repo_id, [*issues, a_pull(COUNT, body="Fixes #3")])
        save_comments(session, repo_id, [a_comment(5, 2, "`--enforce-eager` works for me.")])
    return store


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """However an issue is read, its batch is the same: which of many equally similar ones it keeps depends on it."""
    monkeypatch.setattr(batches, "BATCH", 5)


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Has so many processes read from now on, however few issues there are."""

    def processes(count: int) -> None:
        monkeypatch.setattr(readers, "READ_APART_FROM", 1)
        monkeypatch.setattr(readers, "PART", 3)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(count)), raising=False)

    return processes


def forget(store: Store) -> None:
    with store.unit_of_work() as session:
        for table in TABLES:
            session.connection().execute(text(f"DELETE FROM {table}"))


def rows(store: Store) -> dict[str, list[str]]:
    with store.reading() as session:
        return {
            table: sorted(map(repr, session.connection().execute(text(f"SELECT * FROM {table}"))))
            for table in TABLES
        }


@pytest.mark.long
def test_other_processes_read_what_one_does(base: Store, apart: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rederive_all(base, REPO, quiet)
    expected = rows(base)
    forget(base)
    apart(2)
    with monkeypatch.context() as patch:
        patch.setattr(readers, "read_sources", None)
        assert rederive_all(base, REPO, quiet).read == COUNT
        assert diff_all(base, REPO, quiet).differing == 0

    assert rows(base) == expected
    assert all(expected.values())
    assert active_children() == []


@pytest.mark.long
def test_what_a_process_that_died_was_to_read_is_read_here(
    base: Store, apart: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rederive_all(base, REPO, quiet)
    expected = rows(base)
    forget(base)

    submit = readers.Readers._submit

    def submit_after_a_death(found: readers.Readers, part: Any) -> Any:
        for child in active_children():
            child.kill()
            child.join()
            time.sleep(0.2)  # until the pool has noticed it
        return submit(found, part)

    apart(2)
    monkeypatch.setattr(readers.Readers, "_submit", submit_after_a_death)
    with capture_logs() as logs:
        assert rederive_all(base, REPO, quiet).read == COUNT
    assert rows(base) == expected
    assert len([line for line in logs if "died" in line["event"]]) == 1


def test_none_can_be_started_and_all_is_read_here(
    base: Store, apart: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise BlockingIOError("no more processes")

    apart(2)
    monkeypatch.setattr("multiprocessing.process.BaseProcess.start", refuse)
    assert rederive_all(base, REPO, quiet).read == COUNT


def test_a_text_stored_after_it_was_read_ahead_is_not_read_while_writers_wait(
    store: Store, keep: Keep
) -> None:
    repo_id = keep(an_issue(1), an_issue(2))
    with reading_apart(2) as found, store.unit_of_work() as session:
        found.begin(session, repo_id, REPO, [1, 2])
        save_issues(session, repo_id, [an_issue(1, body=fenced("See.", rope_log()), updated_at=LATE)])
        read = read_stored(session, repo_id, REPO, [1, 2], found.read)
        assert [item.reading.number for item in read] == [2]
        assert found.outdated == [1]


@pytest.mark.long
def test_a_rule_that_throws_there_is_noted_here(
    store: Store, keep: Keep, apart: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo_id = keep(an_issue(1))
    unreadable = [Source(REPO, an_issue(1, title="a lone surrogate: \ud800"))]
    monkeypatch.setattr(readers, "find_sources", lambda *_: unreadable)
    monkeypatch.setattr("app.knowledge.indexing.derive.find_sources", lambda *_: unreadable)
    apart(2)
    with reading_apart(1) as found, store.reading() as session, capture_logs() as logs:
        found.begin(session, repo_id, REPO, [1])
        reading = read_stored(session, repo_id, REPO, [1], found.read)[0].reading
    assert (reading.facts, reading.fault) == (None, "UnicodeEncodeError")
    assert [line["fault"] for line in logs] == ["UnicodeEncodeError"]


SCRIPT = """
import os, sys, time
from app.knowledge.indexing import batches, readers
from app.store.session import open_store

os.sched_getaffinity = lambda _: {0, 1}
readers.READ_APART_FROM, readers.PART, batches.BATCH = 1, 1, 1

def report(progress):
    print(progress.done, flush=True)
    time.sleep(0.1)

batches.rederive_all(open_store(sys.argv[1]), sys.argv[2], report)
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "tracebacks"), [(signal.SIGINT, 1), (signal.SIGTERM, 0), (signal.SIGKILL, 0)]
)
def test_nothing_stays_behind(base: Store, number: int, tracebacks: int) -> None:
    command = [sys.executable, "-c", SCRIPT, base.engine.url.render_as_string(), REPO]
    to_here = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(
        command, start_new_session=True, cwd=Path(__file__).parents[3], **to_here
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        # Ctrl-C reaches the whole group.
        os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == -number
    assert errors.count("Traceback") == tracebacks
    for _ in range(100):
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail("a process that reads outlived the one that writes")
