"""`triage serve` with real clients: whose connections stay open."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.served import CRASH, serving, starter_settings

CLIENTS, DIAGNOSES = 6, 12


def ask_at_once(port: int) -> list[httpx.Response]:
    """The answers to clients that ask again and again, each over a connection that it keeps open if it may."""
    together = threading.Barrier(CLIENTS)

    def ask_on(_client: int) -> list[httpx.Response]:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
            together.wait(60)
            return [client.post("/api/v1/diagnose", json={"log": CRASH}) for _ in range(DIAGNOSES)]

    with ThreadPoolExecutor(CLIENTS) as clients:
        return [answer for answers in clients.map(ask_on, range(CLIENTS)) for answer in answers]


@pytest.mark.long
@pytest.mark.parametrize(("workers", "spreads"), [(1, False), (2, True)])
def test_only_one_of_several_workers_sends_clients_to_its_siblings_and_each_is_answered(
    tmp_path: Path, workers: int, spreads: bool
) -> None:
    with serving(starter_settings(tmp_path).database_url, "--workers", str(workers)) as (_process, port):
        answers = ask_at_once(port)

    assert {answer.status_code for answer in answers} == {200}
    assert any(answer.headers.get("connection") == "close" for answer in answers) is spreads
