"""What came into a repository in a span: its edges, what is left out, and how far a fix is followed."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from app.extract.facts import Evidence, Facts, Fix, Workaround
from app.store.derived.links import save_links
from app.store.derived.readings import Reading, save_readings
from app.store.derived.weeks import (
    Opened,
    OpenedDay,
    OpenedSpan,
    maybe_fixed_between,
    nearest_opened,
    opened_between,
    opened_days,
    opened_span,
    release_dates,
    remedies_between,
)
from app.store.github.issues import add_repository, save_comments, save_issues
from app.store.github.releases import ContainmentAnswer, save_answers, save_releases
from app.store.records import LinkRecord
from app.store.session import Store
from tests.samples import REPO, a_comment, a_pull, a_release, an_issue

START = datetime(2026, 4, 6, tzinfo=UTC)
END = START + timedelta(weeks=1)
INSIDE = START + timedelta(days=2)
BEFORE, AFTER = START - timedelta(seconds=1), END + timedelta(days=1)


@pytest.fixture
def repo_id(store: Store) -> int:
    with store.unit_of_work() as session:
        return add_repository(session, REPO)


def failing(number: int, *evidence: Evidence, **facts: object) -> Reading:
    found = {"is_failure": True, "failure_kind": "crash", "evidence": evidence, **facts}
    return Reading(number, Facts(number=number, **found))  # type: ignore[arg-type]


def saying(field: str, value: str, source: str = "body") -> Evidence:
    return Evidence(
        field=field, value=value, quote="q", source=source, start=0, end=1, rule="t", confidence=1
    )


def link(number: int, target: int, kind: str) -> tuple[int, LinkRecord]:
    return number, LinkRecord(REPO, target, kind, "said")


def put_links(store: Store, repo_id: int, *links: tuple[int, LinkRecord]) -> None:
    with store.unit_of_work() as session:
        for number, record in links:
            save_links(session, repo_id, number, [record], kind=record.kind)


def test_a_span_holds_its_first_moment_and_not_its_end(store: Store, repo_id: int) -> None:
    with store.unit_of_work() as session:
        save_issues(
            session,
            repo_id,
            [
                an_issue(1, created_at=START),
                an_issue(2, created_at=END),
                an_issue(3, created_at=BEFORE),
                an_issue(4, created_at=END - timedelta(microseconds=1), state="closed"),
                an_issue(5, created_at=None),
            ],
        )
    with store.reading() as session:
        found = opened_between(session, repo_id, START, END)

    assert [one.number for one in found] == [1, 4]


def test_pull_requests_and_what_github_has_no_more_were_not_opened(store: Store, repo_id: int) -> None:
    with store.unit_of_work() as session:
        save_issues(
            session,
            repo_id,
            [
                an_issue(1, created_at=INSIDE),
                a_pull(2, created_at=INSIDE),
                an_issue(3, created_at=INSIDE, gone_at=AFTER, gone_reason="deleted"),
            ],
        )
        save_readings(session, repo_id, [failing(1)], rules_version="t")
    with store.reading() as session:
        assert opened_between(session, repo_id, START, END) == [Opened(1, INSIDE, "crash", None)]
        assert opened_between(session, repo_id + 1, START, END) == []


def test_what_was_not_read_reports_no_failure(store: Store, repo_id: int) -> None:
    with store.unit_of_work() as session:
        save_issues(session, repo_id, [an_issue(n, created_at=INSIDE) for n in (1, 2, 3)])
        readings = [failing(1), Reading(2, Facts(number=2)), Reading(3, None, fault="ValueError")]
        save_readings(session, repo_id, readings, rules_version="t")
    with store.reading() as session:
        assert [one.is_failure for one in opened_between(session, repo_id, START, END)] == [
            True,
            False,
            False,
        ]


def test_days_are_counted_in_utc_with_their_failures(store: Store, repo_id: int) -> None:
    night = datetime(2026, 11, 9, 23, 30, tzinfo=UTC)
    with store.unit_of_work() as session:
        times = (night, night + timedelta(hours=1), night + timedelta(hours=2), None)
        save_issues(session, repo_id, [an_issue(n, created_at=at) for n, at in enumerate(times, 1)])
        save_readings(session, repo_id, [failing(1), failing(3)], rules_version="t")
    with store.reading() as session:
        assert opened_days(session, repo_id) == [
            OpenedDay(date(2026, 11, 9), 1, 1),
            OpenedDay(date(2026, 11, 10), 2, 1),
        ]


def test_the_ends_of_the_data_and_the_nearest_weeks(store: Store, repo_id: int) -> None:
    with store.reading() as session:
        assert opened_span(session, repo_id) == OpenedSpan(None, None, 0)
        assert nearest_opened(session, repo_id, START, before=True) is None
    with store.unit_of_work() as session:
        issues = [an_issue(1, created_at=BEFORE), an_issue(2, created_at=AFTER), an_issue(3, created_at=None)]
        save_issues(session, repo_id, [*issues, an_issue(4, created_at=None)])
    with store.reading() as session:
        assert opened_span(session, repo_id) == OpenedSpan(BEFORE, AFTER, 2)
        assert nearest_opened(session, repo_id, START, before=True) == BEFORE
        assert nearest_opened(session, repo_id, END, before=False) == AFTER
        assert nearest_opened(session, repo_id, BEFORE, before=True) is None


def test_releases_with_a_date_in_the_order_of_their_dates(store: Store, repo_id: int) -> None:
    with store.unit_of_work() as session:
        save_releases(
            session,
            repo_id,
            [
                a_release("v0.9.1", published_at=INSIDE),
                a_release("v0.9.1rc1", published_at=START, is_prerelease=True),
                a_release("v0.9.2", published_at=END),
                a_release("v0.9.3", published_at=None),
            ],
        )
    with store.reading() as session:
        found = [(one.tag, one.is_prerelease) for one in release_dates(session, repo_id)]
        assert found == [("v0.9.1rc1", True), ("v0.9.1", False), ("v0.9.2", False)]


@pytest.fixture
def with_fixes(store: Store, repo_id: int) -> int:
    """Issues 1 to 9, each with its own way to a fix."""
    with store.unit_of_work() as session:
        save_issues(session, repo_id, [an_issue(n, created_at=BEFORE) for n in range(1, 10)])
        merged = {11: INSIDE, 12: BEFORE, 13: BEFORE, 14: AFTER, 15: INSIDE, 16: BEFORE, 17: INSIDE}
        save_issues(session, repo_id, [a_pull(n, merged_at=at) for n, at in merged.items()])
        save_releases(
            session,
            repo_id,
            [a_release("v0.9.1", 12, published_at=INSIDE), a_release("v0.9.0", 16, published_at=BEFORE)],
        )
        save_answers(
            session,
            repo_id,
            [ContainmentAnswer(13, "v0.9.1", contained=True, commit_sha=None, asked_at=AFTER)],
        )
        readings = [
            failing(5, saying("fix", "#17"), fix=Fix(state="fixed", pr="#17")),
            failing(6, saying("fix", "0.9.1"), fix=Fix(state="fixed", released_in="0.9.1")),
        ]
        save_readings(session, repo_id, readings, rules_version="t")
    put_links(
        store,
        repo_id,
        link(11, 1, "fixes"),
        link(12, 2, "fixes"),
        link(3, 13, "fixed_by"),
        link(14, 4, "fixes"),
        link(16, 7, "fixes"),
        link(15, 16, "reverts"),
        link(17, 8, "mentions"),
    )
    return repo_id


def test_a_fix_of_a_span_is_merged_or_released_in_it_or_taken_back_in_it(
    store: Store, with_fixes: int
) -> None:
    with store.reading() as session:
        found = maybe_fixed_between(session, with_fixes, REPO, START, END)

    # merged 1, in the notes 2, found by comparison 3, reported by pull request 5, reported by release 6, reverted 7
    assert found == [1, 2, 3, 5, 6, 7]


def test_nothing_is_fixed_where_nothing_was_merged_or_released(store: Store, with_fixes: int) -> None:
    with store.reading() as session:
        late = END + timedelta(weeks=3)
        assert maybe_fixed_between(session, with_fixes, REPO, late, late + timedelta(weeks=1)) == []


def test_remedies_are_told_by_the_issues_of_the_span_and_by_its_comments(store: Store, repo_id: int) -> None:
    works = Workaround(action="--enforce-eager", kind="flag", outcome="works")
    with store.unit_of_work() as session:
        save_issues(session, repo_id, [an_issue(1, created_at=INSIDE), an_issue(2, created_at=BEFORE)])
        save_comments(
            session,
            repo_id,
            [
                a_comment(70, 2, "It helps.", created_at=INSIDE),
                a_comment(71, 2, "It helps.", created_at=BEFORE),
                a_comment(72, 1, "It helps.", created_at=AFTER),
            ],
        )
        readings = [
            failing(
                1, saying("workarounds", "a"), saying("workarounds", "b", "comment:72"), workarounds=(works,)
            ),
            failing(
                2,
                saying("workarounds", "c"),
                saying("workarounds", "d", "comment:70"),
                saying("workarounds", "e", "comment:71"),
                saying("workarounds", "f", "comment:#3"),
                workarounds=(works,),
            ),
        ]
        save_readings(session, repo_id, readings, rules_version="t")
    with store.reading() as session:
        found = remedies_between(session, repo_id, START, END)

    assert found == [(1, "body", INSIDE), (2, "comment:70", INSIDE)]
