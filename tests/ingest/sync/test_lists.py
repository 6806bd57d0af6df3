"""Without a token: newest bugs first, in walks of their own, within an hour's budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from app.store.github.issues import find_comments, find_issue, numbers_of
from app.store.github.sync_state import find_cursor, last_runs, save_cursor
from app.store.session import Store
from ingest.github.client import GitHubClient
from ingest.sync.lists import KEPT_REQUESTS
from ingest.sync.run import SyncResult
from ingest.sync.sync import sync
from tests.ingest.conftest import MODES, REPO, FakeClock

REPO_ID = 1


def run(store: Store, simulator: Any, derive: Any, token: str | None = None, **more: Any) -> SyncResult:
    with GitHubClient(simulator.url, token, clock=FakeClock()) as client:
        return sync(store, client, REPO, **more)


def numbers(store: Store) -> set[int]:
    with store.reading() as session:
        return set(numbers_of(session, REPO_ID, limit=100_000))


def cursor(store: Store, stream: str) -> dict[str, Any]:
    with store.reading() as session:
        return find_cursor(session, REPO_ID, stream)


def next_hour(simulator: Any) -> None:
    simulator.post("/_sim/clock/advance", {"seconds": 3601})


def bugs_of(simulator: Any) -> list[int]:
    rows = simulator.get("/_sim/truth")["issues"]
    return [row["number"] for row in rows if "bug" in (label.lower() for label in row["labels"])]


@MODES
def test_an_hour_brings_the_newest_bugs_and_the_next_goes_on(
    base: Store, derive: Any, simulate: Callable[..., Any], mode: list[str]
) -> None:
    simulator = simulate(*mode, "--anon-limit", "8", "--synth-comments")
    bugs = bugs_of(simulator)
    assert len(bugs) > 300
    result = run(base, simulator, derive)
    assert result.requests == 8 - KEPT_REQUESTS
    assert "TRIAGE_GITHUB_TOKEN" in str(result.error)
    assert "used up until" in str(result.error)
    assert "UTC" in str(result.error)
    assert numbers(base) == set(bugs[-200:]), "releases cost one request, bugs the other two"
    assert result.read == 200
    assert cursor(base, "issues") == cursor(base, "comments") == {}
    with base.reading() as session:
        assert last_runs(session)[0].outcome == "partial"
    next_hour(simulator)
    run(base, simulator, derive)
    assert set(bugs[-300:]) <= numbers(base) <= set(bugs)


@pytest.mark.long
@MODES
def test_hours_without_a_token_bring_everything_and_a_token_still_walks_everything(
    base: Store, derive: Any, simulate: Callable[..., Any], mode: list[str]
) -> None:
    simulator = simulate(*mode, "--anon-limit", "25", "--synth-comments")
    result = run(base, simulator, derive)
    for hour in range(8):
        if result.complete:
            break
        if hour == 1:
            simulator.post(
                "/_sim/upsert", {"issue": {"number": bugs_of(simulator)[5], "title": "Changed between"}}
            )
        next_hour(simulator)
        result = run(base, simulator, derive)
    assert result.complete, result
    truth = simulator.get("/_sim/truth")
    assert numbers(base) == {row["number"] for row in truth["issues"]}
    with base.reading() as session:
        found = find_comments(session, REPO_ID, list(numbers(base)))
    assert {c.id for rows in found.values() for c in rows} == {row["id"] for row in truth["comments"]}
    next_hour(simulator)
    assert run(base, simulator, derive).requests <= 3
    assert cursor(base, "issues") == {}
    simulator.post("/_sim/limits", {"anon_limit": 25})
    result = run(base, simulator, derive, token="any")
    assert result.requests >= (len(truth["issues"]) + len(truth["comments"])) / 100
    assert cursor(base, "issues")["whole"] is True


def test_what_changes_between_two_hours_is_asked_first(
    base: Store, derive: Any, simulate: Callable[..., Any]
) -> None:
    simulator = simulate("--cursor", "--anon-limit", "9")
    run(base, simulator, derive)
    first = max(numbers(base))
    simulator.post(
        "/_sim/upsert",
        {
            "issue": [
                {"number": first, "title": "Another title", "labels": ["bug"]},
                {"title": "A new bug", "labels": ["bug"]},
            ]
        },
    )
    next_hour(simulator)
    result = run(base, simulator, derive)
    assert {first, first + 1} <= numbers(base) or max(numbers(base)) > first
    assert result.issues > 100
    with base.reading() as session:
        assert find_issue(session, REPO_ID, first).title == "Another title"  # type: ignore[union-attr]


def test_where_page_numbers_end_the_list_ends(base: Store, derive: Any, simulate: Callable[..., Any]) -> None:
    simulator = simulate("--anon-page-cap", "200", "--anon-limit", "40")
    result = run(base, simulator, derive)
    assert result.complete, result
    bugs = bugs_of(simulator)
    assert set(bugs[-200:]) <= numbers(base)
    assert cursor(base, "newest.bugs")["done"] is True


@pytest.mark.parametrize(
    "link", ["{api}/repositories/{id}/issues?after=bad", "https://evil.test/issues?after=x"]
)
def test_a_kept_link_that_github_no_longer_takes_begins_the_walk_anew(
    base: Store, derive: Any, simulate: Callable[..., Any], link: str
) -> None:
    simulator = simulate("--cursor", "--anon-limit", "9")
    run(base, simulator, derive)
    kept = cursor(base, "newest.bugs")
    link = link.format(api=simulator.url, id=kept["next"].split("/repositories/")[1].split("/")[0])
    with base.unit_of_work() as session:
        save_cursor(session, REPO_ID, "newest.bugs", {**kept, "next": link})
    next_hour(simulator)
    result = run(base, simulator, derive)
    assert "used up" in str(result.error)
    assert cursor(base, "newest.bugs")["next"] != link


@pytest.mark.long
def test_a_whole_copy_stays_fresh_without_a_token(
    base: Store, derive: Any, simulate: Callable[..., Any]
) -> None:
    simulator = simulate("--cursor", "--synth-comments")
    run(base, simulator, derive, token="any")
    simulator.post("/_sim/upsert", {"issue": {"title": "A new one"}})
    result = run(base, simulator, derive)
    assert result.complete
    assert (result.issues, result.requests) == (1, 3)


def test_a_limit_holds_without_a_token_too(base: Store, derive: Any, simulate: Callable[..., Any]) -> None:
    simulator = simulate("--cursor")
    result = run(base, simulator, derive, limit=30)
    assert result.limited
    assert set(bugs_of(simulator)[-30:]) <= numbers(base)
    assert len(numbers(base)) <= 60


def test_a_spent_budget_is_not_waited_for_without_a_token(
    base: Store, derive: Any, simulate: Callable[..., Any]
) -> None:
    simulator = simulate("--anon-limit", "1")
    with GitHubClient(simulator.url) as client:
        client.get_page(f"/repos/{REPO}/releases")
    clock = FakeClock()
    with GitHubClient(simulator.url, clock=clock) as client:
        result = sync(base, client, REPO, limit=5)
    assert clock.slept == []
    assert "TRIAGE_GITHUB_TOKEN" in str(result.error)
