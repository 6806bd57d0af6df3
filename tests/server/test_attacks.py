"""Attacks on two workers, as everybody else notices them."""

from __future__ import annotations

import hmac
import json
import random
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from ingest.one_issue import KEPT_FOR_SYNC
from tests.hourly_github import hourly_github
from tests.served import CRASH, CRASH_NUMBER, starter_settings
from tests.server.attack import OTHERS, Target, attacked, client_from

FOR_S = 60.0
MIB = 1 << 20
ATTACKER = "127.0.0.66"
HOSTS = tuple(f"127.0.0.{number}" for number in range(61, 66))
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
DEEP = b"[]," * (9 * MIB) + b"[]"
SECRET = "the secret of this test"
WEBHOOKS = {"TRIAGE_WEBHOOK_SECRET": SECRET}
SILENT = 1000
LAST_REPLY_S = 45.0


def until(for_s: float) -> Iterator[None]:
    end = time.monotonic() + for_s
    while time.monotonic() < end:
        yield


def at_once(count: int, run: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=run, args=(each,), daemon=True) for each in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(FOR_S + 50)


def opened(target: Target, host: str = ATTACKER) -> socket.socket:
    return socket.create_connection(("127.0.0.1", target.port), timeout=5, source_address=(host, 0))


def again_and_again(target: Target, for_s: float, ask: Callable[[httpx.Client], object]) -> None:
    for _ in until(for_s):
        with suppress(httpx.HTTPError), client_from(ATTACKER, target.port) as client:
            ask(client)


def silent_connections(target: Target, for_s: float) -> None:
    """Of five hosts: answered before their bodies are whole, and an answer of 80 kB that nobody reads."""
    for _ in until(for_s):
        held = [opened(target, HOSTS[number % len(HOSTS)]) for number in range(SILENT)]
        for number, client in enumerate(held):
            with suppress(OSError):  # closed already, where the machine is too busy to ask in time
                if number % 2:
                    client.sendall(b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
                    assert client.recv(12) == b"HTTP/1.1 404"
                    client.sendall(b"x")
                else:
                    client.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n")
        began = time.monotonic()
        time.sleep(LAST_REPLY_S)
        closed = sum(map(is_closed, held))
        print(f"{closed} of {SILENT} closed within {time.monotonic() - began:.0f} s")
        assert closed >= 0.99 * SILENT, closed


def is_closed(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        while client.recv(65536):
            pass
    except BlockingIOError:
        return False
    except OSError:
        pass
    client.close()
    return True


def idle_connections(target: Target, for_s: float) -> None:
    held = []
    for _ in until(for_s):
        with suppress(OSError):
            held.append(opened(target, random.choice(HOSTS)))
        del held[: max(0, len(held) - 3000)]


def dribbled_bodies(target: Target, for_s: float) -> None:
    """Half of them claim to be a webhook's delivery."""

    def dribble(thread: int) -> None:
        path, size = ("/webhooks/github", 26_000_000) if thread % 2 else ("/api/v1/diagnose", 62_000_000)
        head = (
            f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n"
            f"X-Hub-Signature-256: sha256={'0' * 64}\r\n\r\n"
        )
        for _ in until(for_s):
            with suppress(OSError), opened(target) as client:
                client.sendall(head.encode() + b'{"log":"' + b"x" * (size * 15 // 16))
                for _ in until(for_s):
                    client.sendall(b"x")
                    time.sleep(1)

    at_once(10, dribble)


def deep_json(target: Target, for_s: float) -> None:
    body = b'{"log":"x","a":[' + DEEP + b"]}"
    again_and_again(target, for_s, lambda client: client.post("/api/v1/diagnose", content=body, headers=JSON))


def deep_mcp(target: Target, for_s: float) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":[' + DEEP + b"]}}"
    again_and_again(target, for_s, lambda client: client.post("/mcp", content=body, headers=JSON))


def large_mcp(target: Target, for_s: float) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":"' + b"x\\n" * (5 * MIB) + b'"}}'
    again_and_again(target, for_s, lambda client: client.post("/mcp", content=body, headers=JSON))


def uncached_searches(target: Target, for_s: float) -> None:
    def search(thread: int) -> None:
        asked = iter(range(1_000_000))
        again_and_again(
            target,
            for_s,
            lambda client: client.get("/issues", params={"q": f"cuda engine failed {thread} {next(asked)}"}),
        )

    at_once(30, search)


def logs_of_secrets(target: Target, for_s: float) -> None:
    """Nothing costs more to mask."""
    log = "".join(f"api_key='v{at}x{at}abc' from 10.0.{at % 256}.7\n" for at in range(200_000))
    headers = {"content-type": "text/plain"}
    at_once(
        4,
        lambda _thread: again_and_again(
            target,
            for_s,
            lambda client: client.post("/api/v1/diagnose", content=log.encode(), headers=headers),
        ),
    )


def batches(target: Target, for_s: float) -> None:
    body = json.dumps({"logs": [{"log": CRASH * 60}] * 100}).encode()
    at_once(
        30,
        lambda _thread: again_and_again(
            target, for_s, lambda client: client.post("/api/v1/diagnose/batch", content=body, headers=JSON)
        ),
    )


def votes(target: Target, for_s: float) -> None:
    def vote(thread: int) -> None:
        body = {"signal": "works", "value": thread % 2 or -1}
        again_and_again(
            target, for_s, lambda client: client.post(f"/api/v1/issues/{CRASH_NUMBER}/votes", json=body)
        )

    at_once(8, vote)


def rederiving(target: Target, for_s: float) -> None:
    """Not an attack, but it holds the writers' lock as long as one could."""
    for _ in until(for_s):
        environment = {"TRIAGE_DATABASE_URL": target.base, "PATH": ""}
        command = [sys.executable, "-m", "app.cli", "reextract"]
        subprocess.run(command, env=environment, capture_output=True, check=True)


def kept_logs(target: Target, for_s: float) -> None:
    """One client fills its share; then another finds room."""
    body = {"log": f"{CRASH}{'ü' * 2000}", "keep": True}
    statuses: Counter[int] = Counter()

    def keep(client: httpx.Client) -> None:
        statuses[client.post("/api/v1/diagnose", json=body).status_code] += 1

    at_once(4, lambda _thread: again_and_again(target, for_s, keep))
    print(dict(statuses))
    assert statuses[200] < 100
    assert set(statuses) == {200, 429}
    with client_from(OTHERS[0], target.port) as other:
        assert "kept" in other.post("/api/v1/diagnose", json=body).json()


def crowded_issue(target: Target, for_s: float) -> None:
    """A stranger may write 30 comments of 64 KiB; each delivery has the issue read anew."""
    numbers = iter(range(1, 1_000_000))
    line = "It works again with vllm 0.6.3 and --enforce-eager; RuntimeError: CUDA error in worker.py\n"

    def deliver(client: httpx.Client) -> None:
        key = next(numbers)
        comment = {"id": key % 30 + 1, "body": f"{key}\n{line * 700}"[: 64 << 10], "user": {"login": "x"}}
        comment |= {
            "created_at": "2026-01-01T00:00:00Z",
            "updated_at": f"2026-01-01T00:{key // 60 % 60:02}:{key % 60:02}Z",
        }
        issue = {"number": CRASH_NUMBER, "title": "t", "state": "open", "html_url": "https://github.com/x"}
        sent: dict[str, Any] = {"action": "created", "issue": issue, "comment": comment}
        content = json.dumps(sent | {"repository": {"full_name": "vllm-project/vllm"}}).encode()
        headers = JSON | {"x-github-event": "issue_comment", "x-github-delivery": str(key)}
        proof = hmac.digest(SECRET.encode(), content, "sha256").hex()
        headers["x-hub-signature-256"] = f"sha256={proof}"
        answer = client.post("/webhooks/github", content=content, headers=headers)
        assert answer.status_code == 202, answer.text

    again_and_again(target, for_s, deliver)


@pytest.mark.long
@pytest.mark.parametrize(
    ("attack", "how"),
    [
        (silent_connections, {}),
        (idle_connections, {"open_files": 1024}),
        (dribbled_bodies, WEBHOOKS),
        (deep_json, {"processes": 3}),
        (deep_mcp, {"processes": 2}),
        (large_mcp, {"processes": 2}),
        (uncached_searches, {}),
        (logs_of_secrets, {}),
        (batches, {}),
        (votes, {}),
        (rederiving, {}),
        (kept_logs, {}),
        (crowded_issue, WEBHOOKS),
    ],
)
def test_others_are_served_during_an_attack(
    tmp_path: Path, attack: Callable[[Target, float], None], how: dict[str, Any]
) -> None:
    base = starter_settings(tmp_path).database_url
    before, noticed = attacked(tmp_path, base, attack, for_s=FOR_S, **how)
    assert noticed.faults(before) == [], str(noticed)


def reports(target: Target, for_s: float) -> None:
    numbers = iter(range(1, 1_000_000))
    at_once(
        2,
        lambda _thread: again_and_again(
            target, for_s, lambda client: client.post("/report", data={"url": str(next(numbers))})
        ),
    )


@pytest.mark.long
def test_others_are_served_and_the_sync_has_its_hour_while_one_client_has_issues_fetched(
    tmp_path: Path,
) -> None:
    base = starter_settings(tmp_path).database_url
    with hourly_github(60) as (url, asked):
        before, noticed = attacked(tmp_path, base, reports, for_s=FOR_S, TRIAGE_GITHUB_API_URL=url)

    assert noticed.faults(before) == [], str(noticed)
    assert 10 < len(asked) < 60 - KEPT_FOR_SYNC + 4
