"""What the post room's tests share: an archive, a small GitHub in memory, a reading room that reads nothing."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import stamina

from app.extract.reader import RULES_VERSION
from app.knowledge.indexing.derive import DeriveResult
from app.store.derived.readings import Reading, save_readings
from app.store.session import Store
from ingest.github.client import GitHubClient

REPO = "acme/engine"
MODES = pytest.mark.parametrize(
    ("mode", "engine"),
    [
        pytest.param([], "sqlite", id="numbered-sqlite", marks=pytest.mark.long),
        pytest.param(["--cursor"], "sqlite", id="cursor-sqlite"),
        pytest.param(["--cursor"], "postgresql", id="cursor-postgresql", marks=pytest.mark.long),
        pytest.param([], "postgresql", id="numbered-postgresql", marks=pytest.mark.long),
    ],
)
"""How the simulator pages, and where it is stored. GitHub pages by cursor; `tests/ingest/sync` runs on both engines."""
API = "https://api.github.test"
TOKEN = "ghs_notARealToken0123456789"
START = datetime(2025, 1, 1, tzinfo=UTC)


def at(seconds: int) -> str:
    return (START + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class FakeClock:
    time: float = 1_750_000_000.0
    slept: list[float] = field(default_factory=list)

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


@dataclass
class FakeGitHub:
    """One repository that lists its rows as GitHub does; `before` may change them ahead of each request."""

    cursor: bool = False
    issues: dict[int, dict[str, Any]] = field(default_factory=dict)
    comments: dict[int, dict[str, Any]] = field(default_factory=dict)
    releases: list[dict[str, Any]] = field(default_factory=list)
    timeline: list[dict[str, Any]] = field(default_factory=list)
    moved: dict[int, str] = field(default_factory=dict)
    elsewhere: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[httpx.Request] = field(default_factory=list)
    before: Callable[[FakeGitHub, int], httpx.Response | None] | None = None

    def put_issue(self, number: int, updated: int, **more: Any) -> None:
        self.issues[number] = {
            "number": number,
            "id": 1000 + number,
            "title": f"Fault {number}",
            "body": "It fails.",
            "state": "open",
            "labels": [],
            "user": {"login": "ada"},
            "comments": 0,
            "html_url": f"https://github.com/{REPO}/issues/{number}",
            "created_at": at(0),
            "updated_at": at(updated),
            "closed_at": None,
            **more,
        }

    def put_comment(self, key: int, number: int, updated: int, **more: Any) -> None:
        self.comments[key] = {
            "id": key,
            "issue_url": f"{API}/repos/{REPO}/issues/{number}",
            "body": f"Remark {key}",
            "user": {"login": "bob"},
            "author_association": "MEMBER",
            "created_at": at(0),
            "updated_at": at(updated),
            **more,
        }

    def put_release(self, tag: str, body: str = "", published: int = 0) -> None:
        self.releases.insert(0, {"tag_name": tag, "body": body, "published_at": at(published)})

    def handle(self, request: httpx.Request) -> httpx.Response:  # noqa: PLR0911
        self.asked.append(request)
        if self.before and (answer := self.before(self, len(self.asked))) is not None:
            return answer
        if request.url.path in self.elsewhere:
            return httpx.Response(200, json=self.elsewhere[request.url.path])
        path = request.url.path.removeprefix(f"/repos/{REPO}")
        if not path:
            return httpx.Response(200, json={"full_name": REPO})
        if path == "/issues":
            return self._listed(request, self.issues, keyed=self.cursor)
        if path == "/issues/comments":
            return self._listed(request, self.comments, keyed=False)
        if path == "/releases":
            return self._page(request, self.releases)
        if path.startswith("/issues/comments/"):
            row = self.comments.get(int(path.split("/")[3]))
            return httpx.Response(200, json=row) if row else httpx.Response(404, json={})
        if path.startswith("/issues/") and path.count("/") == 2:
            number = int(path.split("/")[2])
            if number in self.moved:
                return httpx.Response(301, headers={"location": f"{API}{self.moved[number]}"})
            row = self.issues.get(number)
            return httpx.Response(200, json=row) if row else httpx.Response(410, json={})
        if path.endswith("/timeline"):
            return self._page(request, self.timeline)
        if path.endswith("/comments"):
            number = path.split("/")[2]
            rows = [row for row in self.comments.values() if row["issue_url"].endswith(f"/{number}")]
            return self._page(request, rows)
        return httpx.Response(404, json={"message": "Not Found"})

    def _listed(
        self, request: httpx.Request, table: dict[int, dict[str, Any]], *, keyed: bool
    ) -> httpx.Response:
        params = request.url.params
        assert (params["sort"], params["direction"]) == ("updated", "asc")
        since = params.get("since", "")
        rows = sorted(
            (row for row in table.values() if row["updated_at"] >= since),
            key=lambda row: (row["updated_at"], row["id"]),
        )
        return self._keyed(request, rows) if keyed else self._page(request, rows)

    def _keyed(self, request: httpx.Request, rows: list[dict[str, Any]]) -> httpx.Response:
        params = request.url.params
        size, after = int(params["per_page"]), params.get("after")
        if after:
            time, key = after.split("~")
            rows = [row for row in rows if (row["updated_at"], row["id"]) > (time, int(key))]
        link = None
        if len(rows) > size:
            last = rows[size - 1]
            link = request.url.copy_merge_params({"page": "2", "after": f"{last['updated_at']}~{last['id']}"})
        return self._answer(request, rows[:size], link)

    def _page(self, request: httpx.Request, rows: list[dict[str, Any]]) -> httpx.Response:
        params = request.url.params
        size, page = int(params["per_page"]), int(params.get("page", "1"))
        more = page * size < len(rows)
        link = request.url.copy_merge_params({"page": str(page + 1)}) if more else None
        return self._answer(request, rows[(page - 1) * size : page * size], link)

    def _answer(self, request: httpx.Request, rows: Any, link: httpx.URL | None) -> httpx.Response:
        body = json.dumps(rows).encode()
        headers = {"etag": f'W/"{hashlib.sha256(body).hexdigest()}"', "x-ratelimit-remaining": "4321"}
        if request.headers.get("if-none-match") == headers["etag"]:
            return httpx.Response(304, headers=headers)
        if link is not None:
            headers["link"] = f'<{link}>; rel="next", <{link}>; rel="last"'
        return httpx.Response(200, content=body, headers=headers)

    def client(self, **more: Any) -> GitHubClient:
        return GitHubClient(API, TOKEN, transport=httpx.MockTransport(self.handle), clock=FakeClock(), **more)


@dataclass
class FakeDerive:
    """Notes what it was asked to read and leaves the mark that it was."""

    calls: list[list[int]] = field(default_factory=list)

    def __call__(
        self, session: Any, repo_id: int, repo: str, numbers: Sequence[int], *_: Any
    ) -> DeriveResult:
        self.calls.append(list(numbers))
        readings = [Reading(number, None) for number in numbers]
        save_readings(session, repo_id, readings, rules_version=RULES_VERSION)
        return DeriveResult(len(readings))

    @property
    def numbers(self) -> list[int]:
        return [number for call in self.calls for number in call]


@pytest.fixture(autouse=True)
def _no_backoff() -> Iterator[None]:
    stamina.set_testing(True, attempts=9, cap=True)
    yield
    stamina.set_testing(False)


@pytest.fixture(params=[pytest.param("numbered", marks=pytest.mark.long), "cursor"])
def github(request: pytest.FixtureRequest) -> FakeGitHub:
    return FakeGitHub(cursor=request.param == "cursor")


@pytest.fixture
def engine() -> str:
    """What `base` is kept in, where a test does not say otherwise."""
    return "sqlite"


@pytest.fixture
def base(request: pytest.FixtureRequest, engine: str) -> Store:
    """A migrated, empty archive on the engine that the test names."""
    opened: Store = request.getfixturevalue(f"{engine}_store")
    return opened


@pytest.fixture
def numbered_github() -> FakeGitHub:
    return FakeGitHub()


@pytest.fixture
def derive(monkeypatch: pytest.MonkeyPatch) -> FakeDerive:
    """Stands in for what reads the issues."""
    fake = FakeDerive()
    monkeypatch.setattr("app.knowledge.indexing.batches.derive_issues", fake)
    monkeypatch.setattr("app.knowledge.indexing.readers.READ_APART_FROM", 10**9)
    monkeypatch.setattr("app.knowledge.indexing.readers.read_sources", lambda sources: [None] * len(sources))
    return fake


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@dataclass
class Simulator:
    url: str
    process: subprocess.Popen[str]

    def get(self, path: str) -> Any:
        return httpx.get(f"{self.url}{path}", timeout=30, trust_env=False).json()

    def delete(self, path: str) -> None:
        httpx.delete(f"{self.url}{path}", timeout=30, trust_env=False)

    def post(self, path: str, body: Any) -> Any:
        return httpx.post(f"{self.url}{path}", json=body, timeout=30, trust_env=False).json()


def shared_folder() -> Path:
    given = os.environ.get("TRIAGE_SHARED")
    return Path(given) if given else Path(__file__).parents[2].parent / "shared"


def make_simulator_data(made: Path, issues: int) -> Path:
    """Fills a folder with what the simulator serves."""
    shared = shared_folder()
    if not (shared / "github-sim" / "make_data.py").exists():
        pytest.skip(f"the GitHub simulator is not in {shared} (set TRIAGE_SHARED)")
    subprocess.run(
        [sys.executable, str(shared / "github-sim" / "make_data.py"), str(made), "--issues", str(issues)],
        check=True,
        capture_output=True,
    )
    return made


@pytest.fixture(scope="session")
def simulator_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_simulator_data(tmp_path_factory.mktemp("simdata"), 700)


@pytest.fixture
def simulate(simulator_data: Path) -> Iterator[Callable[..., Simulator]]:
    """Starts the simulator with flags; returns it when it answers."""
    started: list[subprocess.Popen[str]] = []

    def start(*flags: str) -> Simulator:
        script = shared_folder() / "github-sim" / "github_sim.py"
        process = subprocess.Popen(
            [
                sys.executable,
                str(script),
                "--data",
                str(simulator_data),
                "--repo",
                REPO,
                "--port",
                "0",
                *flags,
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        ready = process.stdout.readline()
        return Simulator(ready.split()[2], process)

    yield start
    for process in started:
        process.terminate()
        process.wait(timeout=10)
        if process.stdout:
            process.stdout.close()
