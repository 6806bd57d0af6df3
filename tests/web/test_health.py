"""Those who watch the service can tell alive from ready."""

from __future__ import annotations

from pathlib import Path
from threading import Event

from fastapi.testclient import TestClient
from sqlalchemy import text

from app.config import Settings
from app.main import create_app
from app.store.schema import migrate
from app.store.session import Store


def test_alive_needs_no_database(tmp_path: Path) -> None:
    settings = Settings(database_url=f"sqlite:///{tmp_path}/empty.db", _env_file=None)  # type: ignore[call-arg]
    with TestClient(create_app(settings)) as client:
        assert client.get("/healthz").json()["status"] == "alive"
        answer = client.get("/readyz")

    assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json")
    assert "triage migrate" in answer.json()["detail"]


def test_ready_with_the_current_schema_tells_the_freshness(client: TestClient, store: Store) -> None:
    assert client.get("/readyz").json() == {"status": "ready", "as_of": None, "age_s": None}

    with store.unit_of_work() as session:
        session.connection().execute(text("INSERT INTO repository (id, full_name) VALUES (1, 'a/b')"))
        session.connection().execute(
            text(
                "INSERT INTO sync_run (repo_id, started_at, ended_at, outcome, requests, not_modified, stored) "
                "VALUES (1, '2026-06-03 05:00:00', '2026-06-03 06:00:00', 'complete', 1, 0, 1)"
            )
        )
    answer = client.get("/readyz").json()

    assert answer["as_of"] == "2026-06-03T06:00:00Z"
    assert answer["age_s"] > 0


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
