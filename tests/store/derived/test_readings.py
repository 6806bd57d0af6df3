"""What the reading room made of an issue, kept and replaced.

Which issues must be read again.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from app.errors import StoreError
from app.extract.facts import ErrorFact, Evidence, Facts, Fix, Signature, Workaround
from app.store.derived.readings import (
    Reading,
    find_facts,
    find_facts_without_evidence,
    links_from,
    links_to,
    save_readings,
    stale_numbers,
    value_key,
)
from app.store.engine.connect import sql_rows
from app.store.github.issues import add_repository, save_comments, save_issues
from app.store.records import LinkRecord
from app.store.session import Store
from tests.samples import LATE, REPO, a_comment, an_issue

ROOT = Signature(id="s1-aaaaaaaaaaaa", text="KeyError | <id>")
OTHER = Signature(id="s1-bbbbbbbbbbbb", text="ValueError | no", role="other")


def a_quote(field: str, value: str, start: int = 0) -> Evidence:
    return Evidence(
        field=field,
        value=value,
        quote=value,
        source="body",
        start=start,
        end=start + len(value),
        rule="test",
        confidence=0.9,
    )


def some_facts(number: int = 1, **fields) -> Facts:
    found = {
        "is_failure": True,
        "failure_kind": "exception",
        "gpus": ("H100",),
        "backends": {"moe": ("TRITON",)},
        "versions": {"vllm": "0.9.0"},
        "error": ErrorFact(type="KeyError", message="'x'", wrappers=("Engine core initialization failed.",)),
        "workarounds": (Workaround(action="--enforce-eager", kind="flag", outcome="works"),),
        "fix": Fix(state="fixed", pr="#7"),
        "signatures": (ROOT, OTHER),
        "evidence": (a_quote("versions.vllm", "0.9.0", 9), a_quote("gpus", "H100", 2)),
    }
    return Facts(number=number, **{**found, **fields})


@pytest.fixture
def filled(store: Store) -> Store:
    with store.unit_of_work() as session:
        save_issues(session, add_repository(session, REPO), [an_issue(1), an_issue(2)])
    return store


def save(store: Store, *readings: Reading) -> None:
    with store.unit_of_work() as session:
        save_readings(session, 1, readings, rules_version="1")


def facts_of(store: Store, number: int = 1) -> Facts | None:
    with store.reading() as session:
        return find_facts(session, 1, [number]).get(number)


def test_facts_come_back_whole_with_their_evidence_in_order(filled: Store) -> None:
    save(filled, Reading(1, some_facts()))

    assert facts_of(filled) == some_facts()


def test_facts_without_evidence_are_the_same_but_for_it(filled: Store) -> None:
    save(filled, Reading(1, some_facts()))

    with filled.reading() as session:
        assert find_facts_without_evidence(session, 1, [1, 2]) == {1: some_facts(evidence=())}


def faults(store: Store) -> list[str]:
    with store.reading() as session:
        query = "SELECT fault FROM reading WHERE fault IS NOT NULL"
        return [fault for (fault,) in sql_rows(session, query)]


def occurrences(store: Store) -> list[tuple[int, str, str]]:
    with store.reading() as session:
        return sorted(sql_rows(session, "SELECT number, signature_id, role FROM occurrence"))


def test_a_second_reading_replaces_the_first(filled: Store) -> None:
    save(filled, Reading(1, some_facts()))
    save(filled, Reading(1, Facts(number=1)))

    assert facts_of(filled) == Facts(number=1)
    assert occurrences(filled) == []


def test_a_reading_leaves_other_issues_alone(filled: Store) -> None:
    save(filled, Reading(1, some_facts()), Reading(2, some_facts(2)))
    save(filled, Reading(1, Facts(number=1)))

    assert facts_of(filled, 2) == some_facts(2)


def test_a_fault_has_no_facts_and_is_counted(filled: Store) -> None:
    save(filled, Reading(1, None, fault="RecursionError"), Reading(2, some_facts(2)))

    assert facts_of(filled) is None
    assert faults(filled) == ["RecursionError"]


def test_a_fault_that_was_mended_is_not_counted(filled: Store) -> None:
    save(filled, Reading(1, None, fault="RecursionError"))
    save(filled, Reading(1, some_facts()))

    assert faults(filled) == []


def test_a_reading_of_an_issue_that_is_not_stored_is_refused(filled: Store) -> None:
    with pytest.raises(StoreError):
        save(filled, Reading(404, some_facts(404)))


def test_a_signature_tells_where_it_was_seen_and_in_which_role(filled: Store) -> None:
    second = some_facts(
        2, signatures=(OTHER.model_copy(update={"role": "root"}), ROOT.model_copy(update={"role": "other"}))
    )
    save(filled, Reading(1, some_facts()), Reading(2, second))

    seen = [item for item in occurrences(filled) if item[1] == ROOT.id]
    assert seen == [(1, ROOT.id, "root"), (2, ROOT.id, "other")]


def test_a_signature_named_twice_keeps_the_first_role(filled: Store) -> None:
    twice = (ROOT, ROOT.model_copy(update={"role": "other"}))
    save(filled, Reading(1, some_facts(signatures=twice)))

    assert occurrences(filled) == [(1, ROOT.id, "root")]


def test_links_are_found_from_both_ends(filled: Store) -> None:
    link = LinkRecord(REPO, 39288, "fixes", "a closing keyword")
    save(filled, Reading(1, some_facts(), links=(link,)))

    with filled.reading() as session:
        assert links_from(session, 1, 1) == [link]
        assert links_to(session, REPO, [39288], "fixes") == [(1, 1, 39288)]
        assert links_to(session, REPO, [39288], "mentions") == []
        assert links_to(session, "other/engine", [39288], "fixes") == []


def test_links_said_twice_are_kept_once(filled: Store) -> None:
    link = LinkRecord(REPO, 2, "mentions", "the text names it")
    save(filled, Reading(1, some_facts(), links=(link, link)))

    with filled.reading() as session:
        assert links_from(session, 1, 1) == [link]


def test_a_link_that_the_text_no_longer_says_is_gone(filled: Store) -> None:
    save(filled, Reading(1, some_facts(), links=(LinkRecord(REPO, 2, "mentions", "the text names it"),)))
    save(filled, Reading(1, some_facts()))

    with filled.reading() as session:
        assert links_from(session, 1, 1) == []


def test_a_link_that_was_not_extracted_outlives_a_reading(filled: Store) -> None:
    similar = LinkRecord(REPO, 2, "similar", "same frames", 0.8, "log")
    save(filled, Reading(1, some_facts(), links=(similar,)))
    save(filled, Reading(1, some_facts()))

    with filled.reading() as session:
        assert links_from(session, 1, 1) == [similar]


@pytest.mark.parametrize(("value", "wanted"), [("H100", "h100"), ("Ä" * 200, "ä" * 120), ("", "")])
def test_filters_compare_values_in_lower_case_and_cut(value: str, wanted: str) -> None:
    assert value_key(value) == wanted


def test_a_value_whose_lower_case_is_longer_fits_its_column(filled: Store) -> None:
    grown = "İ" * 120
    save(filled, Reading(1, some_facts(evidence=(a_quote("gpus", grown),))))

    assert facts_of(filled).evidence[0].value == grown  # type: ignore[union-attr]


NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def read(store: Store) -> Store:
    """Two issues, fetched at noon and read an hour later under rules "1"."""
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        save_issues(session, repo_id, [an_issue(number, fetched_at=NOON) for number in (1, 2)])
        with time_machine.travel(NOON + HOUR, tick=False):
            save_readings(session, repo_id, [Reading(n, Facts(number=n)) for n in (1, 2)], rules_version="1")
    return store


def stale(store: Store, rules: str = "1") -> list[int]:
    with store.reading() as session:
        return stale_numbers(session, 1, rules)


def test_what_was_read_after_it_was_fetched_is_not_stale(read: Store) -> None:
    assert stale(read) == []


def test_what_was_never_read_is_stale(read: Store) -> None:
    with read.unit_of_work() as session:
        save_issues(session, 1, [an_issue(3, fetched_at=NOON)])

    assert stale(read) == [3]


def test_what_was_fetched_again_is_stale(read: Store) -> None:
    with read.unit_of_work() as session:
        save_issues(session, 1, [an_issue(2, title="edited", updated_at=LATE, fetched_at=NOON + 2 * HOUR)])

    assert stale(read) == [2]


def test_what_got_a_comment_is_stale(read: Store) -> None:
    with read.unit_of_work() as session, time_machine.travel(NOON + 2 * HOUR, tick=False):
        save_comments(session, 1, [a_comment(5, 1, "it helps")])

    assert stale(read) == [1]


def test_other_rules_make_everything_stale(read: Store) -> None:
    assert stale(read, "2") == [1, 2]


def test_another_repository_is_not_looked_at(read: Store) -> None:
    with read.unit_of_work() as session:
        save_issues(session, add_repository(session, "other/engine"), [an_issue(9)])

    assert stale(read) == []
