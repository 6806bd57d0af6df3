"""Those who watch the service can tell alive from ready."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event

import time_machine
from fastapi.testclient import TestClient
from sqlalchemy import text

from app.config import Settings
from app.main import create_app
from app.store.issues import add_repository
from app.store.schema import migrate
from app.store.session import Store
from app.store.sync_lock import sync_lock
from app.store.sync_state import begin_run, end_run, save_cursor
from tests.web.conftest import REPO


def test_alive_needs_no_database(tmp_path: Path) -> None:
    settings = Settings(database_url=f"sqlite:///{tmp_path}/empty.db", _env_file=None)  # type: ignore[call-arg]
    with TestClient(create_app(settings)) as client:
        assert client.get("/healthz").json()["status"] == "alive"
        answer = client.get("/readyz")

    assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json")
    assert "triage migrate" in answer.json()["detail"]


def test_ready_with_the_current_schema_tells_the_freshness(client: TestClient, store: Store) -> None:
    empty = client.get("/readyz").json()
    assert (empty["status"], empty["as_of"], empty["age_s"], empty["is_syncing"]) == ("ready", None, None, False)

    ended = datetime(2026, 6, 3, 6, tzinfo=UTC)
    with store.unit_of_work() as session, time_machine.travel(ended, tick=False):
        repo_id = add_repository(session, REPO)
        save_cursor(session, repo_id, "issues", {"since": "2026-06-03T05:59:00Z"})
        end_run(session, begin_run(session, repo_id), outcome="complete")
    with store.unit_of_work() as session, time_machine.travel(ended + timedelta(hours=1), tick=False):
        end_run(session, begin_run(session, repo_id), outcome="failed", fault="GitHub could not be reached")
    with sync_lock(store), time_machine.travel(ended + timedelta(hours=2), tick=False):
        answer = client.get("/readyz").json()

    assert (answer["as_of"], answer["age_s"], answer["is_stale"]) == ("2026-06-03T06:00:00Z", 7200, False)
    assert answer["is_syncing"] is True
    (told,) = answer["repositories"]
    assert (told["repo"], told["last_run"]["outcome"]) == (REPO, "failed")
    assert told["cursors"]["issues"]["position"] == {"since": "2026-06-03T05:59:00Z"}
    assert "could not be reached" not in json.dumps(answer)


def test_not_ready_with_a_schema_of_a_newer_program(client: TestClient, store: Store) -> None:
    migrate(store)
    with store.unit_of_work() as session:
        session.connection().execute(text("UPDATE alembic_version SET version_num = 'ffff00000000'"))

    assert client.get("/readyz").status_code == 503


def test_the_background_runs_beside_the_server_and_is_told_to_stop(settings: Settings, store: Store) -> None:
    began, ended = Event(), Event()

    def background(stop: Event) -> None:
        began.set()
        stop.wait(30)
        ended.set()

    with TestClient(create_app(settings, store, background=background)):
        assert began.wait(5)
        assert not ended.is_set()

    assert ended.is_set()
