"""Mixed load on a served base: 60 % diagnoses, 30 % reads of issues, 10 % browsing.

    TRIAGE_DATABASE_URL=… python -m tests.benchmarks.load --per-second 100 --seconds 300 --workers 2

Serves the base of TRIAGE_DATABASE_URL on a free port of the loopback with `triage serve`, sends requests at a
fixed rate from this process whatever the answers take, and prints a row: answered per second, p50, p95, p99 of
all and of each kind, failures, memory of the server's processes after warm-up and at the end, and how much CPU
server and generator took. With `--at-once N` it keeps N requests open in place of a rate. The logs are those of
the benchmark's cases, rewritten. It ends by itself, and ends what it started.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from socket import socket

from app.bench.cases import load_pinned
from app.bench.corpus import find_logs, read_documents
from app.bench.run import log_queries
from app.config import load_settings
from app.store.session import open_store

SHARES = (("diagnose", 0.6), ("read", 0.3), ("browse", 0.1))
BROWSED = (
    "/", "/issues", "/issues?gpu=H100&state=open", "/issues?q=illegal+memory+access", "/regressions",
    "/signatures", "/api/v1/issues?backend=flashinfer&limit=20", "/digest",
)  # fmt: skip
READY_TIMEOUT_S = 60.0
WARM_UP_SHARE = 0.1
ANSWER_TIMEOUT_S = 30.0
IDLE_MAX_S = 3.0
"""The server closes connections that are idle for five."""
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Figures:
    """Seconds by kind of request, what failed, and memory by the second."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    failures: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    memory_bytes: list[int] = field(default_factory=list)

    def row(self, kind: str | None = None) -> str:
        times = sorted(self.seconds[kind] if kind else [s for found in self.seconds.values() for s in found])
        if not times:
            return "none answered"
        at = {share: 1000 * times[int(share * (len(times) - 1))] for share in (0.5, 0.95, 0.99, 1.0)}
        return f"{len(times):6} answers, p50 {at[0.5]:.0f}, p95 {at[0.95]:.0f}, p99 {at[0.99]:.0f}, longest {at[1.0]:.0f} ms"


class Requests:
    """What is asked, in a random order that is the same each time."""

    def __init__(self, logs: list[str], numbers: list[int]) -> None:
        self._dice = random.Random(20261121)
        self._logs, self._numbers = logs, numbers

    def next(self) -> tuple[str, str, str, str | None]:
        """Kind, method, path and body."""
        kind = self._dice.choices([name for name, _ in SHARES], [share for _, share in SHARES])[0]
        if kind == "diagnose":
            return kind, "POST", "/api/v1/diagnose", self._dice.choice(self._logs)
        if kind == "browse":
            return kind, "GET", self._dice.choice(BROWSED), None
        number = self._dice.choice(self._numbers)
        return kind, "GET", self._dice.choice(("/issues/{}", "/api/v1/issues/{}", "/api/v1/issues/{}/related")).format(number), None


class Connections:
    """Connections that are kept open: so little of HTTP that the generator takes little of the CPU."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[tuple[float, asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def send(self, method: str, path: str, body: str | None) -> int:
        """The status of the answer, which is read to its end."""
        reader, writer = await self._take()
        content = (body or "").encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Encoding: gzip\r\n"
        head += f"Content-Type: text/plain\r\nContent-Length: {len(content)}\r\n\r\n" if body else "\r\n"
        writer.write(head.encode() + content)
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = answer.partition(b"content-length:")[2].partition(b"\r\n")[0]
        if length:
            await reader.readexactly(int(length))
        else:
            while size := int((await reader.readline()).strip() or b"0", 16):
                await reader.readexactly(size + 2)
            await reader.readline()
        self._idle.append((time.monotonic(), reader, writer))
        return int(answer.split(b" ", 2)[1])

    async def _take(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._idle and self._idle[-1][0] > time.monotonic() - IDLE_MAX_S:
            return self._idle.pop()[1:]
        return await asyncio.open_connection("127.0.0.1", self._port)


async def ask(connections: Connections, requests: Requests, figures: Figures) -> None:
    kind, method, path, body = requests.next()
    began = time.perf_counter()
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            status = await connections.send(method, path, body)
        fault = "" if status < 400 else f"{status} {path if kind == 'browse' else kind}"
    except (OSError, EOFError, TimeoutError, ValueError) as error:
        fault = f"{type(error).__name__} {kind}"
    if fault:
        figures.failures[fault] += 1
    else:
        figures.seconds[kind].append(time.perf_counter() - began)


async def at_a_rate(connections: Connections, requests: Requests, figures: Figures, per_second: float, seconds: float) -> None:
    began, sent, open_ = time.perf_counter(), 0, set()
    while (now := time.perf_counter() - began) < seconds:
        while sent < now * per_second:
            task = asyncio.create_task(ask(connections, requests, figures))
            open_.add(task)
            task.add_done_callback(open_.discard)
            sent += 1
        await asyncio.sleep(0.002)
    if open_:
        await asyncio.wait(open_, timeout=ANSWER_TIMEOUT_S)


async def keep_open(connections: Connections, requests: Requests, figures: Figures, count: int, seconds: float) -> None:
    ends_at = time.perf_counter() + seconds

    async def one() -> None:
        while time.perf_counter() < ends_at:
            await ask(connections, requests, figures)

    await asyncio.gather(*(one() for _ in range(count)))


@asynccontextmanager
async def watching_memory(pid: int, figures: Figures) -> AsyncIterator[None]:
    async def watch() -> None:
        while True:
            figures.memory_bytes.append(sum(memory_of(child) for child in family(pid)))
            await asyncio.sleep(1)

    task = asyncio.create_task(watch())
    try:
        yield
    finally:
        task.cancel()


def family(pid: int) -> list[int]:
    """A process and what it started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [pid, *(found for child in children for found in family(int(child)))]


def memory_of(pid: int) -> int:
    try:
        resident, shared = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1:3]
        return (int(resident) - int(shared)) * PAGE_BYTES  # the mapped base is the kernel's, and shared
    except OSError:
        return 0


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def read_base() -> tuple[list[str], list[int]]:
    """Logs to ask, and numbers to read."""
    settings = load_settings()
    store = open_store(settings.database_url)
    pinned = load_pinned()
    documents = read_documents(store, settings.default_repo)
    found = find_logs(documents, pinned.cases)
    logs = [query.text for query in log_queries(documents, found) if query.split == "plain"]
    store.close()
    return logs, [document.number for document in documents]


def free_port() -> int:
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def measure(asked: argparse.Namespace, port: int, pid: int) -> None:
    logs, numbers = read_base()
    await wait_until_ready(port)
    connections, requests, figures = Connections(port), Requests(logs, numbers), Figures()
    async with watching_memory(pid, figures):
        for seconds in (asked.seconds * WARM_UP_SHARE, asked.seconds):
            figures.seconds.clear()
            figures.failures.clear()
            began, own, theirs = time.perf_counter(), own_cpu_s(), sum(map(cpu_s, family(pid)))
            warm = len(figures.memory_bytes)
            if asked.at_once:
                await keep_open(connections, requests, figures, asked.at_once, seconds)
            else:
                await at_a_rate(connections, requests, figures, asked.per_second, seconds)
            took_s = time.perf_counter() - began
            shares = own_cpu_s() - own, sum(map(cpu_s, family(pid))) - theirs
    tell(figures, took_s, shares, warm)


def own_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def tell(figures: Figures, took_s: float, shares: tuple[float, float], warm: int) -> None:
    answered = sum(map(len, figures.seconds.values()))
    memory = figures.memory_bytes[warm:] or figures.memory_bytes
    fifth = max(1, len(memory) // 5)
    first, last = (sorted(part)[len(part) // 2] / 1e6 for part in (memory[:fifth], memory[-fifth:]))
    print(f"all      {figures.row()}; {answered / took_s:.1f}/s")
    for kind, _ in SHARES:
        print(f"{kind:8} {figures.row(kind)}")
    print(f"failures {dict(figures.failures) or 0}")
    print(f"memory   {first:.0f} MB after warm-up, {last:.0f} MB at the end ({100 * (last / first - 1):+.1f} %)")
    print(f"CPU      generator {shares[0] / took_s:.2f} cores, server {shares[1] / took_s:.2f} cores of {os.cpu_count()}")


async def wait_until_ready(port: int) -> None:
    ends_at = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < ends_at:
        try:
            if await Connections(port).send("GET", "/readyz", None) == 200:
                return
        except (OSError, EOFError):
            await asyncio.sleep(0.1)
    raise SystemExit("the server did not come up")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--per-second", type=float, default=100.0)
    parser.add_argument("--at-once", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    port = free_port()
    command = [sys.executable, "-m", "app.cli", "serve", "--port", str(port), "--workers", str(asked.workers)]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        asyncio.run(measure(asked, port, server.pid))
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


if __name__ == "__main__":
    main()
