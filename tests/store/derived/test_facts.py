"""Which issues a list shows, by what is told of them, on each engine."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy.orm import Session

from app.extract.facts import ErrorFact, Evidence, Facts, Workaround
from app.store.derived.facts import (
    Numbers,
    find_estimated_dates,
    find_titles,
    numbers_by_reading,
    numbers_by_state,
    numbers_by_value,
    numbers_labelled,
    numbers_since,
)
from app.store.derived.readings import Reading, save_readings
from app.store.github.issues import add_repository, save_issues
from app.store.records import IssueRecord
from app.store.session import Store
from tests.samples import EARLY, LATE, REPO, a_pull, an_issue


def keep(store: Store, *issues: IssueRecord, repo: str = REPO, **facts: Any) -> int:
    with store.unit_of_work() as session:
        repo_id = add_repository(session, repo)
        save_issues(session, repo_id, issues)
        readings = [Reading(issue.number, Facts(number=issue.number, **facts)) for issue in issues]
        save_readings(session, repo_id, readings, rules_version="r")
    return repo_id


FIELDS = ("gpus", "models")


def readings(session: Session, repo_id: int) -> list[Any]:
    """Kind, type of error, whether there is a remedy, and the issues."""
    return sorted(
        (group.failure_kind or "", group.error_type or "", group.has_remedy, sorted(group.numbers.tolist()))
        for group in numbers_by_reading(session, repo_id)
    )


def evidence(field: str, value: str) -> Evidence:
    return Evidence(
        field=field, value=value, quote=value, source="body", start=0, end=1, rule="r", confidence=1
    )


def plain(groups: Mapping[str, Numbers]) -> dict[str, list[int]]:
    return {value: sorted(numbers.tolist()) for value, numbers in groups.items()}


def test_pull_requests_gone_issues_and_other_repositories_are_not_listed(store: Store) -> None:
    one = keep(store, an_issue(1), a_pull(2), an_issue(3, gone_at=LATE))
    other = keep(store, an_issue(9), repo="other/thing")

    with store.reading() as session:
        assert plain(numbers_by_state(session, one)) == {"open": [1]}
        assert plain(numbers_by_state(session, other)) == {"open": [9]}


def test_issues_are_listed_with_their_state_and_from_a_time_on(store: Store) -> None:
    repo = keep(
        store, an_issue(1, state="closed"), an_issue(2, created_at=LATE), an_issue(3, created_at=None)
    )

    with store.reading() as session:
        assert plain(numbers_by_state(session, repo)) == {"closed": [1], "open": [2, 3]}
        assert numbers_since(session, repo, "created_at", LATE).tolist() == [2]
        assert sorted(numbers_since(session, repo, "created_at", EARLY).tolist()) == [1, 2]
        assert numbers_since(session, repo, "updated_at", LATE + timedelta(days=1)).tolist() == []


@pytest.mark.parametrize("label", ["Große Last", "große LAST"])
def test_labels_are_found_whatever_their_case(store: Store, label: str) -> None:
    repo = keep(store, an_issue(1, labels=("bug", "Große Last")), an_issue(2, labels=("Große",)), an_issue(3))

    with store.reading() as session:
        assert numbers_labelled(session, repo, label).tolist() == [1]
        assert numbers_labelled(session, repo, "none").tolist() == []


def test_values_are_told_in_lower_case_with_their_issue(store: Store) -> None:
    repo = keep(
        store,
        an_issue(1),
        gpus=("H100",),
        evidence=2 * (evidence("gpus", "H100"), evidence("models", "M-7B")),
    )
    keep(store, an_issue(1), repo="other/thing", evidence=(evidence("gpus", "A100"),))

    with store.reading() as session:
        found = [(*key, numbers.tolist()) for *key, numbers in numbers_by_value(session, repo, FIELDS)]
        assert found == [("gpus", "h100", [1]), ("models", "m-7b", [1])]


def test_kind_error_type_and_remedy_stand_beside_the_facts(store: Store) -> None:
    works, fails = (Workaround(action="x", kind="flag", outcome=outcome) for outcome in ("works", "fails"))
    repo = keep(
        store,
        an_issue(1),
        failure_kind="oom",
        error=ErrorFact(type="E" * 200, message="m"),
        workarounds=(works,),
    )
    keep(store, an_issue(2), failure_kind="hang", workarounds=(fails,))
    with store.unit_of_work() as session:
        save_issues(session, repo, [an_issue(3)])
        save_readings(session, repo, [Reading(3, None, fault="KeyError")], rules_version="r")

    with store.reading() as session:
        assert readings(session, repo) == [
            ("", "", False, [3]),
            ("hang", "", False, [2]),
            ("oom", "E" * 120, True, [1]),
        ]


def test_estimated_dates_are_known_from_the_file_s_own_word(store: Store) -> None:
    repo = keep(
        store,
        an_issue(1, raw={"x_dates_estimated": True}),
        an_issue(2, raw={"x_dates_estimated": False}),
        an_issue(3),
    )

    with store.reading() as session:
        assert find_estimated_dates(session, repo, [1, 2, 3]) == {1}
        assert find_estimated_dates(session, repo, []) == set()


def test_the_titles_of_issues(store: Store) -> None:
    repo = keep(
        store,
        an_issue(1, title="one"),
        an_issue(2, created_at=LATE),
        a_pull(3, created_at=datetime(2030, 1, 1, tzinfo=UTC)),
    )

    with store.reading() as session:
        assert find_titles(session, repo, [1, 77]) == {1: "one"}
