"""What fails in a version and since when: by PEP 440, with the words that say it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from app.extract.facts import Evidence, Facts, Regression, Workaround
from app.knowledge.issue.browse import IssueQuery, browse
from app.knowledge.version.regressions import (
    basis_of,
    known_issues,
    place_of,
    regressions,
    release_heat,
)
from app.store.derived.readings import Reading, save_readings
from app.store.github.issues import add_repository, save_comments, save_issues
from app.store.github.releases import save_releases
from app.store.records import IssueRecord, LinkRecord
from app.store.session import Store
from tests.knowledge.made_clusters import ONE, facts_of, group, report
from tests.knowledge.made_clusters import put as put_read
from tests.samples import EARLY, LATE, REPO, a_comment, a_pull, a_release, an_issue


def told(
    number: int,
    vllm: str | None = None,
    *,
    links: Sequence[LinkRecord] = (),
    span: Regression | None = None,
    facts: dict[str, Any] | None = None,
    **issue: Any,
) -> tuple[IssueRecord, Reading]:
    """An issue and what was read in it, each value with a sentence of its own in the body."""
    values = [("versions.vllm", vllm)] if vllm else []
    for name, value in (span.model_dump() if span else {}).items():
        values += [
            (f"regression.{name}", one) for one in (value if isinstance(value, tuple) else (value,)) if one
        ]
    lines = [f"It says {value} here." for _, value in values]
    evidence = tuple(
        Evidence(
            field=field,
            value=value,
            quote=line,
            source="body",
            start=0,
            end=len(line),
            rule="t",
            confidence=1,
        )
        for (field, value), line in zip(values, lines, strict=True)
    )
    extra = dict(facts or {})
    evidence += tuple(extra.pop("evidence", ()))
    record = an_issue(number, body="\n".join(lines), **issue)
    known = Facts(
        number=number,
        is_failure=True,
        failure_kind="crash",
        versions={"vllm": vllm} if vllm else {},
        regression=span,
        evidence=evidence,
        **extra,
    )
    return record, Reading(number, known, links=tuple(links))


def put(
    store: Store, *stored: tuple[IssueRecord, Reading], others: Sequence[IssueRecord] = (), **more: Any
) -> int:
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        save_issues(session, repo_id, [*(record for record, _ in stored), *others])
        save_releases(session, repo_id, more.get("releases", ()))
        save_comments(session, repo_id, more.get("comments", ()))
        save_readings(session, repo_id, [reading for _, reading in stored], rules_version="t")
    return repo_id


def known(store: Store, version: str, **options: Any) -> list[int]:
    return [item.number for item in known_issues(store, REPO, version, **options).items]


SPAN = Regression(last_working="0.8.5", first_failing="0.9.0", fixed_in="0.10.1")


@pytest.mark.parametrize(
    ("version", "basis"),
    [
        ("0.8.5", None),
        ("0.8.4", None),
        ("0.9.0", "reported"),
        ("0.10.0", "in_range"),
        ("0.10.0rc1", "in_range"),
        ("0.10.1", None),
        ("0.11.0", None),
        ("main", None),
    ],
)
def test_a_range_holds_what_lies_from_the_first_failing_to_before_the_fixed_one(
    version: str, basis: str | None
) -> None:
    assert basis_of(version, SPAN, is_reported=False) == basis


def test_without_a_fixed_version_a_later_one_is_only_failing_since_then() -> None:
    span = Regression(first_failing="0.9.0", still_failing=("0.10.0",))

    assert [basis_of(text, span, is_reported=False) for text in ("0.9.1", "0.10.0", "0.11.0")] == [
        "in_range",
        "reported",
        "since",
    ]


def test_an_environment_of_the_working_version_is_no_report_of_it() -> None:
    assert basis_of("0.8.5", SPAN, is_reported=True) is None


@pytest.mark.parametrize(
    ("version", "place"),
    [
        ("0.8.5", None),
        ("0.9.0.dev3", "may_have_begun"),
        ("0.9.0", "began"),
        ("0.10.0", "failing"),
        ("0.10.1", "fixed"),
        ("0.12.0", None),
        ("main", None),
    ],
)
def test_a_version_has_its_place_in_a_range(version: str, place: str | None) -> None:
    assert place_of(SPAN, version) == place


# ---- known issues


def test_known_are_the_failures_reported_in_a_version_and_those_whose_range_holds_it(store: Store) -> None:
    put(
        store,
        told(1, "0.9.1"),
        told(2, "0.9.10"),
        told(3, span=Regression(first_failing="0.9.0", fixed_in="0.10.0")),
        told(4, "v0.9.1+cu129"),
        told(5, "0.9.1rc1"),
        told(6, "0.9.1", state="closed"),
    )
    page = known_issues(store, REPO, "v0.9.1")

    assert [item.number for item in page.items] == [4, 3, 1]
    assert (page.version, page.total, page.closed) == ("0.9.1", 3, 1)
    assert {item.number: (item.basis, item.standing) for item in page.items} == {
        1: ("reported", "open"),
        3: ("in_range", "fixed_later"),
        4: ("reported", "open"),
    }


def test_those_closed_without_a_known_fix_are_listed_when_asked_for(store: Store) -> None:
    put(store, told(1, "0.9.1"), told(6, "0.9.1", state="closed", state_reason="not_planned"))

    assert known(store, "0.9.1") == [1]
    assert known(store, "0.9.1", closed=True) == [6, 1]


def test_an_earlier_failure_that_nobody_spoke_of_since_counts_only_while_open_and_comes_last(
    store: Store,
) -> None:
    span = Regression(first_failing="0.5.0")
    put(store, told(1, span=span, comments=90), told(2, span=span, state="closed"), told(3, "0.9.1"))

    assert known(store, "0.9.1", closed=True) == [3, 1]


def test_a_fix_that_a_later_release_holds_is_fixed_later_and_one_it_holds_is_not_listed(store: Store) -> None:
    fixes = [LinkRecord(REPO, 1, "fixes", "a closing keyword")]
    repo_id = put(
        store,
        told(1, "0.9.1", state="closed"),
        others=[a_pull(50, merged_at=EARLY)],
        releases=[
            a_release("v0.9.1", published_at=EARLY - timedelta(days=9)),
            a_release("v0.9.2", 50, published_at=LATE),
        ],
    )
    with store.unit_of_work() as session:
        save_readings(
            session, repo_id, [Reading(50, Facts(number=50), links=tuple(fixes))], rules_version="t"
        )
    (item,) = known_issues(store, REPO, "0.9.1").items

    assert (item.standing, item.fix.released_in, item.fix.for_you) == ("fixed_later", "0.9.2", "upgrade")
    assert known(store, "0.9.2", closed=True) == []


def test_a_duplicate_counts_for_the_original_and_is_not_listed_beside_it(store: Store) -> None:
    same = [LinkRecord(REPO, 1, "duplicate", "said")]
    put(store, told(1, "0.9.1"), told(2, "0.9.1", links=same, comments=40), told(3, "0.9.1", comments=3))
    page = known_issues(store, REPO, "0.9.1")

    assert [(item.number, item.duplicates, item.weight) for item in page.items] == [(1, 1, 5), (3, 0, 4)]


def test_what_is_no_failure_is_no_known_issue(store: Store) -> None:
    record, reading = told(1, "0.9.1")
    assert reading.facts is not None
    put(store, (record, Reading(1, reading.facts.model_copy(update={"is_failure": False}))))

    assert known(store, "0.9.1") == []


def test_a_commit_lists_only_what_names_this_very_build(store: Store) -> None:
    put(store, told(1, "73f48ce55aa"), told(2, "0.9.1"), told(3, span=SPAN))
    page = known_issues(store, REPO, "73f48ce55aa")

    assert [item.number for item in page.items] == [1]
    assert not page.is_ordered


def test_the_words_and_the_newest_word_are_given_with_their_place_and_time(store: Store) -> None:
    action = "--moe-backend triton"
    line = f"With {action} it runs."
    at_comment = Evidence(
        field="workarounds",
        value=action,
        quote=line,
        source="comment:77",
        start=0,
        end=len(line),
        rule="t",
        confidence=1,
    )
    remedy = {
        "workarounds": (Workaround(action=action, kind="flag", outcome="works"),),
        "evidence": (at_comment,),
    }
    put(store, told(1, "0.9.1", facts=remedy), comments=[a_comment(77, 1, line, created_at=LATE)])
    (item,) = known_issues(store, REPO, "0.9.1").items

    assert [quote.text for quote in item.quotes] == ["It says 0.9.1 here."]
    assert item.remedy is not None
    assert item.remedy.action == action
    assert item.remedy.quote.text == line
    assert item.remedy.quote.url.endswith("#issuecomment-77")
    assert item.newest is not None
    assert (item.newest.field, item.newest.at) == ("workarounds", LATE)


def test_a_remedy_without_its_words_is_not_told(store: Store) -> None:
    told_only = {"workarounds": (Workaround(action="--x", kind="flag", outcome="works"),)}
    put(store, told(1, "0.9.1", facts=told_only))

    assert known_issues(store, REPO, "0.9.1").items[0].remedy is None


def test_a_page_goes_on_where_the_one_before_ended(store: Store) -> None:
    put(store, *(told(number, "0.9.1") for number in range(1, 6)))

    assert known(store, "0.9.1", limit=2) + known(store, "0.9.1", after=2, limit=9) == [5, 4, 3, 2, 1]


def test_of_a_repository_that_is_not_stored_nothing_is_known(store: Store) -> None:
    assert known_issues(store, "no/where", "0.9.1").total == 0
    assert regressions(store, "no/where", "0.9.1").total == 0
    assert regressions(store, "no/where").versions == ()


# ---- regressions


def test_regressions_of_a_version_are_those_that_began_in_it_before_all_others(store: Store) -> None:
    put(
        store,
        told(1, span=Regression(first_failing="0.8.0", still_failing=("0.9.0",)), comments=50),
        told(2, span=Regression(last_working="0.8.5", first_failing="0.9.0")),
        told(3, span=SPAN, state="closed"),
        told(4, span=Regression(first_failing="0.10.0")),
        told(5, span=Regression(first_failing="0.5.0")),
        told(6, span=Regression(first_failing="0.5.0"), state="closed"),
        told(7, "0.9.0"),
    )
    page = regressions(store, REPO, "0.9.0")

    assert [(item.number, item.place) for item in page.items] == [
        (3, "began"),
        (2, "began"),
        (1, "failing"),
        (5, "since"),
    ]
    assert page.items[0].regression == SPAN
    assert {quote.field for quote in page.items[0].quotes} == {
        "regression.last_working",
        "regression.first_failing",
        "regression.fixed_in",
    }


def test_of_a_version_those_at_one_place_can_be_asked_for(store: Store) -> None:
    put(
        store,
        told(1, span=Regression(first_failing="0.8.0", fixed_in="0.9.0")),
        told(2, span=Regression(first_failing="0.9.0")),
        told(3, span=Regression(first_failing="0.7.0", fixed_in="0.9.0")),
    )
    page = regressions(store, REPO, "0.9.0", only="fixed", limit=1)

    assert page.total == 2
    assert [(item.number, item.place) for item in page.items] == [(3, "fixed")]


def test_without_a_version_all_are_listed_the_newest_first(store: Store) -> None:
    put(store, told(1, span=SPAN), told(3, span=Regression(culprit="#7")), told(2, "0.9.0"))
    page = regressions(store, REPO)

    assert [(item.number, item.place) for item in page.items] == [(3, "told"), (1, "told")]
    assert [item.number for item in regressions(store, REPO, after=1, limit=5).items] == [1]


def test_versions_are_counted_newest_first_and_commits_apart(store: Store) -> None:
    spans = ["0.9.2", "0.10", "v0.10.0", "main"]
    put(store, *(told(n, span=Regression(first_failing=text)) for n, text in enumerate(spans, 1)))

    assert [(item.version, item.regressions) for item in regressions(store, REPO).versions] == [
        ("0.10.0", 2),
        ("0.9.2", 1),
        ("main", 1),
    ]


def test_each_count_of_the_heat_map_is_that_of_the_list_it_leads_to(store: Store) -> None:
    versions = [("0.10.0", "H100"), ("0.10", "NVIDIA H100 80GB HBM3"), ("0.9.2", "B200"), ("99.1.0", "B200")]
    read = [(report(n), facts_of(n, version=text, gpu=gpu)) for n, (text, gpu) in enumerate(versions, 1)]
    repo_id = put_read(store, *read)
    with store.unit_of_work() as session:
        save_releases(session, repo_id, [a_release("v0.9.2"), a_release("v0.10.0")])

    heat = release_heat(store, REPO)

    assert heat.rows == (("0.10.0", (2, 0)), ("0.9.2", (0, 1)))
    for version, counts in heat.rows:
        for gpu, count in zip(heat.gpus, counts, strict=True):
            assert browse(store, REPO, IssueQuery(gpu=gpu, vllm_version=version)).total == count


def test_every_other_report_of_the_failure_weighs_as_a_duplicate_does(store: Store) -> None:
    repo_id = put_read(
        store, *((report(n, comments=3 * (n == 1)), facts_of(n, version="0.9.0")) for n in (1, 2, 3))
    )
    group(store, repo_id, ONE, 2, 3)

    items = known_issues(store, REPO, "0.9.0").items

    assert [(item.number, item.weight, item.reports) for item in items] == [(3, 5, 2), (2, 5, 2), (1, 4, 1)]
