"""Mixed load on served bases: 60 % diagnoses, 30 % reads of issues, 10 % browsing.

    python -m tests.benchmarks.load --database URL… [--workers 1 2] [--per-second 100] [--seconds 300] [--logs-of URL]

Serves each base (without the option that of TRIAGE_DATABASE_URL) with each number of workers, one after the other,
on a free port of the loopback with `triage serve`; sends requests at a fixed rate from this process whatever the
answers take, and prints what is answered per second, p50, p95, p99 of all and of each kind, failures, memory of the
server's processes after warm-up and at the end, and how much CPU server, database and generator took; at the end
all of it as a Markdown table. With `--at-once N` it keeps N requests open in place of a rate, which tells the
throughput. The logs are those of the benchmark's cases, rewritten, as the base at `--logs-of` holds them (without
it the first one). CPU and memory of PostgreSQL are told where it runs on this machine. Nothing lasts longer than
`--seconds` and its warm-up says, and what is started is ended.
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
from itertools import product
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.engine import make_url

from app.config import load_settings
from app.store.github.issues import find_repository
from app.store.session import Store, open_store
from tests.benchmarks.libraries import rewritten_logs
from tests.benchmarks.processes import database_server_of, family, family_cpu_s, memory_of
from tests.loopback import free_port

SHARES = (("diagnose", 0.6), ("read", 0.3), ("browse", 0.1))
BROWSED = (
    "/",
    "/issues",
    "/issues?gpu=H100&state=open",
    "/issues?q=illegal+memory+access",
    "/regressions",
    "/signatures",
    "/api/v1/issues?backend=flashinfer&limit=20",
    "/digest",
)
READY_TIMEOUT_S = 60.0
WARM_UP_SHARE, WARM_UP_LEAST_S = 0.1, 20.0
"""Each worker makes its lists once, which takes seconds in a large base."""
ANSWER_TIMEOUT_S = 30.0
IDLE_MAX_S = 3.0
"""The server closes connections that are idle for five."""
HEADINGS = (
    "base",
    "issues",
    "workers",
    "answers/s",
    "all ms",
    "diagnose ms",
    "failures",
    "server MB",
    "database MB",
    "server CPU",
    "database CPU",
    "generator CPU",
)


@dataclass
class Figures:
    """Seconds by kind of request, what failed, and memory by the second."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    failures: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    memory_bytes: list[int] = field(default_factory=list)

    def at(self, kind: str | None = None) -> tuple[float, ...]:
        """Milliseconds at p50, p95, p99 and the end, of one kind or of all."""
        times = sorted(self.seconds[kind] if kind else [s for found in self.seconds.values() for s in found])
        return tuple(
            1000 * times[int(share * (len(times) - 1))] if times else 0.0 for share in (0.5, 0.95, 0.99, 1.0)
        )

    def row(self, kind: str | None = None) -> str:
        count = len(self.seconds[kind]) if kind else sum(map(len, self.seconds.values()))
        half, most, nearly_all, longest = self.at(kind)
        return f"{count:6} answers, p50 {half:.0f}, p95 {most:.0f}, p99 {nearly_all:.0f}, longest {longest:.0f} ms"


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
        return (
            kind,
            "GET",
            self._dice.choice(("/issues/{}", "/api/v1/issues/{}", "/api/v1/issues/{}/related")).format(
                number
            ),
            None,
        )


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
        if b"connection: close" in answer:
            writer.close()
        else:
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


async def at_a_rate(
    connections: Connections, requests: Requests, figures: Figures, per_second: float, seconds: float
) -> None:
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


async def keep_open(
    connections: Connections, requests: Requests, figures: Figures, count: int, seconds: float
) -> None:
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


def read_logs(url: str) -> list[str]:
    """The logs to ask."""
    store = open_store(url)
    logs = [query.text for query in rewritten_logs(store, load_settings().default_repo)]
    store.close()
    return logs


def read_numbers(store: Store) -> list[int]:
    """The issues to read."""
    with store.reading() as session:
        repo_id = find_repository(session, load_settings().default_repo)
        asked = text("SELECT number FROM issue WHERE repo_id = :repo AND NOT is_pull_request ORDER BY number")
        return list(session.connection().execute(asked, {"repo": repo_id}).scalars())


@dataclass(frozen=True, slots=True)
class Measured:
    """What one base with so many workers did: all of it after warm-up; CPU in cores, memory in MB."""

    base: str
    issues: int
    workers: int
    figures: Figures
    took_s: float
    cores: tuple[float, float, float]
    memory_mb: tuple[float, float]
    database_mb: float

    def tell(self) -> None:
        figures, (first, last) = self.figures, self.memory_mb
        server, database, generator = self.cores
        print(f"all      {figures.row()}; {self.answered / self.took_s:.1f}/s")
        for kind, _ in SHARES:
            print(f"{kind:8} {figures.row(kind)}")
        print(f"failures {dict(figures.failures) or 0}")
        print(
            f"memory   {first:.0f} MB after warm-up, {last:.0f} MB at the end ({100 * (last / first - 1):+.1f} %)"
        )
        print(
            f"CPU      generator {generator:.2f} cores, server {server:.2f}, database {database:.2f} "
            f"of {os.cpu_count()}",
            flush=True,
        )

    @property
    def answered(self) -> int:
        return sum(map(len, self.figures.seconds.values()))

    def line(self) -> str:
        whole, diagnoses = self.figures.at(), self.figures.at("diagnose")
        server, database, generator = self.cores
        failed = sum(self.figures.failures.values())
        return (
            f"| {self.base} | {self.issues:,} | {self.workers} | {self.answered / self.took_s:.1f} | "
            f"{whole[0]:.0f} / {whole[1]:.0f} / {whole[2]:.0f} | "
            f"{diagnoses[0]:.0f} / {diagnoses[1]:.0f} / {diagnoses[2]:.0f} | {failed} | "
            f"{self.memory_mb[0]:.0f} → {self.memory_mb[1]:.0f} | {self.database_mb:.0f} | "
            f"{server:.2f} | {database:.2f} | {generator:.2f} ({generator / (os.cpu_count() or 1):.0%}) |"
        )


async def measure(
    asked: argparse.Namespace, url: str, workers: int, port: int, pid: int, logs: list[str]
) -> Measured:
    store = open_store(url)
    numbers, database = read_numbers(store), database_server_of(store)
    await wait_until_ready(port)
    connections, requests, figures = Connections(port), Requests(logs, numbers), Figures()
    async with watching_memory(pid, figures):
        for seconds in (max(WARM_UP_LEAST_S, asked.seconds * WARM_UP_SHARE), asked.seconds):
            figures.seconds.clear()
            figures.failures.clear()
            began, before = time.perf_counter(), (family_cpu_s(pid), family_cpu_s(database), own_cpu_s())
            warm = len(figures.memory_bytes)
            if asked.at_once:
                await keep_open(connections, requests, figures, asked.at_once, seconds)
            else:
                await at_a_rate(connections, requests, figures, asked.per_second, seconds)
            took_s = time.perf_counter() - began
            after = (family_cpu_s(pid), family_cpu_s(database), own_cpu_s())
    server, kept, own = ((now - then) / took_s for now, then in zip(after, before, strict=True))
    memory = figures.memory_bytes[warm:] or figures.memory_bytes
    fifth = max(1, len(memory) // 5)
    first, last = (sorted(part)[len(part) // 2] / 1e6 for part in (memory[:fifth], memory[-fifth:]))
    database_mb = sum(map(memory_of, family(database))) / 1e6 if database else 0.0
    store.close()
    return Measured(
        name_of(url), len(numbers), workers, figures, took_s, (server, kept, own), (first, last), database_mb
    )


def name_of(url: str) -> str:
    found = make_url(url)
    return f"{found.get_backend_name()} {Path(found.database or '').stem}"


def own_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def wait_until_ready(port: int) -> None:
    ends_at = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < ends_at:
        try:
            if await Connections(port).send("GET", "/readyz", None) == 200:
                return
        except (OSError, EOFError):
            await asyncio.sleep(0.1)
    raise SystemExit("the server did not come up")


def serve_and_measure(asked: argparse.Namespace, url: str, workers: int, logs: list[str]) -> Measured:
    """Start a server, measure it, end it."""
    port = free_port()
    command = [sys.executable, "-m", "app.cli", "serve", "--port", str(port), "--workers", str(workers)]
    settings = {"TRIAGE_RATE_LIMIT": "off", **os.environ, "TRIAGE_DATABASE_URL": url}
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True, env=settings)
    try:
        return asyncio.run(measure(asked, url, workers, port, server.pid, logs))
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--database", nargs="+", metavar="URL")
    parser.add_argument("--logs-of", metavar="URL")
    parser.add_argument("--per-second", type=float, default=100.0)
    parser.add_argument("--at-once", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--workers", type=int, nargs="+", default=[2])
    asked = parser.parse_args()
    urls = asked.database or [load_settings().database_url]
    logs, lines = read_logs(asked.logs_of or urls[0]), []
    for url, workers in product(urls, asked.workers):
        print(f"-- {name_of(url)}, workers: {workers}", flush=True)
        measured = serve_and_measure(asked, url, workers, logs)
        measured.tell()
        lines.append(measured.line())
    load = f"{asked.at_once} requests at once" if asked.at_once else f"{asked.per_second:g} requests/s"
    print(
        f"\n{load} for {asked.seconds:g} s; times are p50 / p95 / p99 in ms, CPU in cores of {os.cpu_count()}"
    )
    print("\n".join([f"| {' | '.join(HEADINGS)} |", "|---" * len(HEADINGS) + "|", *lines]))


if __name__ == "__main__":
    main()
