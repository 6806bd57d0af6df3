"""A server under attack from some addresses of the loopback, as clients of other addresses notice it."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

import httpx

from tests.served import CRASH, CRASH_NUMBER, serving

OTHERS = ("127.0.0.21", "127.0.0.22")
WATCHER = "127.0.0.30"
PAUSE_S = 0.1
ATTACKER_NICENESS = 10

P95_S, HEALTH_S, MEMORY_MB = 0.5, 0.1, 900
"""What everybody else may notice at most."""
SLACK = 1 if os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1") == "1" else 3
"""Beside other tests on the same cores everything takes longer."""
LOG_MB = 30
BEFORE_S, TIMES_BEFORE = 10.0, 5
"""On a machine that is busy with other things, others may wait so many times as long as without the attack."""


@dataclass(frozen=True)
class Target:
    """A server at work."""

    port: int
    base: str


def client_from(address: str, port: int, timeout_s: float = 60.0) -> httpx.Client:
    """A client at an address of the loopback."""
    transport = httpx.HTTPTransport(local_address=address, verify=False)
    return httpx.Client(transport=transport, base_url=f"http://127.0.0.1:{port}", timeout=timeout_s)


@dataclass
class Noticed:
    """How long the others' requests and `/healthz` took, what they answered, and the server's memory."""

    asked_s: list[float] = field(default_factory=list)
    health_s: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    memory_mb: float = 0.0

    def faults(self, before: Noticed) -> list[str]:
        """What is worse than anybody may notice, and than what they noticed before the attack."""
        asked_s, health_s = (
            max(limit * SLACK, TIMES_BEFORE * quantile(times, 0.95))
            for limit, times in ((P95_S, before.asked_s), (HEALTH_S, before.health_s))
        )
        held = {
            "p95 of requests": quantile(self.asked_s, 0.95) < asked_s,
            "p95 of /healthz": quantile(self.health_s, 0.95) < health_s,
            "memory": self.memory_mb < MEMORY_MB,
            "answers": set(self.statuses) == {"200"},
        }
        return [name for name, is_held in held.items() if not is_held]

    def __str__(self) -> str:
        asked, health = self.asked_s, self.health_s
        return (
            f"{len(asked)} requests, p50 {quantile(asked, 0.5):.3f} p95 {quantile(asked, 0.95):.3f} "
            f"max {max(asked, default=0):.3f} s; /healthz p95 {quantile(health, 0.95):.3f} "
            f"max {max(health, default=0):.3f} s; {self.memory_mb:.0f} MB; {dict(self.statuses)}"
        )


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(int(len(values) * share), len(values) - 1)] if values else float("inf")


def memory_mb(session: int) -> float:
    """Of all processes of a session."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError, ValueError):
            if int(stat.read_text().rpartition(")")[2].split()[3]) == session:
                total += int(stat.with_name("statm").read_text().split()[1])
    return total * 4096 / 1e6


@contextmanager
def noticing(process: subprocess.Popen[bytes], port: int) -> Iterator[Noticed]:
    """Read, diagnose and vote as others do, until the end of the `with`."""
    noticed, stop = Noticed(), threading.Event()

    def ask(address: str, times: list[float], *questions: Callable[[httpx.Client], httpx.Response]) -> None:
        turn = 0
        while not stop.wait(PAUSE_S):
            began = time.monotonic()
            try:
                with client_from(address, port) as client:
                    answer = str(questions[turn % len(questions)](client).status_code)
            except httpx.HTTPError as error:
                answer = type(error).__name__
            times.append(time.monotonic() - began)
            noticed.statuses[answer] += 1
            noticed.memory_mb = max(noticed.memory_mb, memory_mb(process.pid))
            turn += 1

    questions = (
        lambda client: client.get("/"),
        lambda client: client.get(f"/api/v1/issues/{CRASH_NUMBER}"),
        lambda client: client.get("/issues"),
        lambda client: client.post("/api/v1/diagnose", json={"log": CRASH}),
        lambda client: client.get("/static/style.css"),
        lambda client: client.post(
            f"/api/v1/issues/{CRASH_NUMBER}/votes", json={"signal": "works", "value": 1}
        ),
    )
    threads = [
        threading.Thread(target=ask, args=(address, noticed.asked_s, *questions)) for address in OTHERS
    ]
    threads.append(
        threading.Thread(target=ask, args=(WATCHER, noticed.health_s, lambda client: client.get("/healthz")))
    )
    for thread in threads:
        thread.start()
    try:
        yield noticed
    finally:
        stop.set()
        for thread in threads:
            thread.join(90)


def is_event(line: str) -> bool:
    try:
        return "event" in json.loads(line)
    except ValueError:
        return False


def run_attack(attack: Callable[[Target, float], None], target: Target, for_s: float, processes: int) -> None:
    """Attack from so many processes; they give way, as attackers do not sit on the server's machine."""

    def run() -> None:
        os.nice(ATTACKER_NICENESS)
        attack(target, for_s)

    attackers = [get_context("fork").Process(target=run, daemon=True) for _ in range(processes)]
    for attacker in attackers:
        attacker.start()
    for attacker in attackers:
        attacker.join(for_s + 60)
        attacker.kill()
        assert not attacker.exitcode, f"{attack.__name__} ended with {attacker.exitcode}"


def attacked(
    folder: Path,
    base: str,
    attack: Callable[[Target, float], None],
    *,
    for_s: float,
    processes: int = 1,
    open_files: int | None = None,
    **environment: str,
) -> tuple[Noticed, Noticed]:
    """What others notice of two workers before and under attack; all that the server says must be lines of its own.

    Args:
        attack: attacks a server for so long; an exception of it fails the test.
        processes: how many attack at once.
        open_files: the hard limit that the server is started with.
    """
    log = folder / "server.log"
    with serving(base, "--workers", "2", log=log, open_files=open_files, **environment) as (server, port):
        with noticing(server, port) as before:
            time.sleep(BEFORE_S)
        with noticing(server, port) as noticed:
            run_attack(attack, Target(port, base), for_s, processes)
    print(f"before: {before}")
    print(f"{attack.__name__}: {noticed}; log {log.stat().st_size / 1e6:.1f} MB")
    assert log.stat().st_size < LOG_MB * 1e6
    assert [line for line in log.read_text(encoding="utf-8").split("\n")[:-1] if not is_event(line)] == []
    return before, noticed
