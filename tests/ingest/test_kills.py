"""kill -9 at random moments of a sync: each restart goes on, and nothing in the end tells that there were any."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from app.extract.reader import RULES_VERSION
from app.store.derived.readings import stale_numbers
from app.store.github.sync_state import last_runs
from app.store.schema import migrate
from app.store.session import Store, open_store
from app.store.tables import metadata
from ingest.github.client import GitHubClient
from ingest.sync.sync import sync
from tests.ingest.conftest import REPO, shared_folder
from tests.ingest.test_truth import asked, copy_of, truth_of

KILLS = 30
REPO_ID = 1
NOT_COMPARED = {"fetched_at", "seen_at", "read_at", "moved_at", "asked_at"}
"""When something was done may differ, and so may a row number that nothing points at."""
RUN_LOGS = {"sync_run", "delivery"}
RANDOM = {"secret"}
"""Made by each base for itself."""

SCRIPT = """
import os, signal, sys, threading
import ingest.sync.sync
from app.knowledge.indexing import batches
from app.knowledge.indexing.derive import derive_issues
from app.store.session import open_store
from ingest.github.client import GitHubClient

url, api, repo, moments, delay_s = *sys.argv[1:4], int(sys.argv[4]), float(sys.argv[5])

def moment():
    global moments
    moments -= 1
    if moments == 0:
        threading.Timer(delay_s, os.kill, (os.getpid(), signal.SIGKILL)).start()

def derive(*args):
    moment()
    return derive_issues(*args)

batches.derive_issues = derive

class Client(GitHubClient):
    def get_page(self, *args, **more):
        moment()
        return super().get_page(*args, **more)

    def find_object(self, *args, **more):
        moment()
        return super().find_object(*args, **more)

with Client(api, "any") as client:
    done = ingest.sync.sync.sync(open_store(url), client, repo, full=len(sys.argv) > 6).complete
print(done, flush=True)
os._exit(0)
"""


@pytest.fixture(scope="module")
def two_thousand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("two_thousand")
    script = shared_folder() / "github-sim" / "make_data.py"
    subprocess.run([sys.executable, script, made, "--issues", "2000"], check=True, capture_output=True)
    return made


def sync_with_kills(url: str, api: str, chance: random.Random, *flags: str, most: int = 4) -> int:
    """Syncs until one comes to its end; how often one was killed on the way."""
    kills, output = 0, ""
    while output.strip() != "True":
        moments = chance.randint(1, most) if kills < KILLS else 0
        process = subprocess.run(
            [
                sys.executable,
                "-c",
                SCRIPT,
                url,
                api,
                REPO,
                str(moments),
                str(chance.uniform(0, 0.08)),
                *flags,
            ],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
            check=False,
            timeout=300,
        )
        output = process.stdout
        assert process.returncode in {0, -signal.SIGKILL}
        kills += process.returncode == -signal.SIGKILL
    return kills


def content_of(store: Store) -> dict[str, list[str]]:
    """All rows of all tables but the run logs, in an order of their own."""
    found = {}
    with store.reading() as session:
        for table in metadata.sorted_tables:
            if table.name in RUN_LOGS | RANDOM:
                continue
            columns = [
                column.name
                for column in table.columns
                if column.name not in NOT_COMPARED and (table.name, column.name) != ("fact", "id")
            ]
            chosen = ", ".join(f'"{name}"' for name in columns)
            rows = session.connection().execute(text(f'SELECT {chosen} FROM "{table.name}"'))
            found[table.name] = sorted(repr(tuple(row)) for row in rows if "asked" not in repr(row))
    return found


@pytest.mark.long
@pytest.mark.parametrize("mode", [[], ["--cursor"]], ids=["numbered", "cursor"])
def test_kills_at_random_moments_leave_no_trace(
    sqlite_store: Store, simulate: Callable[..., Any], tmp_path: Path, two_thousand: Path, mode: list[str]
) -> None:
    """Each process kills itself some milliseconds after a random request or batch; then the next starts."""
    simulator = simulate("--synth-comments", "--data", str(two_thousand), *mode)
    url = f"sqlite:///{tmp_path / 'killed.db'}"
    killed = open_store(url)
    migrate(killed)
    kills = sync_with_kills(url, simulator.url, random.Random(5))
    assert kills == KILLS
    needed = asked(simulator)
    with GitHubClient(simulator.url, "any") as client:
        whole = sync(sqlite_store, client, REPO)
    print(f"{kills} kills; {needed} requests, {whole.requests} without")
    assert needed <= whole.requests + 2 * kills
    for store in (killed, sqlite_store):  # both keep the same etags after a run that finds nothing new
        with GitHubClient(simulator.url, "any") as client:
            again = sync(store, client, REPO)
        assert (again.complete, again.issues, again.comments, again.read) == (True, 0, 0, 0)
    assert copy_of(killed) == truth_of(simulator)
    found, wanted = content_of(killed), content_of(sqlite_store)
    assert {name: len(rows) for name, rows in found.items()} == {
        name: len(rows) for name, rows in wanted.items()
    }
    assert found == wanted
    with killed.reading() as session:
        assert stale_numbers(session, REPO_ID, RULES_VERSION) == []
        outcomes = [noted.outcome for noted in last_runs(session, 100)]
    assert outcomes[:2] == ["complete", "complete"]
    assert set(outcomes[2:]) == {"killed"}
    killed.close()


@pytest.mark.long
def test_kills_of_a_full_run_lose_nothing_and_mark_nothing_that_is_there(
    simulate: Callable[..., Any], tmp_path: Path
) -> None:
    simulator = simulate("--synth-comments", "--cursor")
    url = f"sqlite:///{tmp_path / 'killed.db'}"
    store = open_store(url)
    migrate(store)
    with GitHubClient(simulator.url, "any") as client:
        sync(store, client, REPO)
    whole = asked(simulator)
    for number in sorted(truth_of(simulator)[0])[::40]:
        simulator.post("/_sim/delete", {"issue": number})
    deleted = len(simulator.get("/_sim/truth")["deleted"])
    kills = sync_with_kills(url, simulator.url, random.Random(6), "full", most=2)
    assert kills >= 8
    assert asked(simulator) - whole <= whole + deleted + 3 * kills
    assert copy_of(store) == truth_of(simulator)
    store.close()
