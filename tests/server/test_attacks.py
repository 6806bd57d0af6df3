"""Attacks from one address against two workers, as everybody else notices them."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.served import CRASH_NUMBER, starter_settings
from tests.server.attack import ATTACKER, attacked, client_from

FOR_S = 60.0
MIB = 1 << 20
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
DEEP = b"[]," * (9 * MIB) + b"[]"


def until(for_s: float) -> Iterator[None]:
    end = time.monotonic() + for_s
    while time.monotonic() < end:
        yield


def at_once(count: int, run: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=run, args=(each,), daemon=True) for each in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(FOR_S + 20)


def opened(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=5, source_address=(ATTACKER, 0))


def again_and_again(port: int, for_s: float, ask: Callable[[httpx.Client], object]) -> None:
    for _ in until(for_s):
        with suppress(httpx.HTTPError), client_from(ATTACKER, port) as client:
            ask(client)


def silent_connections(port: int, for_s: float) -> None:
    """Each is answered before its body is whole, then sends one byte more and no other."""
    held = []
    for _ in range(1000):
        with suppress(OSError):
            client = opened(port)
            client.sendall(b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
            client.recv(12)
            client.sendall(b"x")
            client.setblocking(False)
            held.append(client)
    time.sleep(45)
    closed = 0
    for client in held:
        try:
            while client.recv(65536):
                pass
            closed += 1
        except BlockingIOError:
            pass
        except OSError:
            closed += 1
    assert closed >= 0.99 * len(held), f"{closed} of {len(held)} are closed"


def idle_connections(port: int, for_s: float) -> None:
    held = []
    for _ in until(for_s):
        with suppress(OSError):
            held.append(opened(port))
        del held[: max(0, len(held) - 3000)]


def dribbled_bodies(port: int, for_s: float) -> None:
    head = b"POST /api/v1/diagnose HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 62000000\r\n\r\n"

    def dribble(_thread: int) -> None:
        for _ in until(for_s):
            with suppress(OSError), opened(port) as client:
                client.sendall(head + b'{"log":"' + b"x" * 58_000_000)
                for _ in until(for_s):
                    client.sendall(b"x")
                    time.sleep(1)

    at_once(10, dribble)


def deep_json(port: int, for_s: float) -> None:
    body = b'{"log":"x","a":[' + DEEP + b"]}"
    again_and_again(port, for_s, lambda client: client.post("/api/v1/diagnose", content=body, headers=JSON))


def deep_mcp(port: int, for_s: float) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":[' + DEEP + b"]}}"
    again_and_again(port, for_s, lambda client: client.post("/mcp", content=body, headers=JSON))


def uncached_searches(port: int, for_s: float) -> None:
    def search(thread: int) -> None:
        asked = iter(range(1_000_000))
        again_and_again(
            port,
            for_s,
            lambda client: client.get("/issues", params={"q": f"cuda engine failed {thread} {next(asked)}"}),
        )

    at_once(30, search)


def votes(port: int, for_s: float) -> None:
    def vote(thread: int) -> None:
        body = {"signal": "works", "value": thread % 2 or -1}
        again_and_again(
            port, for_s, lambda client: client.post(f"/api/v1/issues/{CRASH_NUMBER}/votes", json=body)
        )

    at_once(8, vote)


@pytest.mark.long
@pytest.mark.parametrize(
    ("attack", "processes"),
    [
        (silent_connections, 1),
        (idle_connections, 1),
        (dribbled_bodies, 1),
        (deep_json, 3),
        (deep_mcp, 2),
        (uncached_searches, 1),
        (votes, 1),
    ],
)
def test_others_are_served_while_one_client_attacks(
    tmp_path: Path, attack: Callable[[int, float], None], processes: int
) -> None:
    base = starter_settings(tmp_path).database_url
    noticed = attacked(base, attack, processes, FOR_S, TRIAGE_RATE_LIMIT="off")
    assert noticed.is_well, str(noticed)
