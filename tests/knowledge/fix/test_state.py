"""Whether an issue is fixed, and what that means for the caller's version."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import event

from app.extract.facts import Facts, Fix
from app.knowledge.fix.shapes import FixView
from app.knowledge.fix.state import fix_states
from app.store.derived.readings import Reading, find_facts, save_readings
from app.store.github.releases import REVERT as REVERT_BY
from app.store.github.releases import TABLE as TABLE_OF
from app.store.github.releases import ContainmentAnswer, save_answers
from app.store.records import CommentRecord, IssueRecord, LinkRecord, ReleaseRecord
from app.store.session import Store
from tests.knowledge.conftest import Keep
from tests.samples import EARLY, LATE, REPO, a_comment, a_pull, a_release, an_issue

OPEN = an_issue(1)
CLOSED = an_issue(1, state="closed", state_reason="completed")
MERGED = a_pull(7, body="Fixes #1", merged_at=EARLY)
RELEASE = a_release("v0.9.2", 7)
WAITING = a_pull(7, body="Fixes #1")
SAID = Fix(state="fixed", pr="#8", released_in="0.9.3", source="comment:5")
UNDER_WAY = SAID.model_copy(update={"state": "in_progress", "released_in": None})
CARD = SAID.model_copy(update={"source": "card"})
REVERT = a_pull(9, title='Revert "Fix it (#7)"', body="Reverts vllm-project/vllm#7", merged_at=LATE)

TABLE = [
    ("open, nothing known", OPEN, [], None, ("not_fixed", None, None)),
    ("closed, nothing known", CLOSED, [], None, ("unknown", None, None)),
    (
        "closed as not planned",
        an_issue(1, state="closed", state_reason="not_planned"),
        [],
        None,
        ("closed_unresolved", None, None),
    ),
    (
        "closed as a duplicate",
        an_issue(1, state="closed", state_reason="duplicate"),
        [],
        None,
        ("closed_unresolved", None, None),
    ),
    (
        "closed as stale",
        an_issue(1, state="closed", labels=("stale",)),
        [],
        None,
        ("closed_unresolved", None, None),
    ),
    ("a pull request waits", OPEN, [WAITING], None, ("in_progress", "#7", None)),
    (
        "a pull request was given up",
        OPEN,
        [a_pull(7, body="Fixes #1", state="closed")],
        None,
        ("not_fixed", None, None),
    ),
    ("merged, not released", CLOSED, [MERGED], None, ("merged_unreleased", "#7", None)),
    ("merged and released", CLOSED, [MERGED, RELEASE], None, ("fixed", "#7", "0.9.2")),
    ("merged and released, but open", OPEN, [MERGED, RELEASE], None, ("fixed", "#7", "0.9.2")),
    (
        "merged and released, but open, and a later one waits",
        OPEN,
        [MERGED, RELEASE, a_pull(9, body="Fixes #1")],
        None,
        ("in_progress", "#9", None),
    ),
    (
        "merged and released, closed, and a later one waits",
        CLOSED,
        [MERGED, RELEASE, a_pull(9, body="Fixes #1")],
        None,
        ("fixed", "#7", "0.9.2"),
    ),
    (
        "merged, in a prerelease only",
        CLOSED,
        [MERGED, a_release("v0.9.2rc1", 7, is_prerelease=True)],
        None,
        ("merged_unreleased", "#7", None),
    ),
    (
        "merged, and in two releases",
        CLOSED,
        [MERGED, RELEASE, a_release("v0.9.1.post1", 7, published_at=EARLY - timedelta(1))],
        None,
        ("fixed", "#7", "0.9.1.post1"),
    ),
    (
        "two merged, one released",
        CLOSED,
        [MERGED, RELEASE, a_pull(9, body="Fixes #1", merged_at=LATE)],
        None,
        ("fixed", "#7", "0.9.2"),
    ),
    (
        "two merged, none released",
        CLOSED,
        [MERGED, a_pull(9, body="Fixes #1", merged_at=LATE)],
        None,
        ("merged_unreleased", "#9", None),
    ),
    (
        "one given up, one waits",
        OPEN,
        [WAITING, a_pull(9, body="Fixes #1", state="closed")],
        None,
        ("in_progress", "#7", None),
    ),
    (
        "a pull request of another issue",
        OPEN,
        [a_pull(7, body="Fixes #2", merged_at=EARLY), RELEASE],
        None,
        ("not_fixed", None, None),
    ),
    (
        "an issue that speaks of fixing",
        OPEN,
        [an_issue(7, body="Fixes #1", state="closed")],
        None,
        ("not_fixed", None, None),
    ),
    ("said to be fixed by nobody we know", CLOSED, [], SAID, ("unknown", "#8", None)),
    ("a card says it is fixed", CLOSED, [], CARD, ("fixed", "#8", "0.9.3")),
    ("said, and the pull request waits", OPEN, [a_pull(8)], UNDER_WAY, ("in_progress", "#8", None)),
    (
        "said, and the pull request is merged",
        OPEN,
        [a_pull(8, merged_at=EARLY)],
        UNDER_WAY,
        ("merged_unreleased", "#8", None),
    ),
    (
        "said with its release by nobody we know, merged",
        OPEN,
        [a_pull(8, merged_at=EARLY)],
        SAID,
        ("merged_unreleased", "#8", None),
    ),
    ("a card says its release, merged", OPEN, [a_pull(8, merged_at=EARLY)], CARD, ("fixed", "#8", "0.9.3")),
    ("an issue is named for a pull request", OPEN, [an_issue(8)], CARD, ("not_fixed", None, None)),
    (
        "named by the notes, not stored itself",
        CLOSED,
        [a_release("v0.9.2", 8)],
        UNDER_WAY,
        ("fixed", "#8", "0.9.2"),
    ),
    ("reverted", CLOSED, [MERGED, RELEASE, REVERT], None, ("not_fixed", None, None)),
    (
        "a revert waits",
        CLOSED,
        [MERGED, RELEASE, a_pull(9, title='Revert "Fix it (#7)"')],
        None,
        ("fixed", "#7", "0.9.2"),
    ),
    (
        "reverted and re-landed",
        CLOSED,
        [
            MERGED,
            RELEASE,
            REVERT,
            a_pull(10, title='Reland "Fix it (#7)"', merged_at=LATE + timedelta(1)),
            a_release("v0.10.0", 10, published_at=LATE + timedelta(9)),
        ],
        None,
        ("fixed", "#10", "0.10.0"),
    ),
    (
        "said otherwise than the notes",
        OPEN,
        [a_pull(8, merged_at=EARLY), a_release("v0.9.2", 8)],
        SAID,
        ("fixed", "#8", "0.9.2"),
    ),
    ("said to be under way by nobody we know", OPEN, [], UNDER_WAY, ("in_progress", "#8", None)),
]


def state_of(store: Store, repo_id: int, issue: IssueRecord, said: Fix | None) -> FixView:
    facts = {issue.number: Facts(number=issue.number, fix=said)}
    with store.reading() as session:
        return fix_states(session, repo_id, REPO, [issue], facts)[issue.number]


@pytest.mark.parametrize(
    ("issue", "known", "said", "wanted"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_the_state_of_a_fix(
    store: Store,
    keep: Keep,
    issue: IssueRecord,
    known: list[IssueRecord | CommentRecord | ReleaseRecord],
    said: Fix | None,
    wanted: tuple[str, str | None, str | None],
) -> None:
    view = state_of(store, keep(issue, *known), issue, said)

    assert (view.state, view.pr, view.released_in) == wanted
    assert view.reason.endswith(".")


def test_a_fix_merged_in_another_repository_is_released_nowhere_here(store: Store, keep: Keep) -> None:
    repo_id = keep(OPEN)
    keep(a_pull(7, body="Fixes vllm-project/vllm#1", merged_at=EARLY), repo="other/engine")
    view = state_of(store, repo_id, OPEN, None)

    assert (view.state, view.pr, view.released_in) == ("merged_unreleased", "other/engine#7", None)


def test_an_issue_without_facts_has_a_state(store: Store, keep: Keep) -> None:
    repo_id = keep(OPEN)
    with store.reading() as session:
        assert fix_states(session, repo_id, REPO, [OPEN], {})[1].state == "not_fixed"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("card", "The starter card names #8."),
        ("body", "The reporter's text names #8. That it is merged is not known."),
        ("comment:5", "A comment names #8. That it is merged is not known."),
    ],
)
def test_who_says_it_is_told(store: Store, keep: Keep, source: str, reason: str) -> None:
    assert state_of(store, keep(CLOSED), CLOSED, SAID.model_copy(update={"source": source})).reason == reason


WORDS = "Fixed by #31000, released in v0.9.3."


@pytest.mark.parametrize(
    ("association", "state", "reason"),
    [
        ("MEMBER", "fixed", f'A maintainer says: "{WORDS}".'),
        ("NONE", "unknown", f'A comment says: "{WORDS}". That it is merged is not known.'),
    ],
)
def test_only_a_maintainer_s_word_counts_alone_and_it_is_quoted(
    store: Store, keep: Keep, association: str, state: str, reason: str
) -> None:
    repo_id = keep(CLOSED, a_comment(5, 1, WORDS, author="ada", author_association=association))
    with store.reading() as session:
        view = fix_states(session, repo_id, REPO, [CLOSED], find_facts(session, repo_id, [1]))[1]

    assert (view.state, view.reason) == (state, reason)


def test_an_answer_of_github_s_tells_the_release(store: Store, keep: Keep) -> None:
    repo_id = keep(
        CLOSED,
        MERGED,
        a_release("v0.9.2", published_at=LATE),
        a_release("v0.9.3", published_at=LATE + timedelta(5)),
    )
    before = state_of(store, repo_id, CLOSED, None)
    with store.unit_of_work() as session:
        answers = [
            ContainmentAnswer(7, "v0.9.2", False, "c0ffee", LATE),
            ContainmentAnswer(7, "v0.9.3", True, "c0ffee", LATE),
        ]
        save_answers(session, repo_id, answers)
    after = state_of(store, repo_id, CLOSED, None)

    assert (before.state, before.earliest_possible, before.source) == (
        "merged_unreleased",
        "0.9.2",
        "estimated",
    )
    assert (after.state, after.released_in, after.source) == ("fixed", "0.9.3", "compare")


def tabled(store: Store, repo_id: int, *answers: ContainmentAnswer) -> None:
    with store.unit_of_work() as session:
        save_answers(session, repo_id, [ContainmentAnswer(7, "v0.9.2", True, None, LATE, TABLE_OF), *answers])


def test_the_release_table_tells_the_release_before_anything_is_asked(store: Store, keep: Keep) -> None:
    repo_id = keep(CLOSED, MERGED)
    tabled(store, repo_id)
    view = state_of(store, repo_id, CLOSED, None)

    assert (view.state, view.pr, view.released_in, view.source) == ("fixed", "#7", "0.9.2", "release table")
    assert view.reason == "#7 is merged and first in 0.9.2 by the release table of 2026-04-09."


def test_what_the_sync_learns_of_an_earlier_release_goes_before_the_table(store: Store, keep: Keep) -> None:
    repo_id = keep(CLOSED, MERGED, a_release("v0.9.1.post1", 7))
    tabled(store, repo_id)
    view = state_of(store, repo_id, CLOSED, None)

    assert (view.released_in, view.source, view.also_in) == ("0.9.1.post1", "release notes", ("0.9.2",))


def test_a_pull_request_of_the_table_is_merged_though_it_is_not_stored(store: Store, keep: Keep) -> None:
    repo_id = keep(OPEN)
    tabled(store, repo_id)
    view = state_of(store, repo_id, OPEN, CARD.model_copy(update={"pr": "#7", "released_in": None}))

    assert (view.state, view.released_in) == ("fixed", "0.9.2")


@pytest.mark.parametrize(("again", "state"), [((), "not_fixed"), ((12,), "merged_unreleased")])
def test_a_revert_of_the_table_takes_the_fix_back(
    store: Store, keep: Keep, again: tuple[int, ...], state: str
) -> None:
    repo_id = keep(CLOSED, MERGED)
    reverts = [(7, 9, LATE), *((9, by, LATE + timedelta(1)) for by in again)]
    tabled(
        store, repo_id, *(ContainmentAnswer(n, f"#{by}", False, None, at, REVERT_BY) for n, by, at in reverts)
    )

    assert state_of(store, repo_id, CLOSED, None).state == state


def test_without_any_stored_release_no_version_is_said_to_lack_a_merged_fix(store: Store, keep: Keep) -> None:
    repo_id = keep(CLOSED, MERGED)
    with store.reading() as session:
        facts = {1: Facts(number=1)}
        view = fix_states(session, repo_id, REPO, [CLOSED], facts, vllm_version="0.12.0")[1]

    assert (view.state, view.for_you) == ("merged_unreleased", "unknown")


DUPLICATE = an_issue(1, state="closed", state_reason="duplicate")
FIXED_ORIGINAL = (an_issue(2, state="closed"), a_pull(7, body="Fixes #2", merged_at=EARLY), RELEASE)


def repeat(store: Store, repo_id: int, *pairs: tuple[int, int]) -> None:
    with store.unit_of_work() as session:
        readings = [Reading(a, None, links=(LinkRecord(REPO, b, "duplicate", "said"),)) for a, b in pairs]
        save_readings(session, repo_id, readings, rules_version="1")


def test_a_duplicate_has_the_fix_of_its_original(store: Store, keep: Keep) -> None:
    repo_id = keep(DUPLICATE, *FIXED_ORIGINAL)
    repeat(store, repo_id, (1, 2))
    view = state_of(store, repo_id, DUPLICATE, None)

    assert (view.state, view.pr, view.released_in) == ("fixed", "#7", "0.9.2")
    assert view.reason.startswith("A duplicate of #2: #7 is merged")


def test_a_duplicate_of_a_duplicate_has_the_fix_of_the_first(store: Store, keep: Keep) -> None:
    repo_id = keep(DUPLICATE, an_issue(3, state="closed", state_reason="duplicate"), *FIXED_ORIGINAL)
    repeat(store, repo_id, (1, 3), (3, 2))

    assert state_of(store, repo_id, DUPLICATE, None).released_in == "0.9.2"


def test_duplicates_in_a_circle_are_unresolved(store: Store, keep: Keep) -> None:
    repo_id = keep(DUPLICATE, an_issue(3, state="closed", state_reason="duplicate"))
    repeat(store, repo_id, (1, 3), (3, 1))

    assert state_of(store, repo_id, DUPLICATE, None).state == "closed_unresolved"


def test_a_duplicate_of_what_is_not_fixed_is_unresolved(store: Store, keep: Keep) -> None:
    repo_id = keep(DUPLICATE, an_issue(2))
    repeat(store, repo_id, (1, 2))

    assert state_of(store, repo_id, DUPLICATE, None).state == "closed_unresolved"


def test_an_open_issue_that_somebody_calls_a_duplicate_is_judged_by_itself(store: Store, keep: Keep) -> None:
    repo_id = keep(OPEN, *FIXED_ORIGINAL)
    repeat(store, repo_id, (1, 2))

    assert state_of(store, repo_id, OPEN, None).state == "not_fixed"


def test_the_state_is_seen_from_a_version(store: Store, keep: Keep) -> None:
    repo_id = keep(CLOSED, MERGED, RELEASE)
    with store.reading() as session:
        seen = [
            fix_states(session, repo_id, REPO, [CLOSED], {}, vllm_version=version)[1].for_you
            for version in (None, "0.9.1", "0.9.2")
        ]

    assert seen == [None, "upgrade", "already_included"]


def test_many_issues_cost_no_more_statements_than_one(store: Store, keep: Keep) -> None:
    issues = [an_issue(n, state="closed") for n in range(1, 21)]
    pulls = [a_pull(100 + n, body=f"Fixes #{n}", merged_at=EARLY) for n in range(1, 21)]
    repo_id = keep(*issues, *pulls, a_release("v0.9.2", *(100 + n for n in range(1, 10))))
    counts = []
    for some in (issues[:1], issues):
        asked: list[str] = []
        listener = lambda *args, asked=asked: asked.append(args[2])  # noqa: E731
        event.listen(store.engine, "before_cursor_execute", listener)
        with store.reading() as session:
            fix_states(session, repo_id, REPO, some, {})
        event.remove(store.engine, "before_cursor_execute", listener)
        counts.append(sum("SELECT" in statement for statement in asked))

    assert counts[1] <= counts[0] <= 5  # the first session also asks for the releases
