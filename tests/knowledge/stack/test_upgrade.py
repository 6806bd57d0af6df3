"""What an upgrade fixes, breaks and leaves open: against the facts as SQL counts them, and for a stack."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy.orm import Session

from app.errors import InputError, UnknownVersionError
from app.extract.facts import Evidence, Facts, Regression
from app.extract.versions import is_before, ordered
from app.knowledge.issue.browse import IssueQuery, browse
from app.knowledge.stack.stack import parse_stack
from app.knowledge.stack.upgrade import (
    LISTS,
    affecting,
    compare_versions,
    upgrade_markdown,
    upgrade_text,
)
from app.knowledge.version.regressions import known_issues, regressions
from app.store.derived.readings import Reading, save_readings
from app.store.engine.connect import sql_rows
from app.store.github.issues import add_repository, find_repository, save_issues
from app.store.github.releases import save_releases
from app.store.session import Store
from tests.samples import REPO, a_pull, a_release, an_issue

ROWS = {
    1: ("LoRA breaks", "crash", "0.20.0", None),
    2: ("LoRA breaks anew", "exception", "0.21.0", Regression(last_working="0.20.0", first_failing="0.21.0")),
    3: ("LoRA is slow", "slowdown", "0.20.0", Regression(first_failing="0.19.0", fixed_in="0.21.0")),
    4: ("LoRA loses letters", "exception", "0.21.0", None),
    5: ("Eagle3 breaks", "crash", "0.21.0", Regression(first_failing="0.21.0")),
    6: ("It breaks on main", "crash", "main", None),
    7: ("LoRA loses words", "wrong_output", "0.22.0", None),
}


def _quoted(field: str, value: str, body: str) -> Evidence:
    """A value with a whole text as its quote."""
    end = len(body)
    return Evidence(
        field=field, value=value, quote=body, source="body", start=0, end=end, rule="t", confidence=1
    )


@pytest.fixture
def stored(store: Store) -> Store:
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        issues, readings = [], []
        for number, (title, kind, version, span) in ROWS.items():
            body = f"{title} {version} {span.model_dump_json() if span else ''}"
            values = [("versions.vllm", version)]
            values += [(f"regression.{n}", v) for n, v in (span.model_dump() if span else {}).items() if v]
            evidence = tuple(_quoted(field, value, body) for field, value in values)
            facts = Facts.model_validate(
                {
                    "number": number,
                    "is_failure": True,
                    "failure_kind": kind,
                    "versions": {"vllm": version},
                    "regression": span,
                    "gpus": ("H100",) if number != 4 else (),
                    "error": {"type": "KeyError", "message": title},
                    "evidence": evidence,
                }
            )
            issues.append(an_issue(number, title=title, body=body))
            readings.append(Reading(number, facts))
        save_issues(session, repo_id, issues)
        save_readings(session, repo_id, readings, rules_version="t")
        save_releases(
            session,
            repo_id,
            [
                a_release(f"v0.{minor}.0", published_at=datetime(2026, minor - 17, 1, tzinfo=UTC))
                for minor in (19, 20, 21, 22)
            ],
        )
    return store


def _first_failing_after(session: Session, version: str) -> set[int]:
    rows = sql_rows(
        session,
        "SELECT number, value FROM fact WHERE repo_id = :repo_id AND field = 'regression.first_failing'",
        repo_id=find_repository(session, REPO),
    )
    return {number for number, value in rows if is_before(version, value)}


def _reported(session: Session) -> dict[int, str]:
    query = "SELECT number, value FROM fact WHERE repo_id = :repo_id AND field = 'versions.vllm'"
    return dict(sql_rows(session, query, repo_id=find_repository(session, REPO)))


def test_without_a_stack_the_lists_are_what_the_facts_say(stored: Store) -> None:
    found = compare_versions(stored, REPO, "0.20.0", "0.21.0")
    with stored.reading() as session:
        reported, began = _reported(session), _first_failing_after(session, "0.20.0")
    ordered_reports = {number: version for number, version in reported.items() if ordered(version)}
    new = {
        number
        for number, version in ordered_reports.items()
        if not is_before("0.21.0", version) and (number in began or is_before("0.20.0", version))
    }
    assert {line.number for line in found.breaks} == new
    assert [line.number for line in found.breaks] == [5, 4, 2]  # what stops a server stands before an error
    assert {line.number for line in found.fixed} == {3}
    assert {line.number for line in found.still_open} == {1}
    assert found.totals == {"fixed": 1, "breaks": 3, "reported": 0, "still_open": 1, "unsure": 0}
    assert found.verdict is None


def test_with_a_stack_only_what_is_of_it_counts(stored: Store) -> None:
    stack = parse_stack("0.20.0~L40S~--enable-lora")
    found = compare_versions(stored, REPO, "0.20.0", "0.21.0", stack)
    assert {line.number: line.reason for line in found.breaks} == {
        2: "It works in 0.20.0 and fails in 0.21.0; of LoRA adapters, as yours. "
        "Differs or is not known: it was seen on H100, not on L40S.",
    }
    assert {line.number: line.reason for line in found.reported} == {
        4: "It is reported on 0.21.0; whether 0.20.0 has it is not known; of LoRA adapters, as yours.",
    }
    unsure = "It is reported on 0.20.0 and open; of LoRA adapters, as yours."
    assert [line.reason for line in found.unsure] == [
        f"{unsure} Differs or is not known: it was seen on H100, not on L40S."
    ]
    assert found.verdict == "wait"
    assert any(
        "known of 0.21.0 and not of 0.20.0, without a known remedy" in reason for reason in found.reasons
    )
    assert any(
        "reported on 0.21.0, without a known remedy; whether 0.20.0 has it" in one for one in found.reasons
    )
    assert found.newest_clean is None
    assert "names L40S" in found.unreported[0]
    none = compare_versions(stored, REPO, "0.20.0", "0.21.0", parse_stack("0.20.0~--enforce-eager"))
    assert none.verdict == "nothing_known"
    assert none.totals == dict.fromkeys(LISTS, 0)
    assert none.newest_clean == "0.22.0"


def test_what_fails_at_the_start_is_not_open_for_who_runs_the_version(stored: Store) -> None:
    stack = parse_stack("0.21.0~H100~--enable-lora")
    before = {line.number for line in compare_versions(stored, REPO, "0.21.0", "0.22.0", stack).still_open}
    assert 4 in before
    with stored.unit_of_work() as session:
        repo_id = find_repository(session, REPO) or 0
        save_issues(
            session, repo_id, [an_issue(4, title="LoRA adapters fail to load", body="LoRA hangs 0.21.0 ")]
        )
    found = compare_versions(stored, REPO, "0.21.0", "0.22.0", stack)
    assert 4 not in {line.number for line in found.still_open}
    told = next(line.reason for line in found.unsure if line.number == 4)
    assert told.endswith("it fails at the start, and yours runs on 0.21.0.")


@pytest.mark.parametrize(
    ("title", "is_open"), [("LoRA does not work", False), ("LoRA tool calls do not work", True)]
)
def test_a_server_whose_answers_are_wrong_has_started(stored: Store, title: str, is_open: bool) -> None:
    with stored.unit_of_work() as session:
        repo_id = find_repository(session, REPO) or 0
        save_issues(session, repo_id, [an_issue(7, title=title, body="LoRA loses words 0.22.0 ")])
        save_releases(session, repo_id, [a_release("v0.23.0", published_at=datetime(2026, 6, 1, tzinfo=UTC))])
    stack = parse_stack("0.22.0~H100~--enable-lora --enable-auto-tool-choice --tool-call-parser hermes")
    found = compare_versions(stored, REPO, "0.22.0", "0.23.0", stack)
    assert (7 in {line.number for line in found.still_open}) == is_open


def test_a_version_that_nobody_ran_is_never_the_best(stored: Store) -> None:
    with stored.unit_of_work() as session:
        repo_id = find_repository(session, REPO)
        assert repo_id
        save_releases(session, repo_id, [a_release("v0.23.0", published_at=datetime(2026, 6, 1, tzinfo=UTC))])
    found = compare_versions(stored, REPO, "0.20.0", "0.23.0", parse_stack("0.20.0~--enforce-eager"))
    assert found.newest_clean == "0.22.0"
    assert "No stored report is of 0.23" in found.unreported[0]


def test_what_affects_a_stack_now(stored: Store) -> None:
    found = affecting(stored, REPO, parse_stack("0.21.0~--enable-lora") or pytest.fail("no stack"))
    assert [line.number for line in found.lines] == [4, 2]
    assert found.numbers["affects"] == (2, 4)
    nothing = affecting(stored, REPO, parse_stack("0.21.0~CPU~--enforce-eager") or pytest.fail("no stack"))
    assert nothing.numbers["affects"] == ()


@pytest.mark.parametrize("stack", ["0.21.0~H100~--enable-lora", "0.22.0~H100~--enable-lora", "0.21.0~H100"])
def test_what_may_affect_a_stack_is_what_an_upgrade_to_its_version_lists_as_not_known(
    stored: Store, stack: str
) -> None:
    mine = parse_stack(stack) or pytest.fail("no stack")
    goal = mine.vllm or ""
    listed = compare_versions(stored, REPO, "0.19.0", goal, mine).unsure

    assert {line.number for line in listed} <= {
        number for name in ("unsure", "affects") for number in affecting(stored, REPO, mine).numbers[name]
    }


@pytest.mark.parametrize(("start", "goal"), [("0.21.0", "0.20.0"), ("main", "0.21.0"), ("0.20.0", "next")])
def test_versions_that_are_in_no_order_are_refused(stored: Store, start: str, goal: str) -> None:
    with pytest.raises(InputError, match=r"from:|to:"):
        compare_versions(stored, REPO, start, goal)


def test_a_report_without_a_release_is_in_no_list(stored: Store) -> None:
    with stored.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        facts = Facts(
            number=8, is_failure=True, failure_kind="crash", models=("Qwen/Qwen3-8B",), gpus=("H100",)
        )
        save_issues(session, repo_id, [an_issue(8, title="LoRA fails")])
        save_readings(session, repo_id, [Reading(8, facts)], rules_version="t")
    found = compare_versions(
        stored, REPO, "0.20.0", "0.21.0", parse_stack("0.20.0~H100~Qwen/Qwen3-8B~--enable-lora")
    )
    assert 8 not in {line.number for name in LISTS for line in getattr(found, name)}


def test_the_answer_reads_as_text_and_as_markdown(stored: Store) -> None:
    found = compare_versions(stored, REPO, "0.20.0", "0.21.0", parse_stack("0.20.0~--enable-lora"))
    assert upgrade_text(found).startswith("vLLM 0.20.0 to 0.21.0: WAIT")
    assert "MAY AFFECT YOU: each says what differs or is not known (1)" in upgrade_text(found)
    markdown = upgrade_markdown(found)
    assert "## Known to break for you (1)" in markdown
    assert "## Reported on 0.21.0; of 0.20.0 nothing is known (1)" in markdown
    assert "REPORTED ON 0.21.0: of 0.20.0 nothing is known (1)" in upgrade_text(found)
    assert "## May affect you" in markdown
    assert "#2" in markdown


def test_a_version_that_cannot_be_is_refused_with_the_nearest_release(stored: Store) -> None:
    with pytest.raises(UnknownVersionError, match=r"^to: 9\.9 is no known release of vLLM; the nearest is "):
        compare_versions(stored, REPO, "0.21.0", "9.9")
    with pytest.raises(UnknownVersionError, match=r"^version: 9\.9 "):
        known_issues(stored, REPO, "9.9")
    with pytest.raises(UnknownVersionError, match=r"^version: 9\.9 "):
        regressions(stored, REPO, "9.9")
    with pytest.raises(UnknownVersionError, match=r"^vllm_version: 9\.9 "):
        browse(stored, REPO, IssueQuery(vllm_version="9.9"))


def test_a_base_without_releases_knows_versions_ahead_of_its_reports(store: Store) -> None:
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        save_issues(session, repo_id, [an_issue(number, body="0.21.0") for number in range(1, 7)])
        said = _quoted("versions.vllm", "0.21.0", "0.21.0")
        facts = [
            Facts(number=number, versions={"vllm": "0.21.0"}, evidence=(said,)) for number in range(1, 7)
        ]
        save_readings(session, repo_id, [Reading(one.number, one) for one in facts], rules_version="t")

    assert compare_versions(store, REPO, "0.21.0", "0.24.0").to_version == "0.24.0"
    with pytest.raises(UnknownVersionError, match=r"^to: 0\.211\.0 is no known release"):
        compare_versions(store, REPO, "0.21.0", "0.211.0")


def test_a_base_without_pull_requests_says_that_fixes_cannot_be_known_and_what_brings_them(
    stored: Store,
) -> None:
    found = compare_versions(stored, REPO, "0.21.0", "0.22.0")
    told = "Fixes cannot be known here yet, as no pull requests are stored: triage sync brings them"

    assert (found.are_fixes_known, found.totals["fixed"]) == (False, 0)
    assert told in found.reasons[-1]
    assert not any("0 failures" in reason and "fixed" in reason for reason in found.reasons)
    assert "FIXED (not known)" in upgrade_text(found)
    assert told.partition(":")[0] in upgrade_markdown(found)


def test_a_base_with_releases_and_pull_requests_speaks_of_its_fixes_alone(stored: Store) -> None:
    with stored.unit_of_work() as session:
        save_issues(session, find_repository(session, REPO) or 0, [a_pull(90)])
    found = compare_versions(stored, REPO, "0.21.0", "0.22.0")

    assert found.are_fixes_known
    assert "0 failures of 0.21.0 fixed in 0.22.0." in found.reasons
    assert "FIXED (0)" in upgrade_text(found)
