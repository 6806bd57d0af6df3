"""One background sync however many servers; a sync by hand waits a little, then goes on beside it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from app.config import Settings, isolate_children
from app.errors import GitHubError, StoreError, UnreachableError
from app.knowledge.freshness import overview
from app.server import rounds
from app.server.background import background_sync, round_apart
from app.server.rounds import outcome_line, sync_round, turn_to_sync
from app.store.engine.sync_lock import sync_lock
from app.store.session import Store
from ingest.sync.run import SyncResult
from tests.command import environment_of
from tests.loopback import free_port, wait_until
from tests.served import answers, starter_settings

REPOS = ("acme/engine", "acme/second")


@pytest.fixture
def settings() -> Settings:
    return Settings(repo=REPOS, _env_file=None)  # type: ignore[call-arg]


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The repositories that were synced, in order."""
    done: list[str] = []
    monkeypatch.setattr(rounds, "sync_quietly", lambda _settings, _store, repo: done.append(repo))
    return done


def test_a_round_syncs_every_repository(store: Store, settings: Settings, synced: list[str]) -> None:
    sync_round(settings, store)

    assert synced == list(REPOS)


def test_a_round_is_left_to_a_sync_that_runs(
    store: Store, settings: Settings, synced: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with sync_lock(store.engine):
        sync_round(settings, store)

    assert synced == []
    assert "left to the sync that is running (process" in capsys.readouterr().err


def test_servers_at_one_base_never_sync_at_once(
    store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, most, guard = 0, 0, threading.Lock()
    busy = threading.Event()

    def work(*_: Any) -> None:
        nonlocal running, most
        with guard:
            running += 1
            most = max(most, running)
        busy.wait(0.2)
        with guard:
            running -= 1

    monkeypatch.setattr(rounds, "sync_quietly", work)
    stop = threading.Event()
    servers = [
        threading.Thread(
            target=background_sync(lambda _stop: sync_round(settings, store), 0.05), args=(stop,)
        )
        for _ in range(4)
    ]
    for server in servers:
        server.start()
    threading.Event().wait(1.5)
    stop.set()
    for server in servers:
        server.join(20)

    assert most == 1


@pytest.mark.parametrize("failure", [StoreError("the database refused"), KeyError("a fault of ours")])
def test_a_failed_round_is_told_by_its_exit_code(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    def work(*_: Any) -> None:
        raise failure

    monkeypatch.setenv("TRIAGE_DATABASE_URL", str(sqlite_store.engine.url))
    monkeypatch.setattr(rounds, "_interrupt_at_end_of_input", lambda: None)
    monkeypatch.setattr(rounds, "set_up_logging", lambda *_: None)
    monkeypatch.setattr("os.nice", lambda _: 0)
    with pytest.raises(SystemExit) as ended:
        rounds.run_round(work, "the sync")

    assert ended.value.code == 1


def test_rounds_go_on_until_the_stop() -> None:
    rounds = 0

    def work(stop: threading.Event) -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 2:
            stop.set()

    background_sync(work, 0.01)(threading.Event())

    assert rounds == 2


def test_a_refusal_of_github_is_one_line(
    sqlite_store: Store,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise GitHubError("GitHub refused")

    monkeypatch.setattr(rounds, "sync", refuse)
    rounds.sync_quietly(settings, sqlite_store, REPOS[0])

    assert capsys.readouterr().err.splitlines()[1:] == ["sync of acme/engine failed: GitHub refused"]


@pytest.mark.parametrize("serving", [False, True])
def test_an_unreachable_github_is_said_once(store: Store, serving: bool) -> None:
    error = UnreachableError("GitHub could not be reached at https://api.github.test: no connection")
    line = outcome_line(SyncResult(repo=REPOS[0], error=error), store, serving=serving)

    assert line.count("could not be reached") == 1
    assert serving or line == f"{error}; 0 issues were stored before"


def test_a_sync_by_hand_says_that_another_runs_and_goes_on(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    went_on = False
    with sync_lock(store.engine), turn_to_sync(store, wait_s=0.6):
        went_on = True

    assert went_on
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("another sync is running (process ")
    assert "beside it" in second


def test_a_sync_by_hand_alone_says_nothing(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    with turn_to_sync(store), sync_lock(store.engine) as other:
        assert not other

    assert capsys.readouterr().err == ""


def test_a_sync_process_that_dies_is_told_by_every_page(
    sqlite_store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    dying = tmp_path / "python"
    dying.write_text("#!/bin/sh\nexit 3\n")
    dying.chmod(0o755)
    monkeypatch.setattr("app.server.background.sys.executable", str(dying))
    url = str(sqlite_store.engine.url)

    round_apart(settings.model_copy(update={"database_url": url}), threading.Event())

    found = overview(sqlite_store, REPOS[0]).last_run
    assert found is not None
    assert (found.outcome, found.was_cut_short) == ("failed", True)


@pytest.fixture
def hostile_folder(tmp_path: Path) -> Path:
    """A folder with modules of other people, which leave a file named `ran`."""
    folder = tmp_path / "work"
    for path in ("app/__init__.py", "app/server/__init__.py", "random.py", "tempfile.py", "selectors.py"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(f"open({str(folder / 'ran')!r}, 'w')\nraise SystemExit(9)\n")
    return folder


@pytest.mark.long
def test_the_sync_runs_nothing_of_the_working_folder(
    hostile_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    settings = starter_settings(tmp_path)
    monkeypatch.chdir(hostile_folder)
    environment = environment_of(TRIAGE_DATABASE_URL=f"sqlite:///{tmp_path}/none.db")
    with patch.dict(os.environ, environment, clear=True):
        isolate_children()

        round_apart(settings, threading.Event())

    assert not (hostile_folder / "ran").exists()
    assert "the database's schema is older" in capfd.readouterr().err


@pytest.mark.long
def test_neither_do_the_workers(hostile_folder: Path, tmp_path: Path) -> None:
    base, port = starter_settings(tmp_path).database_url, free_port()
    script, errors = tmp_path / "bin" / "triage", tmp_path / "errors"
    script.parent.mkdir()
    script.write_text("from app.cli import main\nif __name__ == '__main__':\n    main()\n")
    with errors.open("wb") as written:
        process = subprocess.Popen(
            [sys.executable, script, "serve", "--workers", "2", "--sync-every", "1s", "--port", str(port)],
            cwd=hostile_folder,
            env=environment_of(TRIAGE_DATABASE_URL=base),
            stdout=subprocess.DEVNULL,
            stderr=written,
        )
    try:
        wait_until(lambda: "GitHub could not be reached" in errors.read_text(), "no sync began", 60)
        wait_until(lambda: answers(port), "no worker answers", 60)
    finally:
        process.terminate()
        process.wait(60)

    assert not (hostile_folder / "ran").exists()
