"""`triage read`, the process beside a server, `triage status` and `/metrics`, against a server on the loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text

from app.config import Settings
from app.knowledge.indexing.batches import derive_changed
from app.main import create_app
from app.store.derived.readings import find_facts
from app.store.engine.sync_lock import READING, sync_lock
from app.store.github.issues import add_repository, save_issues
from app.store.schema import migrate
from app.store.session import Store, open_store
from tests.command import environment_of, triage
from tests.loopback import free_port, wait_until
from tests.model_reader.replies import NOTHING, a_remedy
from tests.model_reader.server import Served, reader_server
from tests.samples import REPO, an_issue

HELPS = "Setting --enforce-eager made it well for all of us"


def a_base(folder: Path, issues: int) -> str:
    """The address of a base with so many issues, read by the rules alone."""
    url = f"sqlite:///{folder}/triage.db"
    with closing(open_store(url)) as store:
        migrate(store)
        with store.unit_of_work() as session:
            rows = [
                an_issue(n, title=f"Server {n} stops", body=f"It stops.\n\n{HELPS}, {n}.")
                for n in _upto(issues)
            ]
            save_issues(session, add_repository(session, REPO), rows)
        derive_changed(store, REPO, _upto(issues))
    return url


def _upto(issues: int) -> range:
    return range(1, issues + 1)


def the_remedy(content: str) -> object:
    kind = {"value": "exception", "line": 2, "quote": "It stops"}
    return {**NOTHING, "kind": kind, "remedies": [a_remedy(content, "--enforce-eager", "made it well")]}


def settings_of(url: str, served: Served, parallel: int = 4) -> dict[str, str]:
    return {
        "TRIAGE_DATABASE_URL": url,
        "TRIAGE_READER_URL": served.url,
        "TRIAGE_REPO": REPO,
        "TRIAGE_READER_PARALLEL": str(parallel),
    }


def kept(store: Store) -> set[int]:
    with store.reading() as session:
        return set(session.connection().execute(text("SELECT number FROM model_reply")).scalars())


def by_model(store: Store) -> set[int]:
    """Issues of whose facts some come from the model."""
    with store.reading() as session:
        facts = find_facts(session, 1, list(range(1, 1_000)))
    return {n for n, one in facts.items() if any(e.rule.startswith("model.") for e in one.evidence)}


def test_the_command_says_what_it_would_ask_asks_once_and_says_what_came_of_it(tmp_path: Path) -> None:
    url = a_base(tmp_path, 6)
    with reader_server(the_remedy) as served:
        settings = settings_of(url, served)
        plan = triage("read", "--dry-run", folder=tmp_path, **settings)
        assert plan.stdout.startswith(f"{REPO}: 6 issues, about".encode())
        assert served.asked == []
        some = triage("read", "2", "5", folder=tmp_path, **settings)
        assert b"reader read 2 issues (2 complete)" in some.stderr
        assert triage("read", "--limit", "3", folder=tmp_path, **settings).returncode == 0
        assert triage("read", folder=tmp_path, **settings).returncode == 0
        again = triage("read", folder=tmp_path, **settings)
        assert b"reader has nothing to read here" in again.stderr
        assert Counter(served.contents).most_common(1)[0][1] == 1
        assert len(served.asked) == 6
        status = json.loads(triage("status", folder=tmp_path, **settings).stdout)["reader"]
    found = status["repositories"][REPO]
    assert (found["model"], found["outcomes"], found["waiting"]) == ("reader", {"complete": 6}, 0)
    assert status["tokens_today"] == 6 * 2_100
    with closing(open_store(url)) as store:
        assert by_model(store) == set(_upto(6))


def test_a_server_that_is_away_or_not_named_is_an_error_in_a_line(tmp_path: Path) -> None:
    url = a_base(tmp_path, 1)
    unnamed = triage("read", folder=tmp_path, TRIAGE_DATABASE_URL=url)
    assert (unnamed.returncode, b"TRIAGE_READER_URL is not set" in unnamed.stderr) == (2, True)
    away = Served(url=f"http://127.0.0.1:{free_port()}")
    answer = triage("read", folder=tmp_path, **settings_of(url, away))
    assert answer.returncode == 1
    assert b"the model reader's server does not answer: ConnectError" in answer.stderr


def test_while_another_process_reads_only_named_issues_are_asked_about(tmp_path: Path) -> None:
    url = a_base(tmp_path, 2)
    with reader_server(the_remedy) as served, closing(open_store(url)) as store:
        with sync_lock(store.engine, READING):
            assert triage("read", folder=tmp_path, **settings_of(url, served)).returncode == 1
            assert triage("read", "2", folder=tmp_path, **settings_of(url, served)).returncode == 0
        assert kept(store) == {2}


def test_metrics_count_replies_and_what_waits(tmp_path: Path) -> None:
    url = a_base(tmp_path, 3)
    with reader_server(the_remedy) as served:
        triage("read", "--limit", "2", folder=tmp_path, **settings_of(url, served))
        settings = Settings(database_url=url, repo=(REPO,), reader_url=served.url, _env_file=None)  # type: ignore[call-arg]
        with TestClient(create_app(settings)) as client:
            page = client.get("/metrics").text
    assert f'triage_reader_replies{{outcome="complete",repo="{REPO}"}} 2.0' in page
    assert f'triage_reader_waiting{{repo="{REPO}"}} 1.0' in page
    assert "triage_reader_tokens_today 4200.0" in page


@pytest.mark.long
def test_the_process_beside_a_server_reads_and_ends_with_its_input(tmp_path: Path) -> None:
    url = a_base(tmp_path, 40)
    with reader_server(the_remedy, answer_s=0.02) as served, closing(open_store(url)) as store:
        with _started("app.server.rounds", url, served, "reading") as process:
            wait_until(lambda: len(kept(store)) >= 8, "nothing is read")
            served.answer_s = 0.5
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(20) == 0
        first = kept(store)
        assert 8 <= len(first) < 40
        served.answer_s = 0.0
        with _started("app.server.rounds", url, served, "reading") as process:
            assert process.wait(60) == 0
        assert kept(store) == by_model(store) == set(_upto(40))


@pytest.mark.long
@pytest.mark.parametrize("killed_at", [1, 60, 110])
def test_killed_in_the_middle_the_next_run_asks_nothing_again_that_was_kept(
    tmp_path: Path, killed_at: int
) -> None:
    issues, parallel = 120, 8
    url = a_base(tmp_path, issues)
    with reader_server(the_remedy, answer_s=0.05) as served, closing(open_store(url)) as store:
        with _started("app.cli", url, served, "read", parallel=parallel) as process:
            wait_until(lambda: len(kept(store)) >= killed_at, "nothing is read", 60)
            os.killpg(process.pid, signal.SIGKILL)
        before, sent = kept(store), len(served.asked)
        assert killed_at <= len(before) < issues
        with _started("app.cli", url, served, "read", parallel=parallel) as process:
            assert process.wait(120) == 0
        assert kept(store) == by_model(store) == set(_upto(issues))
    later = served.contents[sent:]
    assert not [n for n in before if any(f"| Server {n} stops\n" in content for content in later)]
    twice = [content for content, times in Counter(served.contents).items() if times > 1]
    # Those whose answers were under way when it died, and no others.
    assert len(twice) == len(served.asked) - issues <= 2 * parallel


@contextmanager
def _started(
    module: str, url: str, served: Served, *arguments: str, parallel: int = 4
) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        env=environment_of(**settings_of(url, served, parallel)),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        yield process
