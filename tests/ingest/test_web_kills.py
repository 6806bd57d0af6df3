"""kill -9 of any of two servers and a sync on one PostgreSQL: no row is lost, nor a request of the others."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.config import Settings
from app.extract.reader import RULES_VERSION
from app.knowledge.diagnosis.kept_logs import view_kept_log
from app.knowledge.operations.doctor import examine
from app.store.derived.readings import stale_numbers
from app.store.schema import migrate
from app.store.session import Store, open_store
from ingest.github.client import GitHubClient
from ingest.sync.sync import sync
from tests.ingest.conftest import REPO
from tests.ingest.test_truth import copy_of, truth_of
from tests.loopback import free_port
from tests.postgresql import PostgreSQL
from tests.samples import allreduce_log, marlin_log, rope_log

KILLS = 20
CLIENTS = 4
READY_TIMEOUT_S = 90.0
KEPT_EACH = 20
"""All clients come from one address, which may keep a share of all kept logs."""
LOGS = (marlin_log(), rope_log(), allreduce_log())


@dataclass
class Runner:
    """A process that is started again whenever it was killed; `deaths` tells when that was."""

    arguments: tuple[str, ...]
    settings: dict[str, str]
    log: Path
    url: str | None = None
    process: subprocess.Popen[bytes] | None = None
    deaths: list[float] = field(default_factory=list)
    is_up: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TRIAGE_")}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "app.cli", *self.arguments],
                cwd=Path(__file__).parents[2],
                env=environment | self.settings,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        until = time.monotonic() + READY_TIMEOUT_S
        while self.url is not None and not self._answers():
            assert time.monotonic() < until, f"{self.arguments} did not start"
            time.sleep(0.1)
        self.is_up.set()

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/healthz", timeout=5, trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False

    def kill(self) -> None:
        assert self.process is not None
        self.is_up.clear()
        self.deaths.append(time.monotonic())
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def run_again_if_done(self) -> None:
        if self.process is None or self.process.poll() is not None:
            self.start()


@dataclass
class Load:
    """Asks whichever server is up: diagnoses, keeps logs, reads what was kept."""

    servers: list[Runner]
    seed: int
    stop: threading.Event
    kept: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    cut_off: int = 0
    asked: int = 0

    def run(self) -> None:
        chance = random.Random(self.seed)
        with httpx.Client(timeout=60, trust_env=False) as client:
            while not self.stop.is_set():
                server = chance.choice(self.servers)
                if not server.is_up.is_set():
                    continue
                began = time.monotonic()
                try:
                    self._ask(client, f"{server.url}", chance)
                except (httpx.HTTPError, AssertionError) as error:
                    if any(death >= began - 0.5 for death in server.deaths):
                        self.cut_off += 1
                    else:
                        self.failures.append(f"{type(error).__name__}: {error}")
                self.asked += 1

    def _ask(self, client: httpx.Client, url: str, chance: random.Random) -> None:
        what = chance.random()
        if what < 0.2 and self.kept:
            answer = client.get(f"{url}{chance.choice(self.kept)}")
        else:
            keep = what > 0.6 and len(self.kept) < KEPT_EACH
            answer = client.post(f"{url}/api/v1/diagnose", json={"log": chance.choice(LOGS), "keep": keep})
            if keep and answer.status_code == 200:
                self.kept.append(answer.json()["kept"]["url"])
        assert answer.status_code == 200, f"{answer.status_code} {answer.text[:200]}"


@pytest.fixture
def base(postgresql: PostgreSQL) -> Iterator[Store]:
    opened = open_store(postgresql.new_database())
    migrate(opened)
    yield opened
    opened.close()


@pytest.mark.long
def test_kills_of_servers_and_syncs_lose_no_row_and_no_request_of_the_others(
    base: Store, simulate: Callable[..., Any], tmp_path: Path
) -> None:
    simulator = simulate("--synth-comments", "--cursor")
    settings = {
        "TRIAGE_DATABASE_URL": base.engine.url.render_as_string(hide_password=False),
        "TRIAGE_REPO": REPO,
        "TRIAGE_GITHUB_API_URL": simulator.url,
        "TRIAGE_RATE_LIMIT": "off",
        "TRIAGE_GITHUB_TOKEN": "any",
    }
    ports = [free_port(), free_port()]
    servers = [
        Runner(("serve", "--port", str(port)), settings, tmp_path / f"{port}.log", f"http://127.0.0.1:{port}")
        for port in ports
    ]
    syncing = Runner(("sync", "--full"), settings, tmp_path / "sync.log")
    runners, chance, stop = [*servers, syncing], random.Random(7), threading.Event()
    loads = [Load(servers, seed, stop) for seed in range(CLIENTS)]
    threads = [threading.Thread(target=load.run) for load in loads]
    victims = [runners[at % len(runners)] for at in range(KILLS)]
    chance.shuffle(victims)
    try:
        for runner in runners:
            runner.start()
        for thread in threads:
            thread.start()
        for victim in victims:
            time.sleep(chance.uniform(0.2, 1.5))
            syncing.run_again_if_done()
            victim.kill()
            victim.start()
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
        for runner in runners:
            if runner.process is not None:
                runner.process.kill()
                runner.process.wait()

    asked, cut_off = sum(load.asked for load in loads), sum(load.cut_off for load in loads)
    kept = [address for load in loads for address in load.kept]
    answer = ", ".join(f"{runner.arguments[0]} {len(runner.deaths)}" for runner in runners)
    print(f"kills: {answer}; {asked} requests, {cut_off} cut off with their server; {len(kept)} logs kept")
    assert [len(runner.deaths) for runner in runners] == [7, 7, 6]
    failures = [failure for load in loads for failure in load.failures]
    assert failures == [], _errors_in([server.log for server in servers])
    assert asked > 20 * KILLS
    with GitHubClient(simulator.url, "any") as client:
        assert sync(base, client, REPO).complete
    assert copy_of(base) == truth_of(simulator)
    with base.reading() as session:
        assert stale_numbers(session, 1, RULES_VERSION) == []
    _check_kept(base, kept)
    url = settings["TRIAGE_DATABASE_URL"]
    found = examine(Settings(database_url=url, repo=(REPO,), _env_file=None))  # type: ignore[call-arg]
    assert found.is_sound, found


def _errors_in(logs: list[Path]) -> set[str]:
    """What the servers' tracebacks end in."""
    lines = (line for log in logs for line in log.read_text().splitlines())
    return {line for line in lines if line.partition(":")[0].endswith("Error")}


def _check_kept(base: Store, addresses: list[str]) -> None:
    assert len(addresses) > 50
    for address in addresses:
        assert view_kept_log(base, address.rpartition("/")[2]).log
