"""Stored issues read: facts, links, terms."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.extract.facts import Facts
from app.extract.reader import RULES_VERSION, IssueReading, read_issue
from app.extract.text.document import IssueText
from app.knowledge.diagnosis.diagnose import diagnose
from app.knowledge.indexing import derive
from app.knowledge.indexing import derive as linking
from app.knowledge.indexing.batches import rederive_all
from app.knowledge.indexing.derive import SIMILAR_MAX, DeriveResult, derive_issues
from app.match.pairs import score
from app.match.pairs.features import PairFeatures
from app.match.pairs.score import PairScore, score_pair
from app.store.derived.links import find_similar
from app.store.derived.readings import find_facts, links_from, stale_numbers
from app.store.engine.connect import sql_rows
from app.store.github.issues import add_repository, find_repository, save_comments, save_issues
from app.store.records import IssueRecord, LinkRecord
from app.store.schema import migrate
from app.store.session import Store, open_store
from tests.knowledge.conftest import Keep
from tests.samples import (
    EARLY,
    LATE,
    REPO,
    a_comment,
    a_pull,
    a_traceback,
    an_issue,
    fenced,
    marlin_log,
    rope_log,
)
from tests.starter_base import put_cards

CARD = 39288


def facts_of(store: Store, number: int) -> Facts:
    with store.reading() as session:
        return find_facts(session, 1, [number])[number]


def links_of(store: Store, number: int) -> list[tuple[str, int, str]]:
    with store.reading() as session:
        return [(link.target_repo, link.target_number, link.kind) for link in links_from(session, 1, number)]


def matches_of(store: Store, log: str) -> list[int]:
    return [match.number for match in diagnose(store, log, repos=(REPO,)).matches]


def test_facts_are_kept_with_the_rules_they_were_read_under(store: Store, keep: Keep) -> None:
    keep(an_issue(1, body=fenced("See.", marlin_log())))

    assert facts_of(store, 1).error.type == "ValueError"  # type: ignore[union-attr]
    with store.reading() as session:
        assert stale_numbers(session, 1, RULES_VERSION) == []


def test_comments_are_read_with_who_said_them(store: Store, keep: Keep) -> None:
    keep(
        an_issue(1, author="reporter"),
        a_comment(5, 1, "`--enforce-eager` works for me.", author_association="MEMBER"),
    )

    assert [(item.action, item.source, item.by) for item in facts_of(store, 1).workarounds] == [
        ("--enforce-eager", "comment:5", "maintainer")
    ]


def test_how_many_were_read_is_told(store: Store) -> None:
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        save_issues(session, repo_id, [an_issue(1), an_issue(2)])

        assert derive_issues(session, repo_id, REPO, [1, 2, 404]) == DeriveResult(2, 0)


def test_reading_again_changes_nothing(store: Store, keep: Keep) -> None:
    issue = an_issue(1, body=fenced("Same as #2.", marlin_log()))
    keep(issue)
    before = (facts_of(store, 1), links_of(store, 1), matches_of(store, marlin_log()))
    rederive_all(store, REPO, lambda _: None)

    assert (facts_of(store, 1), links_of(store, 1), matches_of(store, marlin_log())) == before


# A rule that throws


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(issue: IssueText) -> IssueReading:
        if issue.number == 2:
            raise RecursionError("a secret of the text")
        return read_issue(issue)

    monkeypatch.setattr(derive, "read_issue", read)


@pytest.mark.usefixtures("faulty")
def test_a_rule_that_throws_is_noted_and_stops_nothing(store: Store) -> None:
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        save_issues(
            session, repo_id, [an_issue(number, body=fenced("See.", marlin_log())) for number in (1, 2, 3)]
        )

        assert derive_issues(session, repo_id, REPO, [1, 2, 3]) == DeriveResult(3, 1)
        assert sorted(find_facts(session, repo_id, [1, 2, 3])) == [1, 3]
        assert len(sql_rows(session, "SELECT 1 FROM reading WHERE fault IS NOT NULL")) == 1


@pytest.mark.usefixtures("faulty")
def test_an_issue_that_could_not_be_read_is_not_read_again_at_once(store: Store, keep: Keep) -> None:
    keep(an_issue(2))

    with store.reading() as session:
        assert stale_numbers(session, 1, RULES_VERSION) == []


@pytest.mark.usefixtures("faulty")
def test_an_issue_that_can_no_longer_be_read_is_no_longer_found(store: Store, keep: Keep) -> None:
    keep(an_issue(2, body=fenced("See.", marlin_log())))

    assert matches_of(store, marlin_log()) == []


# Links


def test_named_issues_are_mentions(store: Store, keep: Keep) -> None:
    keep(an_issue(1, body="Related to #12345 and flashinfer-ai/flashinfer#77."))

    assert sorted(links_of(store, 1)) == [
        ("flashinfer-ai/flashinfer", 77, "mentions"),
        (REPO, 12345, "mentions"),
    ]


def test_a_culprit_is_what_introduced_it(store: Store, keep: Keep) -> None:
    keep(an_issue(1, body="It worked until #12345: git bisect says the first bad commit is from #12345."))

    assert links_of(store, 1) == [(REPO, 12345, "introduced_by")]


def test_a_pull_request_fixes_what_it_closes_but_not_itself(store: Store, keep: Keep) -> None:
    keep(a_pull(7, title="Fixes #1", body="Closes #2, fixes #7, see #3"))

    assert sorted(links_of(store, 7)) == [(REPO, 1, "fixes"), (REPO, 2, "fixes")]


def test_a_pull_request_is_never_a_match(store: Store, keep: Keep) -> None:
    keep(a_pull(7, body=fenced("This log is mended.", marlin_log())))

    assert matches_of(store, marlin_log()) == []


# Cards


@pytest.fixture
def started(store: Store) -> Store:
    put_cards(store)
    return store


def arrive(store: Store, **fields) -> None:
    """GitHub's own row for the card's number, stored and read as a sync does it."""
    with store.unit_of_work() as session:
        repo_id = find_repository(session, REPO)
        assert repo_id
        save_issues(session, repo_id, [an_issue(CARD, **fields)])
        save_comments(
            session, repo_id, [a_comment(5, CARD, "`--enforce-eager` works for me.", created_at=EARLY)]
        )
        derive_issues(session, repo_id, REPO, [CARD])


def test_a_card_tells_all_while_github_was_not_asked(started: Store) -> None:
    facts = facts_of(started, CARD)

    assert [item.action for item in facts.workarounds] == ["--moe-backend triton"]
    assert facts.regression is not None
    assert (facts.gpus, facts.regression.culprit) == (("H100",), "#36286")
    assert {item.source for item in facts.evidence} == {"card"}


def test_the_card_s_remedy_survives_a_real_sync_of_its_number(started: Store) -> None:
    arrive(started, title="[Bug]: GitHub's title", body="The server dies.")
    facts = facts_of(started, CARD)

    assert [(item.action, item.source) for item in facts.workarounds] == [
        ("--moe-backend triton", "card"),
        ("--enforce-eager", "comment:5"),
    ]
    assert [item.source for item in facts.evidence if item.value == "--moe-backend triton"] == ["card"]


def test_what_github_s_text_says_replaces_what_the_card_said(started: Store) -> None:
    arrive(started, body=fenced("On A100.", rope_log()))
    facts = facts_of(started, CARD)

    assert facts.error is not None
    assert (facts.error.type, facts.gpus) == ("KeyError", ("A100",))


def test_the_card_s_range_stays_where_github_s_text_has_none(started: Store) -> None:
    arrive(started, body="The server dies.")

    assert facts_of(started, CARD).regression.last_working == "0.18.1rc1.dev227"  # type: ignore[union-attr]


def test_a_remedy_that_both_tell_stands_once(started: Store) -> None:
    arrive(started, body="The server dies. With `--moe-backend triton` it works.")

    assert [item.action for item in facts_of(started, CARD).workarounds].count("--moe-backend triton") == 1


def test_a_card_s_words_still_find_it_after_a_real_sync(started: Store) -> None:
    arrive(started, body="The server dies.")
    log = "Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:455 'an illegal memory access was encountered' FlashInfer CUTLASS"

    assert CARD in matches_of(started, log)


# Everything again


def test_all_are_read_again_in_batches(store: Store, keep: Keep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.knowledge.indexing.batches.BATCH", 2)
    keep(*(an_issue(number) for number in (1, 2, 3)), a_pull(4))
    found = []

    assert rederive_all(store, REPO, found.append) == DeriveResult(4, 0)
    assert [(step.done, step.total) for step in found] == [(2, 4), (4, 4)]


def test_links_that_no_text_says_outlive_reading_again(store: Store, keep: Keep) -> None:
    from app.store.derived.readings import Reading, save_readings

    keep(an_issue(1))
    with store.unit_of_work() as session:
        similar = LinkRecord(REPO, 2, "similar", "same frames", 0.8, "log")
        save_readings(session, 1, [Reading(1, Facts(number=1), links=(similar,))], rules_version="old")
    rederive_all(store, REPO, lambda _: None)

    assert links_of(store, 1) == [(REPO, 2, "similar")]


def test_an_issue_s_newer_text_is_what_is_found(store: Store, keep: Keep) -> None:
    keep(an_issue(1, body=fenced("See.", marlin_log())))
    keep(an_issue(1, body=fenced("See.", rope_log()), updated_at=LATE))

    old, new = (diagnose(store, log, repos=(REPO,)).verdict for log in (marlin_log(), rope_log()))
    assert old in {"related", "unknown"}
    assert new in {"same", "likely"}


CRASH = a_traceback(
    "ValueError: the rotary table ends before position 40960",
    "vllm/model_executor/layers/rotary_embedding.py:forward_native",
    "vllm/model_executor/models/zebra.py:forward",
)
OTHER = a_traceback("KeyError: 'lm_head.weight_scale'", "vllm/model_executor/models/otter.py:load_weights")
TITLES = ("Zebra rotary table ends early", "Otter misses lm_head.weight_scale", "LoRA hangs on ROCm", "")
Links = dict[int, list[LinkRecord]]


def crash(
    number: int, title: str = "[Bug]: zebra ends before position 40960", log: str = CRASH
) -> IssueRecord:
    return an_issue(number, title=title, body=f"It ends like this:\n```\n{log}\n```\n")


def links(store: Store) -> Links:
    with store.reading() as session:
        repo_id = find_repository(session, REPO) or 0
        return find_similar(session, repo_id, REPO, range(890, 1000))


def ends(found: Links) -> set[tuple[int, int, float | None]]:
    return {(number, link.target_number, link.score) for number, answer in found.items() for link in answer}


def test_two_reports_of_one_crash_are_linked_at_both_ends_alike(store: Store, keep: Keep) -> None:
    keep(crash(900), crash(901))
    found = links(store)

    assert [link.target_number for link in found[900]] == [901]
    assert found[901] == [
        LinkRecord(REPO, 900, "similar", link.reason, link.score, link.channel) for link in found[900]
    ]


def test_an_issue_that_comes_later_is_linked_with_those_that_are_stored(store: Store, keep: Keep) -> None:
    keep(crash(900))
    keep(crash(901))

    assert set(links(store)) == {900, 901}


def test_unlike_issues_are_not_linked(store: Store, keep: Keep) -> None:
    keep(crash(900), crash(901, "[Bug]: otter cannot load", OTHER))

    assert links(store) == {}


def test_a_text_that_changed_takes_its_links_along(store: Store, keep: Keep) -> None:
    keep(crash(900), crash(901))
    keep(an_issue(901, title="[Doc]: typo", body="A word is spelt wrong in the guide."))

    assert links(store) == {}


def test_a_pull_request_is_alike_to_nothing(store: Store, keep: Keep) -> None:
    keep(crash(900), a_pull(901, title="[Bug]: zebra ends before position 40960", body=CRASH))

    assert links(store) == {}


def test_an_issue_whose_rules_throw_loses_its_links(
    store: Store, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo_id = keep(crash(900), crash(901))
    monkeypatch.setattr("app.knowledge.indexing.derive.read_issue", lambda _text: 1 / 0)
    with store.unit_of_work() as session:
        derive_issues(session, repo_id, REPO, [900])

    assert links(store) == {}


def test_no_issue_has_more_links_than_a_reader_can_use_and_all_stay_symmetric(
    store: Store, keep: Keep
) -> None:
    for start in (900, 910, 920, 930):
        keep(*(crash(number) for number in range(start, start + 10)))
    found = ends(links(store))

    assert max(len(answer) for answer in links(store).values()) <= SIMILAR_MAX
    assert {(two, one, score) for one, two, score in found} == found


def test_links_that_are_no_more_than_related_are_few(
    store: Store, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linking, "RELATED_MAX", 0)
    keep(crash(900), crash(901))

    assert all((link.score or 0) > 0.5 for found in links(store).values() for link in found)


def test_reading_everything_again_under_the_same_rules_changes_no_link(store: Store, keep: Keep) -> None:
    keep(crash(900), crash(901), crash(902, TITLES[1], OTHER))
    keep(crash(903), crash(904, TITLES[1], OTHER))
    before = links(store)
    rederive_all(store, REPO, lambda _progress: None)

    assert links(store) == before


def test_stored_links_are_made_again_when_weights_or_rules_changed(
    store: Store, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(crash(900), crash(901))
    assert ends(links(store))

    monkeypatch.setattr(linking, "score_pair", lambda one, two: replace(score_pair(one, two), band=None))
    rederive_all(store, REPO, lambda _progress: None)
    assert ends(links(store))

    monkeypatch.setattr(score, "RULES", "other")
    rederive_all(store, REPO, lambda _progress: None)
    assert not ends(links(store))


def test_linking_all_again_under_other_weights_keeps_each_issue_s_older_ones(
    store: Store, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    def related(one: PairFeatures, two: PairFeatures) -> PairScore:
        return replace(score_pair(one, two), band="related")

    monkeypatch.setattr(linking, "RELATED_MAX", 1)
    monkeypatch.setattr(linking, "score_pair", related)
    for number, days in ((900, 0), (901, 20), (902, 30), (903, 31)):
        keep(replace(crash(number), created_at=EARLY + timedelta(days=days)))
    before = ends(links(store))
    monkeypatch.setattr(linking, "links_version", lambda: "other")
    with store.unit_of_work() as session:
        for number in range(900, 904):
            derive_issues(session, 1, REPO, [number])

    assert {(one, two) for one, two, _ in before if one > two} == {(901, 900), (902, 901), (903, 902)}
    assert ends(links(store)) == before


@given(
    st.lists(st.tuples(st.sampled_from(TITLES), st.sampled_from([CRASH, OTHER, ""])), min_size=2, max_size=6),
    st.permutations(range(6)),
)
@settings(max_examples=settings.default.max_examples // 6)
def test_links_are_symmetric_and_stay_in_whatever_order_issues_come(
    tmp_path_factory: pytest.TempPathFactory, texts: list[tuple[str, str]], order: list[int]
) -> None:
    store = open_store(f"sqlite:///{tmp_path_factory.mktemp('links')}/base.db")
    migrate(store)
    for at in (at for at in order if at < len(texts)):
        with store.unit_of_work() as session:
            repo_id = add_repository(session, REPO)
            title, log = texts[at]
            save_issues(session, repo_id, [an_issue(900 + at, title=title, body=f"```\n{log}\n```")])
            derive_issues(session, repo_id, REPO, [900 + at])
    before = links(store)
    found = ends(before)
    assert {(two, one, score) for one, two, score in found} == found

    rederive_all(store, REPO, lambda _progress: None)
    assert links(store) == before
    store.close()


def test_a_warning_of_good_runs_makes_an_issue_like_no_log_that_fails_with_the_error_it_names(
    store: Store, keep: Keep
) -> None:
    warning = (
        "WARNING 02-01 17:03:01 [system_utils.py:262] Found ulimit of 4096 and failed to automatically increase "
        "with error current limit exceeds maximum limit. This can cause fd limit errors like "
        "`OSError: [Errno 24] Too many open files`. Consider increasing with ulimit -n\n"
    )
    keep(an_issue(1, body=fenced("See.", warning + marlin_log())))

    assert (
        matches_of(
            store, a_traceback("OSError: [Errno 24] Too many open files", "zmq/sugar/context.py:socket")
        )
        == []
    )
