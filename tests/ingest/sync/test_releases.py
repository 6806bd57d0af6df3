"""Which release holds a fix: asked of GitHub once, within bounds, newest first, and kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from app.knowledge.fix.shapes import FixView
from app.knowledge.fix.state import fix_states
from app.store.derived.readings import find_facts
from app.store.github.issues import find_issues, numbers_of
from app.store.github.releases import find_history
from app.store.github.sync_state import last_runs
from app.store.session import Store
from ingest.github.client import GitHubClient
from ingest.sync import releases as containment
from ingest.sync.run import SyncResult
from ingest.sync.sync import sync
from tests.ingest.conftest import REPO, at

REPO_ID = 1
COMMIT = "73f48ce559b0455d3bbd8d1fc0e9b1ea3c4b1d2f"


def put_fix(github: Any, number: int, merged: int, *, fixes: int, commit: str | None = COMMIT) -> None:
    """An issue with the merged pull request that closes it, as the lists and GitHub's page of it tell."""
    github.put_issue(fixes, 10, state="closed", closed_at=at(merged), state_reason="completed")
    github.put_issue(
        number,
        merged,
        state="closed",
        closed_at=at(merged),
        body=f"Fixes #{fixes}",
        pull_request={"merged_at": at(merged)},
    )
    github.elsewhere[f"/repos/{REPO}/pulls/{number}"] = {
        "number": number,
        "merged_at": at(merged),
        "merge_commit_sha": commit,
    }


def put_answer(github: Any, tag: str, status: str, commit: str = COMMIT) -> None:
    github.elsewhere[f"/repos/{REPO}/compare/{tag}...{commit}"] = {"status": status, "commits": []}


def put_picks(github: Any, tag: str, *subjects: str, commit: str = COMMIT) -> None:
    """The commits of a release's branch that the merge commit lacks."""
    commits = [{"commit": {"message": subject}} for subject in subjects]
    github.elsewhere[f"/repos/{REPO}/compare/{commit}...{tag}"] = {
        "status": "diverged",
        "commits": commits,
        "total_commits": len(commits),
    }


def run(store: Store, github: Any, **more: Any) -> SyncResult:
    with github.client() as client:
        return sync(store, client, REPO, **more)


def questions(github: Any) -> list[str]:
    """What was asked beside the lists, in order."""
    paths = [request.url.path.removeprefix(f"/repos/{REPO}") for request in github.asked]
    return [path for path in paths if path.startswith(("/pulls/", "/compare/"))]


def fix_of(store: Store, number: int, version: str | None = None) -> FixView:
    with store.reading() as session:
        issues = find_issues(session, REPO_ID, [number])
        facts = find_facts(session, REPO_ID, [number])
        return fix_states(session, REPO_ID, REPO, issues, facts, vllm_version=version)[number]


@pytest.fixture
def github(numbered_github: Any) -> Any:
    """Releases 1.0.0, 1.0.1 and 1.1.0, none of which names a pull request; #7 was merged before 1.0.1."""
    for tag, published in (("v1.0.0", 100), ("v1.0.1", 300), ("v1.1.0", 500)):
        numbered_github.put_release(tag, "Bug fixes.", published)
    put_fix(numbered_github, 7, 200, fixes=1)
    return numbered_github


def test_the_release_that_holds_a_fix_is_found(store: Store, github: Any) -> None:
    put_answer(github, "v1.0.1", "diverged")
    put_picks(github, "v1.0.1", "Another fix (#8)", 'Revert "A fix (#7)" (#9)', "Repeat #7\n\nof (#7)")
    put_answer(github, "v1.1.0", "behind")
    result = run(store, github)
    fix = fix_of(store, 1, "1.0.1")

    assert result.complete
    assert questions(github) == [
        "/pulls/7",
        f"/compare/v1.0.1...{COMMIT}",
        f"/compare/{COMMIT}...v1.0.1",
        f"/compare/v1.1.0...{COMMIT}",
    ]
    assert (fix.state, fix.pr, fix.released_in, fix.source, fix.for_you) == (
        "fixed",
        "#7",
        "1.1.0",
        "compare",
        "upgrade",
    )
    assert fix.reason == "#7 is merged and found in 1.1.0 by GitHub's comparison."


@pytest.mark.parametrize("subject", ["A fix (#7)", "A fix (#7) (#12)\n\nSigned off", "A fix (#3) (#7) "])
def test_a_fix_picked_into_a_release_s_branch_is_in_that_release(
    store: Store, github: Any, subject: str
) -> None:
    put_answer(github, "v1.0.1", "diverged")
    put_picks(github, "v1.0.1", "Another fix (#8)", subject)
    run(store, github)

    assert fix_of(store, 1).released_in == "1.0.1"


def test_identical_is_held_and_ends_the_search(store: Store, github: Any) -> None:
    put_answer(github, "v1.0.1", "identical")
    run(store, github)

    assert questions(github) == ["/pulls/7", f"/compare/v1.0.1...{COMMIT}"]
    assert fix_of(store, 1).released_in == "1.0.1"


@pytest.mark.parametrize("status", ["behind", "ahead", "diverged", "odd", None])
def test_nothing_is_asked_twice(store: Store, github: Any, status: str | None) -> None:
    if status is not None:
        put_answer(github, "v1.0.1", status)
        put_answer(github, "v1.1.0", status)
    first = run(store, github)
    asked = questions(github)
    second = run(store, github)

    assert (first.complete, second.complete) == (True, True)
    assert questions(github) == asked
    assert second.requests == 3
    assert (fix_of(store, 1).state == "fixed") == (status == "behind")


def test_a_new_release_is_asked_for_by_itself(store: Store, github: Any) -> None:
    for tag in ("v1.0.1", "v1.1.0"):
        put_answer(github, tag, "ahead")
    run(store, github)
    put_answer(github, "v1.2.0", "behind")
    github.put_release("v1.2.0", "More.", 700)
    before = len(questions(github))
    run(store, github)

    assert questions(github)[before:] == [f"/compare/v1.2.0...{COMMIT}"]
    assert fix_of(store, 1).released_in == "1.2.0"


def test_a_fix_that_the_notes_name_is_not_asked_for(store: Store, github: Any) -> None:
    github.put_release("v1.2.0", "## What's Changed\n* A fix by @ada in #7\n", 700)
    run(store, github)

    assert questions(github) == []
    assert fix_of(store, 1).source == "release notes"


def test_a_fix_merged_after_every_release_is_not_asked_for(store: Store, github: Any) -> None:
    github.put_issue(7, 900, state="closed", body="Fixes #1", pull_request={"merged_at": at(900)})
    run(store, github)

    assert questions(github) == []
    assert fix_of(store, 1).state == "merged_unreleased"


def test_a_merge_whose_commit_is_gone_is_asked_for_once(store: Store, github: Any) -> None:
    put_fix(github, 7, 200, fixes=1, commit=None)
    run(store, github)
    run(store, github)
    fix = fix_of(store, 1)

    assert questions(github) == ["/pulls/7"]
    assert (fix.state, fix.earliest_possible, fix.source) == ("merged_unreleased", "1.0.1", "estimated")


def test_the_newest_fixes_come_first_and_a_run_stays_within_its_bound(
    store: Store, github: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(containment, "MOST_REQUESTS", 4)
    put_fix(github, 8, 250, fixes=2)
    put_fix(github, 9, 220, fixes=3)
    put_answer(github, "v1.0.1", "behind")
    run(store, github)
    first = [path for path in questions(github) if "pulls" in path]
    assert len(questions(github)) == 4
    run(store, github)

    assert (first, questions(github)[4:]) == (
        ["/pulls/8", "/pulls/9"],
        ["/pulls/7", f"/compare/v1.0.1...{COMMIT}"],
    )


def test_what_is_left_of_the_hour_is_not_touched(
    store: Store, github: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        containment, "LEFT_WITH_TOKEN", 4321
    )  # what every answer of this GitHub tells is left

    assert run(store, github).complete
    assert questions(github) == []


def test_a_refusal_ends_the_questions_and_not_the_run(store: Store, github: Any) -> None:
    github.before = lambda fake, _: (
        httpx.Response(403, json={}) if "/compare/" in fake.asked[-1].url.path else None
    )
    result = run(store, github)
    github.before = None
    put_answer(github, "v1.0.1", "behind")
    run(store, github)

    assert result.complete
    assert fix_of(store, 1).released_in == "1.0.1"


def test_a_stopped_run_keeps_what_was_answered(store: Store, github: Any) -> None:
    put_answer(github, "v1.0.1", "ahead")

    def stop(fake: Any, _: int) -> None:
        if "v1.1.0" in fake.asked[-1].url.path:
            raise KeyboardInterrupt

    github.before = stop
    with pytest.raises(KeyboardInterrupt):
        run(store, github)
    github.before = None
    put_answer(github, "v1.1.0", "behind")
    before = len(questions(github))
    run(store, github)

    assert questions(github)[before:] == [f"/compare/v1.1.0...{COMMIT}"]
    with store.reading() as session:
        assert last_runs(session, 1)[0].outcome == "complete"


def test_a_re_landing_is_asked_for(store: Store, github: Any) -> None:
    put_answer(github, "v1.0.1", "behind")
    github.put_issue(8, 210, title='Revert "Fix (#7)"', state="closed", pull_request={"merged_at": at(350)})
    put_fix(github, 9, 400, fixes=3, commit="c0ffee" * 6)
    github.put_issue(9, 400, title='Reland "Fix (#7)"', state="closed", pull_request={"merged_at": at(400)})
    put_answer(github, "v1.1.0", "behind", "c0ffee" * 6)
    run(store, github)
    fix = fix_of(store, 1)

    assert (fix.state, fix.pr, fix.released_in) == ("fixed", "#9", "1.1.0")


@pytest.mark.long
@pytest.mark.parametrize(("repo", "ground"), [("vllm-project/vllm", "release notes"), (REPO, "compare")])
def test_over_the_simulator_s_data_every_fixed_has_its_pull_request_and_release(
    sqlite_store: Store, simulate: Callable[..., Any], repo: str, ground: str
) -> None:
    simulator = simulate("--cursor", "--repo", repo)  # the notes name pull requests of vLLM's own repository
    with GitHubClient(simulator.url, "any") as client:
        assert sync(sqlite_store, client, repo).complete
    with sqlite_store.reading() as session:
        stored = {
            item.number: item
            for item in find_issues(session, REPO_ID, numbers_of(session, REPO_ID, limit=100_000))
        }
        issues = [item for item in stored.values() if not item.is_pull_request]
        facts = find_facts(session, REPO_ID, [item.number for item in issues])
        views = fix_states(session, REPO_ID, repo, issues, facts)
        fixed = [view for view in views.values() if view.state == "fixed"]
        pulls = {int((view.pr or "#0")[1:]) for view in fixed}
        history = find_history(session, REPO_ID, repo, pulls)
    tags = {item.tag for item in history.releases if not item.is_prerelease}

    assert ground in {view.source for view in fixed}
    for view in fixed:
        number = int((view.pr or "#0")[1:])
        known = history.pulls[number]
        holding = {*known.named_in, known.table_tag, *(tag for tag, holds in known.answers.items() if holds)}
        assert stored[number].is_pull_request
        assert stored[number].merged_at is not None
        assert f"v{view.released_in}" in tags & holding
