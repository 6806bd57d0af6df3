"""A fault of the database is a 503 that says when to come back, without the engine's words; then all is well."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event, text

from app.config import Settings
from app.main import create_app
from app.store.engine import connect as dialect
from app.store.github.issues import add_repository, save_issues
from app.store.schema import migrate
from app.store.session import Store, open_store
from tests.postgresql import PostgreSQL
from tests.samples import an_issue
from tests.web.conftest import REPO, TestClient

TOKEN = "a-token-of-the-operator"
ENGINE_WORDS = (
    "sqlite",
    "postgres",
    "psycopg",
    "malformed",
    "disk",
    "locked",
    "triage.db",
    "schema",
    "socket",
    "select",
)
READS = ("/api/v1/issues/1", "/api/v1/issues/1/related", "/issues/1")
VERDICT = {"a": 1, "b": 2, "verdict": "same"}


@contextmanager
def serving(url: str) -> Iterator[TestClient]:
    """A server on the base at this address, which nothing stands before."""
    settings = Settings(database_url=url, repo=(REPO,), admin_token=TOKEN, _env_file=None)  # type: ignore[call-arg]
    with TestClient(create_app(settings), raise_server_exceptions=False, follow_redirects=False) as opened:
        yield opened


@pytest.fixture
def url(store: Store) -> str:
    """The address of a base with two issues."""
    with store.unit_of_work() as session:
        save_issues(session, add_repository(session, REPO), [an_issue(1), an_issue(2)])
    found = store.engine.url.render_as_string(hide_password=False)
    store.close()
    return found


def judge(client: TestClient) -> int:
    answer = client.post("/api/v1/judgements", json=VERDICT, headers={"authorization": f"Bearer {TOKEN}"})
    if answer.status_code == 503:
        assert_told(answer)
    return int(answer.status_code)


def assert_told(answer: object) -> None:
    headers, body = answer.headers, answer.text  # type: ignore[attr-defined]
    assert int(headers["retry-after"]) > 0
    assert headers["content-type"].startswith(("application/problem+json", "text/html"))
    detail = answer.json()["detail"] if "json" in headers["content-type"] else body[body.index("<h1") :]  # type: ignore[attr-defined]
    assert not any(word in detail.lower() for word in ENGINE_WORDS), detail


def read_all(client: TestClient) -> set[int]:
    answers = [client.get(path) for path in READS]
    for answer in answers:
        if answer.status_code == 503:
            assert_told(answer)
    return {answer.status_code for answer in answers}


def judgements(url: str) -> int:
    opened = open_store(url)
    with opened.reading() as session:
        found = session.connection().execute(text("SELECT count(*) FROM judgement")).scalar_one()
    opened.close()
    return int(found)


# ---- faults of writing: what is stored is still answered


@contextmanager
def locked(url: str, _client: TestClient) -> Iterator[None]:
    holder = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        holder.close()


@contextmanager
def full(_url: str, client: TestClient) -> Iterator[None]:
    """No page can be added to the base, nor one taken from those that are free."""
    engine = client.app.state.services.store.engine  # type: ignore[attr-defined]
    pages = {"limit": 1}

    def limit(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute(f"PRAGMA max_page_count={pages['limit']}")

    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE ballast (filling BLOB)")
        connection.exec_driver_sql(
            "CREATE TRIGGER heavy AFTER INSERT ON judgement BEGIN INSERT INTO ballast VALUES (zeroblob(900000)); END"
        )
    event.listen(engine, "connect", limit)
    engine.dispose()
    try:
        yield
    finally:
        pages["limit"] = 1 << 30
        engine.dispose()


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialect, "BUSY_TIMEOUT_MS", 20)


Fault = Callable[[str, TestClient], AbstractContextManager[None]]


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("fault", [locked, full])
@pytest.mark.parametrize("engine", ["sqlite"])
def test_what_cannot_be_written_is_refused_and_reading_goes_on(url: str, fault: Fault) -> None:
    with serving(url) as client:
        with fault(url, client):
            assert judge(client) == 503
            assert read_all(client) == {200}
        assert judge(client) == 201
    assert judgements(url) == 1


@pytest.mark.parametrize("engine", ["sqlite"])
def test_a_read_only_base_is_served_and_takes_nothing(url: str) -> None:
    with serving(f"sqlite:///file:{url.removeprefix('sqlite:///')}?mode=ro&uri=true") as client:
        assert read_all(client) == {200}
        assert judge(client) == 503
        assert client.get("/readyz").status_code == 200
    assert judgements(url) == 0


# ---- faults of reading


@pytest.mark.parametrize("engine", ["sqlite"])
def test_a_damaged_base_answers_503_on_every_route_that_reads_it(url: str) -> None:
    path = Path(url.removeprefix("sqlite:///"))
    with serving(url) as client:
        assert read_all(client) == {200}
        client.app.state.services.store.engine.dispose()  # type: ignore[attr-defined]  # what it had read is gone
        with path.open("r+b") as file:
            file.seek(4096)
            file.write(b"\xee" * (path.stat().st_size - 4096))
        assert read_all(client) == {503}
        assert (client.get("/readyz").status_code, client.get("/healthz").status_code) == (503, 200)


def test_a_base_of_another_schema_is_not_ready_and_says_what_to_run(url: str) -> None:
    def claim(revision: str) -> str:
        opened = open_store(url)
        with opened.unit_of_work() as session:
            connection = session.connection()
            before: str = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
            connection.execute(
                text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision}
            )
        opened.close()
        return before

    newest = claim("20261121_first_tables")
    try:
        with serving(url) as client:
            answer = client.get("/readyz")
            assert (answer.status_code, "triage migrate" in answer.json()["detail"]) == (503, True)
            claim(newest)
            assert client.get("/readyz").status_code == 200
    finally:
        claim(newest)


def test_a_server_goes_on_by_itself_after_a_restart_of_the_database(own_postgresql: PostgreSQL) -> None:
    store = open_store(own_postgresql.new_database())
    migrate(store)
    with store.unit_of_work() as session:
        save_issues(session, add_repository(session, REPO), [an_issue(1), an_issue(2)])
    url = str(store.engine.url)
    store.close()
    with serving(url) as client:
        assert read_all(client) == {200}
        own_postgresql.stop()
        assert (read_all(client), judge(client)) == ({503}, 503)
        assert (client.get("/readyz").status_code, client.get("/healthz").status_code) == (503, 200)
        own_postgresql.start()
        assert (read_all(client), judge(client)) == ({200}, 201)
    assert judgements(url) == 1
