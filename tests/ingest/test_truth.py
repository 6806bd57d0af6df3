"""Against the GitHub simulator: the copy equals the truth, whatever fails or changes on the way, at what cost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from app.store.github.issues import find_comments, find_issue, find_issues, numbers_of
from app.store.github.sync_state import begin_run, last_runs
from app.store.schema import migrate
from app.store.session import Store, open_store
from ingest.github.client import GitHubClient
from ingest.one_issue import fetch_issue
from ingest.sync.run import SyncResult
from ingest.sync.sync import sync
from tests.ingest.conftest import MODES, REPO, shared_folder

REPO_ID = 1
RELEASES = 86

Copy = tuple[dict[int, Any], list[int]]


def truth_of(simulator: Any) -> Copy:
    truth = simulator.get("/_sim/truth")
    issues = {
        row["number"]: (row["title"], row["state"], sorted(row["labels"]), row["updated_at"])
        for row in truth["issues"]
    }
    return issues, sorted(row["id"] for row in truth["comments"])


def copy_of(store: Store) -> Copy:
    """What is stored and not gone; the comments of a gone issue went with it."""
    issues = {}
    with store.reading() as session:
        for row in find_issues(session, REPO_ID, numbers_of(session, REPO_ID, limit=100_000)):
            assert row.updated_at is not None
            if row.gone_at is None:
                stamp = row.updated_at.strftime("%Y-%m-%dT%H:%M:%SZ")
                issues[row.number] = (row.title, row.state, sorted(row.labels), stamp)
        comments = find_comments(session, REPO_ID, list(issues))
    return issues, sorted(comment.id for rows in comments.values() for comment in rows)


def run(store: Store, simulator: Any, derive: Any, **more: Any) -> SyncResult:
    with GitHubClient(simulator.url, "any") as client:
        return sync(store, client, REPO, **more)


def asked(simulator: Any) -> int:
    """Requests that the simulator has answered on the repository."""
    stats = simulator.get("/_sim/stats")
    return sum(count for path, count in stats["by_path"].items() if path.startswith("/repo"))


@MODES
@pytest.mark.parametrize(
    "faults",
    [
        pytest.param("502:first=1", marks=pytest.mark.long),
        pytest.param("truncate:every=4", marks=pytest.mark.long),
        pytest.param("cutjson:every=3", marks=pytest.mark.long),
        pytest.param("reset:every=4", marks=pytest.mark.long),
        pytest.param("resetmid:every=5", marks=pytest.mark.long),
        pytest.param("stall:every=4,delay=0.2,fraction=0.5", marks=pytest.mark.long),
        pytest.param("secondary:at=3,retry_after=1", marks=pytest.mark.long),
        pytest.param("primary:at=4", marks=pytest.mark.long),
        "touch:every=2;create:every=3",
    ],
)
def test_the_copy_equals_the_truth(
    base: Store, derive: Any, simulate: Callable[..., Any], mode: list[str], faults: str
) -> None:
    simulator = simulate(*mode, "--synth-comments", "--window", "2", "--faults", faults)
    for _ in range(2):
        result = run(base, simulator, derive)
        assert result.complete, result
        simulator.delete("/_sim/faults")
    assert copy_of(base) == truth_of(simulator)


@pytest.mark.long
@MODES
def test_a_primary_limit_of_five_seconds_is_sat_out(
    base: Store, derive: Any, simulate: Callable[..., Any], mode: list[str]
) -> None:
    simulator = simulate(*mode, "--synth-comments", "--window", "5", "--faults", "primary:every=9,count=3")
    assert run(base, simulator, derive).complete
    assert copy_of(base) == truth_of(simulator)


@MODES
@pytest.mark.long
def test_deletions_during_a_crawl_are_known_after_one_full_run(
    base: Store, derive: Any, simulate: Callable[..., Any], mode: list[str]
) -> None:
    simulator = simulate(*mode, "--synth-comments", "--faults", "delete:every=2;touch:every=3")
    assert run(base, simulator, derive).complete
    simulator.delete("/_sim/faults")
    some = simulator.get("/_sim/truth")["comments"][::90]
    for row in some:
        simulator.post("/_sim/delete", {"comment": row["id"]})
    assert run(base, simulator, derive, full=True).complete
    assert copy_of(base) == truth_of(simulator)
    with base.reading() as session:
        for number in simulator.get("/_sim/truth")["deleted"]:
            found = find_issue(session, REPO_ID, number)
            assert found is None or found.gone_reason == "deleted"
    assert run(base, simulator, derive, full=True).gone == 0


@pytest.mark.long
@MODES
def test_the_requests_stay_within_their_bounds(
    base: Store, derive: Any, simulate: Callable[..., Any], mode: list[str]
) -> None:
    simulator = simulate(*mode, "--synth-comments")
    run(base, simulator, derive)
    issues, comments = truth_of(simulator)
    most = 1.05 * (len(issues) + len(comments) + RELEASES) / 100 + 10
    first = asked(simulator)
    assert first <= most
    for _ in range(2):
        before = asked(simulator)
        run(base, simulator, derive)
        assert asked(simulator) - before <= 3
    before = asked(simulator)
    run(base, simulator, derive, full=True)
    assert asked(simulator) - before <= most
    changed = sorted(issues)[:230]
    simulator.post("/_sim/upsert", {"issue": [{"number": n, "title": f"Changed {n}"} for n in changed]})
    simulator.post("/_sim/upsert", {"comment": [{"issue_number": n, "body": "More"} for n in changed[:120]]})
    before = asked(simulator)
    result = run(base, simulator, derive)
    assert (result.issues, result.comments) == (230, 120)
    assert asked(simulator) - before <= 5 + ceil(230 / 100) + ceil(120 / 100)
    assert copy_of(base) == truth_of(simulator)


@pytest.mark.long
@MODES
def test_a_burst_with_one_update_time_is_walked_while_rows_move(
    base: Store, derive: Any, simulate: Callable[..., Any], mode: list[str]
) -> None:
    simulator = simulate(*mode, "--synth-comments")
    issues, comments = truth_of(simulator)
    stamp = "2027-01-01T00:00:00Z"
    burst = [{"number": n, "title": f"Burst {n}", "updated_at": stamp} for n in sorted(issues)[:350]]
    remarks = [{"id": key, "body": "Burst", "updated_at": stamp} for key in comments[:330]]
    simulator.post("/_sim/upsert", {"comment": remarks})
    simulator.post("/_sim/upsert", {"issue": burst})
    simulator.post("/_sim/faults", {"spec": "touch:every=1"})
    assert run(base, simulator, derive).complete
    simulator.delete("/_sim/faults")
    assert run(base, simulator, derive).complete
    assert copy_of(base) == truth_of(simulator)


@MODES
def test_a_renamed_repository_and_a_transferred_issue_are_followed(
    base: Store, derive: Any, simulate: Callable[..., Any], mode: list[str]
) -> None:
    simulator = simulate(*mode)
    run(base, simulator, derive)
    first, second, *_ = sorted(truth_of(simulator)[0])
    simulator.post("/_sim/transfer", {"issue": first, "to": "acme/other", "number": first})
    simulator.post("/_sim/transfer", {"issue": second, "to": "acme/other"})
    simulator.post("/_sim/rename", {"to": "acme/renamed"})
    result = run(base, simulator, derive, full=True)
    assert (result.complete, result.gone) == (True, 2)
    assert copy_of(base) == truth_of(simulator)
    with base.reading() as session:
        reasons = [found.gone_reason for found in find_issues(session, REPO_ID, [first, second])]
    assert reasons == ["transferred", "transferred"]
    with GitHubClient(simulator.url, "any") as client:
        assert fetch_issue(base, client, REPO, max(truth_of(simulator)[0]))
    with GitHubClient(simulator.url, "any") as client:
        assert not fetch_issue(base, client, REPO, first)


def test_a_token_that_is_not_taken_is_one_line(
    base: Store, derive: Any, simulate: Callable[..., Any]
) -> None:
    result = run(base, simulate("--token", "another"), derive)
    assert str(result.error) == "GitHub does not accept the token: check TRIAGE_GITHUB_TOKEN"
    assert result.requests == 1


@MODES
def test_a_link_to_another_server_is_refused_and_the_token_never_sent_there(
    base: Store, derive: Any, simulate: Callable[..., Any], mode: list[str]
) -> None:
    other = simulate()
    simulator = simulate(*mode, "--base-url", other.url, "--token", "only-mine")
    with GitHubClient(simulator.url, "only-mine") as client:
        result = sync(base, client, REPO)
    assert "leads away" in str(result.error)
    assert "only-mine" not in str(result.error)
    assert not other.get("/_sim/requests?limit=50")


def test_a_redirect_to_another_server_is_refused_and_the_token_never_sent_there(
    base: Store, derive: Any, simulate: Callable[..., Any]
) -> None:
    other = simulate()
    simulator = simulate("--base-url", other.url, "--token", "only-mine", "--alias", "acme/old")
    with GitHubClient(simulator.url, "only-mine") as client:
        result = sync(base, client, "acme/old")
    assert "leads away" in str(result.error)
    assert not other.get("/_sim/requests?limit=50")
    assert simulator.get("/_sim/requests?limit=50")[0]["status"] == 301


def test_a_run_that_was_killed_is_closed_at_the_next_start(
    base: Store, derive: Any, simulate: Callable[..., Any]
) -> None:
    simulator = simulate("--cursor")
    run(base, simulator, derive)
    with base.unit_of_work() as session:
        begin_run(session, REPO_ID)
    run(base, simulator, derive)
    with base.reading() as session:
        newest, killed, first = last_runs(session)
    assert (newest.outcome, killed.outcome, first.outcome) == ("complete", "killed", "complete")
    assert killed.ended_at is not None


_SYNC = """
import sys
from app.store.session import open_store
from ingest.github.client import GitHubClient
from ingest.sync.sync import sync
with GitHubClient(sys.argv[2], "any") as client:
    result = sync(open_store(sys.argv[1]), client, sys.argv[3])
sys.exit(0 if result.complete else str(result.error))
"""


@pytest.mark.parametrize(
    "empty_url", [pytest.param("sqlite", marks=pytest.mark.long), "postgresql"], indirect=True
)
def test_two_syncs_at_once_lose_no_row(empty_url: str, tmp_path: Path, simulate: Callable[..., Any]) -> None:
    data = tmp_path / "data"
    script = shared_folder() / "github-sim" / "make_data.py"
    subprocess.run([sys.executable, script, data, "--issues", "240"], check=True, capture_output=True)
    simulator = simulate("--cursor", "--synth-comments", "--faults", "touch:every=3", "--data", str(data))
    store = open_store(empty_url)
    migrate(store)
    command = [sys.executable, "-c", _SYNC, empty_url, simulator.url, REPO]
    place = Path(__file__).parents[2]
    both = [subprocess.Popen(command, cwd=place, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    found = [process.communicate(timeout=240)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], found
    simulator.delete("/_sim/faults")
    with GitHubClient(simulator.url, "any") as client:
        assert sync(store, client, REPO).complete
    assert copy_of(store) == truth_of(simulator)
    with store.reading() as session:
        assert {noted.outcome for noted in last_runs(session)} == {"complete"}
        terms, postings = (
            session.connection().execute(text(query)).scalar_one()
            for query in ("SELECT sum(df) FROM term", "SELECT count(*) FROM posting")
        )
    assert terms == postings, "each issue was counted once"
    store.close()
