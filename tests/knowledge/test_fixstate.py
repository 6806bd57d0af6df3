"""Whether an issue is fixed, and what that means for the caller's version."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.extract.facts import Facts, Fix
from app.knowledge.answers import FixView
from app.knowledge.fixstate import fix_states, seen_from
from app.store.records import CommentRecord, IssueRecord, ReleaseRecord
from app.store.session import Store
from tests.knowledge.conftest import Keep
from tests.samples import EARLY, LATE, REPO, a_pull, a_release, an_issue

OPEN = an_issue(1)
CLOSED = an_issue(1, state="closed", state_reason="completed")
MERGED = a_pull(7, body="Fixes #1", merged_at=EARLY)
RELEASE = a_release("v0.9.2", 7)
WAITING = a_pull(7, body="Fixes #1")
SAID = Fix(state="fixed", pr="#8", released_in="0.9.3", source="comment:5")

TABLE = [
    ("open, nothing known", OPEN, [], None, ("not_fixed", None, None)),
    ("closed, nothing known", CLOSED, [], None, ("unknown", None, None)),
    ("closed as not planned", an_issue(1, state="closed", state_reason="not_planned"), [], None, ("closed_unresolved", None, None)),
    ("closed as a duplicate", an_issue(1, state="closed", state_reason="duplicate"), [], None, ("closed_unresolved", None, None)),
    ("closed as stale", an_issue(1, state="closed", labels=("stale",)), [], None, ("closed_unresolved", None, None)),
    ("a pull request waits", OPEN, [WAITING], None, ("in_progress", "#7", None)),
    ("a pull request was given up", OPEN, [a_pull(7, body="Fixes #1", state="closed")], None, ("not_fixed", None, None)),
    ("merged, not released", CLOSED, [MERGED], None, ("merged_unreleased", "#7", None)),
    ("merged and released", CLOSED, [MERGED, RELEASE], None, ("fixed", "#7", "0.9.2")),
    ("merged and released, but open", OPEN, [MERGED, RELEASE], None, ("fixed", "#7", "0.9.2")),
    ("merged, in a prerelease only", CLOSED, [MERGED, a_release("v0.9.2rc1", 7, is_prerelease=True)], None, ("merged_unreleased", "#7", None)),
    ("merged, and in two releases", CLOSED, [MERGED, RELEASE, a_release("v0.9.1.post1", 7, published_at=EARLY - timedelta(1))], None, ("fixed", "#7", "0.9.1.post1")),
    ("two merged, one released", CLOSED, [MERGED, RELEASE, a_pull(9, body="Fixes #1", merged_at=LATE)], None, ("fixed", "#7", "0.9.2")),
    ("two merged, none released", CLOSED, [MERGED, a_pull(9, body="Fixes #1", merged_at=LATE)], None, ("merged_unreleased", "#9", None)),
    ("one given up, one waits", OPEN, [WAITING, a_pull(9, body="Fixes #1", state="closed")], None, ("in_progress", "#7", None)),
    ("a pull request of another issue", OPEN, [a_pull(7, body="Fixes #2", merged_at=EARLY), RELEASE], None, ("not_fixed", None, None)),
    ("an issue that speaks of fixing", OPEN, [an_issue(7, body="Fixes #1", state="closed")], None, ("not_fixed", None, None)),
    ("said to be fixed", CLOSED, [], SAID, ("fixed", "#8", "0.9.3")),
    ("said, and the pull request waits", OPEN, [a_pull(8)], SAID.model_copy(update={"state": "in_progress", "released_in": None}), ("in_progress", "#8", None)),
    ("said, and the pull request is merged", OPEN, [a_pull(8, merged_at=EARLY)], SAID.model_copy(update={"state": "in_progress", "released_in": None}), ("merged_unreleased", "#8", None)),
    ("said with its release, merged", OPEN, [a_pull(8, merged_at=EARLY)], SAID, ("fixed", "#8", "0.9.3")),
    ("said otherwise than the notes", OPEN, [a_pull(8, merged_at=EARLY), a_release("v0.9.2", 8)], SAID, ("fixed", "#8", "0.9.2")),
    ("said to be under way by nobody we know", OPEN, [], SAID.model_copy(update={"state": "in_progress"}), ("in_progress", "#8", "0.9.3")),
]  # fmt: skip


def state_of(store: Store, repo_id: int, issue: IssueRecord, said: Fix | None) -> FixView:
    facts = {issue.number: Facts(number=issue.number, fix=said)}
    with store.reading() as session:
        return fix_states(session, repo_id, REPO, [issue], facts)[issue.number]


@pytest.mark.parametrize(("issue", "known", "said", "wanted"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_state_of_a_fix(
    store: Store, keep: Keep, issue: IssueRecord, known: list[IssueRecord | CommentRecord | ReleaseRecord],
    said: Fix | None, wanted: tuple[str, str | None, str | None],
) -> None:  # fmt: skip
    view = state_of(store, keep(issue, *known), issue, said)

    assert (view.state, view.pr, view.released_in) == wanted
    assert view.reason.endswith(".")


def test_a_pull_request_of_another_repository_fixes_nothing_here(store: Store, keep: Keep) -> None:
    repo_id = keep(OPEN)
    keep(a_pull(7, body="Fixes vllm-project/vllm#1", merged_at=EARLY), repo="other/engine")

    assert state_of(store, repo_id, OPEN, None).state == "not_fixed"


def test_an_issue_without_facts_has_a_state(store: Store, keep: Keep) -> None:
    repo_id = keep(OPEN)
    with store.reading() as session:
        assert fix_states(session, repo_id, REPO, [OPEN], {})[1].state == "not_fixed"


@pytest.mark.parametrize(
    ("source", "reason"),
    [("card", "The starter card names it."), ("body", "The reporter's text names it."), ("comment:5", "A comment names it.")],
)
def test_who_says_it_is_told(store: Store, keep: Keep, source: str, reason: str) -> None:
    assert state_of(store, keep(CLOSED), CLOSED, SAID.model_copy(update={"source": source})).reason == reason


FIXED = FixView(state="fixed", pr="#7", released_in="0.9.2")


@pytest.mark.parametrize(
    ("fix", "version", "wanted"),
    [
        (FIXED, "0.9.1", "upgrade"),
        (FIXED, "0.8.5.post1", "upgrade"),
        (FIXED, "0.9.2", "already_included"),
        (FIXED, "0.9.2+cu128", "already_included"),
        (FIXED, "0.9.2.post1", "already_included"),
        (FIXED, "0.10.0", "already_included"),
        (FIXED, "0.10.0rc1.dev5+gabc", "already_included"),
        (FIXED, "0.9.2rc1", "unknown"),
        (FIXED, "0.9.2.dev12+g73f48ce55", "unknown"),
        (FIXED, "0.9.1rc2.dev9", "upgrade"),
        (FIXED, "main", "unknown"),
        (FIXED, "", "unknown"),
        (FIXED.model_copy(update={"released_in": None}), "0.9.1", "unknown"),
        (FIXED.model_copy(update={"released_in": "the next one"}), "0.9.1", "unknown"),
        (FixView(state="merged_unreleased", pr="#7"), "0.9.1", "not_fixed"),
        (FixView(state="in_progress", pr="#7"), "0.9.1", "not_fixed"),
        (FixView(state="not_fixed"), "0.9.1", "not_fixed"),
        (FixView(state="closed_unresolved"), "0.9.1", "not_fixed"),
        (FixView(state="unknown"), "0.9.1", "unknown"),
    ],
)
def test_a_fix_is_seen_from_a_version(fix: FixView, version: str, wanted: str) -> None:
    assert seen_from(fix, version).for_you == wanted


def test_without_a_version_nothing_is_said_of_it() -> None:
    assert seen_from(FIXED, None) == FIXED
