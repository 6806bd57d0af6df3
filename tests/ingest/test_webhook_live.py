"""A real server takes the deliveries of a real (simulated) GitHub, and the next sync heals what was missed."""

from __future__ import annotations

import http.client
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn
from pydantic import SecretStr

from app.config import Settings
from app.main import create_app
from app.store.github.issues import find_issue, find_repository
from app.store.schema import migrate
from app.store.session import Store, open_store
from app.web.routes.webhooks import BODY_LIMIT_BYTES
from ingest.github.client import GitHubClient
from ingest.sync.sync import sync
from tests.ingest.conftest import REPO, TOKEN, Simulator, make_simulator_data

SECRET = "the secret of this test"


@pytest.fixture(scope="module")
def simulator_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Few issues, as here all are really read."""
    return make_simulator_data(tmp_path_factory.mktemp("few"), 60)


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path}/triage.db")
    migrate(opened)
    yield opened
    opened.close()


@pytest.fixture
def server(base: Store) -> Iterator[str]:
    """The address of a front desk that takes deliveries."""
    settings = Settings(repo=(REPO,), webhook_secret=SecretStr(SECRET), _env_file=None)  # type: ignore[call-arg]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    running = uvicorn.Server(uvicorn.Config(create_app(settings, base), port=port, log_level="warning"))
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    for _ in range(200):
        if running.started:
            break
        time.sleep(0.05)
    yield f"http://127.0.0.1:{port}"
    running.should_exit = True
    thread.join(20)


def delivered(simulator: Simulator, count: int) -> list[dict[str, Any]]:
    for _ in range(400):
        found: list[dict[str, Any]] = simulator.get("/_sim/deliveries")
        if len(found) >= count and all(entry["status"] != "pending" for entry in found):
            return found
        time.sleep(0.05)
    raise AssertionError(f"not delivered: {found}")


def stored(base: Store, number: int) -> Any:
    with base.reading() as session:
        return find_issue(session, find_repository(session, REPO) or 0, number)


def compare(base: Store, simulator: Simulator) -> None:
    """Every item that the tracker has is stored with its state, title and labels."""
    with base.reading() as session:
        repo_id = find_repository(session, REPO) or 0
        for answer in simulator.get("/_sim/truth")["issues"]:
            found = find_issue(session, repo_id, answer["number"])
            assert found is not None, answer["number"]
            assert (found.state, found.title, sorted(found.labels)) == (
                answer["state"],
                answer["title"],
                sorted(answer["labels"]),
            )


def pull(base: Store, simulator: Simulator) -> Any:
    with GitHubClient(simulator.url, TOKEN) as client:
        return sync(base, client, REPO)


@pytest.mark.long
def test_the_simulator_delivers_and_what_it_drops_the_next_sync_brings(
    base: Store, server: str, simulate: Callable[..., Simulator]
) -> None:
    simulator = simulate("--cursor")
    assert pull(base, simulator).complete
    simulator.post("/_sim/webhook", {"url": f"{server}/webhooks/github", "secret": SECRET, "drop_every": 4})
    numbers = [item["number"] for item in simulator.get("/_sim/truth")["issues"]][:12]
    for number in numbers:
        simulator.post(
            "/_sim/upsert", {"issue": {"number": number, "title": f"Changed {number}", "state": "closed"}}
        )
    simulator.post("/_sim/upsert", {"issue": {"title": "A new one", "body": "It fails."}})
    found = delivered(simulator, 13)

    taken = [entry for entry in found if entry["status"] != "dropped"]
    assert {entry["status"] for entry in taken} == {202}
    assert len(taken) < len(found)
    titles = [stored(base, number).title for number in numbers]
    assert sum(title.startswith("Changed") for title in titles) >= 8
    assert not all(title.startswith("Changed") for title in titles)

    again = simulator.post("/_sim/redeliver", {"id": taken[0]["id"]})
    assert again["guid"] == taken[0]["guid"]
    assert delivered(simulator, 13)[taken[0]["id"] - 1]["status"] == 202

    assert pull(base, simulator).complete
    assert all(stored(base, number).title == f"Changed {number}" for number in numbers)
    compare(base, simulator)


def test_a_deleted_issue_is_marked_by_its_delivery(
    base: Store, server: str, simulate: Callable[..., Simulator]
) -> None:
    simulator = simulate("--cursor")
    assert pull(base, simulator).complete
    simulator.post("/_sim/webhook", {"url": f"{server}/webhooks/github", "secret": SECRET})
    issue = next(
        item["number"]
        for item in simulator.get("/_sim/truth")["issues"]
        if not stored(base, item["number"]).is_pull_request
    )
    simulator.post("/_sim/delete", {"issue": issue})
    delivered(simulator, 1)

    assert stored(base, issue).gone_reason == "deleted"


def test_a_wrong_secret_stores_nothing(base: Store, server: str, simulate: Callable[..., Simulator]) -> None:
    simulator = simulate("--cursor")
    simulator.post("/_sim/webhook", {"url": f"{server}/webhooks/github", "secret": "another"})
    simulator.post("/_sim/upsert", {"issue": {"number": 999_999, "title": "Forged", "body": ""}})

    assert [entry["status"] for entry in delivered(simulator, 1)] == [401]
    assert stored(base, 999_999) is None


def test_a_body_without_a_length_is_refused_at_the_limit(server: str) -> None:
    """Chunked, and far longer than the limit: the answer is there before all of it is sent."""
    where = urlsplit(server)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=30)
    connection.putrequest("POST", "/webhooks/github")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.putheader("X-Hub-Signature-256", "sha256=" + "0" * 64)
    connection.endheaders()
    sent, chunk = 0, b" " * (1 << 20)
    while sent < 3 * BODY_LIMIT_BYTES and not select.select([connection.sock], [], [], 0)[0]:
        connection.send(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        sent += len(chunk)
    status = connection.sock.recv(100).split()[1]
    connection.close()

    assert (status, sent < 2 * BODY_LIMIT_BYTES) == (b"413", True)
