"""A server under attack from one address of the loopback, as clients of other addresses notice it."""

from __future__ import annotations

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

ATTACKER = "127.0.0.66"
OTHERS = ("127.0.0.21", "127.0.0.22")
WATCHER = "127.0.0.30"
PAUSE_S = 0.1

P95_S, HEALTH_S, MEMORY_MB = 0.5, 0.1, 900
"""What everybody else may notice at most."""


def client_from(address: str, port: int, timeout_s: float = 60.0) -> httpx.Client:
    """A client at an address of the loopback."""
    transport = httpx.HTTPTransport(local_address=address, verify=False)
    return httpx.Client(transport=transport, base_url=f"http://127.0.0.1:{port}", timeout=timeout_s)


@dataclass
class Noticed:
    """How long the others' requests and `/healthz` took, what they answered, and the server's memory."""

    reads_s: list[float] = field(default_factory=list)
    health_s: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    memory_mb: float = 0.0

    @property
    def p95_s(self) -> float:
        return quantile(self.reads_s, 0.95)

    @property
    def is_well(self) -> bool:
        is_quick = self.p95_s < P95_S and quantile(self.health_s, 0.95) < HEALTH_S
        return is_quick and self.memory_mb < MEMORY_MB and set(self.statuses) == {"200"}

    def __str__(self) -> str:
        reads, health = self.reads_s, self.health_s
        return (
            f"reads {len(reads)}, p50 {quantile(reads, 0.5):.3f} p95 {self.p95_s:.3f} max {max(reads, default=0):.3f} s; "
            f"healthz p95 {quantile(health, 0.95):.3f} max {max(health, default=0):.3f} s; "
            f"memory {self.memory_mb:.0f} MB; {dict(self.statuses)}"
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
    """Ask as others do, until the end of the `with`."""
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
    )
    threads = [
        threading.Thread(target=ask, args=(address, noticed.reads_s, *questions)) for address in OTHERS
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


def attacked(
    base: str, attack: Callable[[int, float], None], attackers: int, for_s: float, **environment: str
) -> Noticed:
    """What others notice of two workers while so many processes attack them; `attack` gets the port and how long."""
    with serving(base, "--workers", "2", **environment) as (server, port), noticing(server, port) as noticed:
        processes = [
            get_context("fork").Process(target=attack, args=(port, for_s), daemon=True)
            for _ in range(attackers)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join(for_s + 30)
            process.kill()
            assert not process.exitcode, f"{attack.__name__} ended with {process.exitcode}"
    print(f"{attack.__name__}: {noticed}")
    return noticed
