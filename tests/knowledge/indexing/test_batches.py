"""Reading everything again: beside a sync that writes, and as a mere comparison that writes nothing."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
import time_machine
from sqlalchemy import event, text

from app.errors import NotFoundError
from app.extract.facts import Facts
from app.extract.reader import RULES_VERSION, IssueReading, read_issue
from app.extract.text.document import IssueText
from app.knowledge.indexing import batches, derive, readers
from app.knowledge.indexing.batches import (
    derive_changed,
    derive_stale,
    load_starter_set,
    rederive_all,
    stored_numbers,
)
from app.knowledge.indexing.derive import Source, StoredReading, derive_issues
from app.knowledge.indexing.diff import ReadingDiff, diff_all
from app.paths import cards_dir
from app.starter.card import CardError
from app.store.derived.readings import Reading, find_facts, find_kept_readings, save_readings, stale_numbers
from app.store.github.issues import (
    add_repository,
    count_issues,
    find_issue,
    find_repository,
    save_comments,
    save_issues,
)
from app.store.github.releases import first_releases_of
from app.store.records import CommentRecord, IssueRecord, LinkRecord, Progress, quiet
from app.store.session import Store
from app.store.tables import metadata
from tests.knowledge.conftest import Keep
from tests.samples import LATE, REPO, a_comment, a_pull, an_issue, fenced, marlin_log, rope_log
from tests.starter_base import put_cards


def differing(diff: ReadingDiff) -> dict[str, tuple[int, int, int]]:
    return {
        item.field: (item.added, item.removed, item.changed)
        for item in diff.fields
        if item.added or item.removed or item.changed
    }


def other_rules(monkeypatch: pytest.MonkeyPatch, change: Callable[[Facts], Facts]) -> None:
    """From now on issues are read by rules that find what `change` makes of the facts."""

    def read(issue: IssueText) -> IssueReading:
        reading = read_issue(issue)
        return IssueReading(change(reading.facts), reading.errors, reading.document)

    monkeypatch.setattr(derive, "read_issue", read)


# What a change of the rules would alter


def test_under_the_same_rules_nothing_would_change(
    store: Store, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_cards(store)
    keep(
        an_issue(
            1, title="[Bug]: on 2x A100", body=fenced("Same as #2, since 0.9.0. On vLLM 0.9.1.", marlin_log())
        ),
        an_issue(2, author="reporter"),
        a_comment(5, 2, "`--enforce-eager` works for me.", author_association="MEMBER"),
        a_pull(7, body="Fixes #1"),
    )
    repo_id, numbers = stored_numbers(store, REPO)
    some = [*numbers[:3], *numbers[3::6]]  # each costs as much as reading it
    monkeypatch.setattr("app.knowledge.indexing.diff.stored_numbers", lambda *_: (repo_id, some))
    diff = diff_all(store, REPO, quiet)

    assert (differing(diff), diff.differing, diff.never_read) == ({}, 0, 0)
    assert diff.compared > 12
    assert diff.stored_rules == {RULES_VERSION: diff.compared}
    assert {"error.type", "gpus", "workarounds", "links"} <= {item.field for item in diff.fields}


def test_what_other_rules_read_is_told_with_the_issue(
    store: Store, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(an_issue(1, body="On A100."), an_issue(2, body="On L40S."), a_pull(3))
    other_rules(
        monkeypatch, lambda facts: facts.model_copy(update={"gpus": ("H100",) if facts.number == 2 else ()})
    )
    diff = diff_all(store, REPO, quiet)
    gpus = next(item for item in diff.fields if item.field == "gpus")

    assert differing(diff) == {"gpus": (0, 1, 1)}
    assert (diff.compared, diff.differing, gpus.before, gpus.after) == (3, 2, 2, 1)
    assert [(item.number, item.kind, item.before, item.after) for item in gpus.examples] == [
        (1, "removed", "A100", ""),
        (2, "changed", "L40S", "H100"),
    ]


def test_what_the_diff_foretells_is_what_reading_again_does(
    store: Store, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(an_issue(1, body="On A100."), an_issue(2))
    other_rules(monkeypatch, lambda facts: facts.model_copy(update={"gpus": ("H100", "L40S")}))
    foretold = diff_all(store, REPO, quiet)
    rederive_all(store, REPO, quiet)

    assert differing(foretold) == {"gpus": (1, 0, 1)}
    assert differing(diff_all(store, REPO, quiet)) == {}


def test_comments_are_read_as_reading_again_reads_them(store: Store, keep: Keep) -> None:
    keep(an_issue(1, author="reporter"))
    with store.unit_of_work() as session:
        save_readings(session, 1, [Reading(1, Facts(number=1))], rules_version="2026-01-01")
        save_comments(session, 1, [a_comment(5, 1, "`--enforce-eager` works for me.")])
    diff = diff_all(store, REPO, quiet)

    assert diff.stored_rules == {"unread": 1}
    assert differing(diff)["workarounds"] == (1, 0, 0)


def test_a_rule_that_throws_now_takes_all_values(
    store: Store, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(an_issue(1, body="On A100."))

    def fail(facts: Facts) -> Facts:
        raise RecursionError

    other_rules(monkeypatch, fail)
    found = differing(diff_all(store, REPO, quiet))

    assert (found["fault"], found["gpus"]) == ((1, 0, 0), (0, 1, 0))


def test_the_links_of_a_pull_request_are_compared(store: Store, keep: Keep) -> None:
    keep(an_issue(1), a_pull(7, body="Fixes #1"))
    similar = LinkRecord(REPO, 1, "similar", "same frames", 0.8, "log")
    with store.unit_of_work() as session:
        save_readings(session, 1, [Reading(7, Facts(number=7), links=(similar,))], rules_version="old")

    assert differing(diff_all(store, REPO, quiet)) == {"links": (1, 0, 0)}


def test_facts_that_older_rules_left_in_another_shape_are_compared(store: Store, keep: Keep) -> None:
    keep(an_issue(1, body="On A100."))
    with store.unit_of_work() as session:
        reading = metadata.tables["reading"]
        session.connection().execute(reading.update().values(facts={"number": 1, "accelerator": "A100"}))
    found = differing(diff_all(store, REPO, quiet))

    assert (found["accelerator"], found["gpus"]) == ((0, 1, 0), (1, 0, 0))


def test_issues_that_were_never_read_are_only_counted(store: Store, keep: Keep) -> None:
    repo_id = keep(an_issue(1))
    with store.unit_of_work() as session:
        save_issues(session, repo_id, [an_issue(2), an_issue(3)])
    diff = diff_all(store, REPO, quiet)

    assert (diff.compared, diff.never_read, differing(diff)) == (1, 2, {})


def test_the_comparison_goes_in_batches_and_tells_how_far_it_is(
    store: Store, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.knowledge.indexing.diff.BATCH", 2)
    keep(*(an_issue(number) for number in (1, 2, 3)), a_pull(4), an_issue(5))
    found: list[Progress] = []

    assert diff_all(store, REPO, found.append).compared == 5
    assert [(step.done, step.total) for step in found] == [(2, 5), (4, 5), (5, 5)]


def test_the_comparison_writes_nothing(store: Store, keep: Keep, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(an_issue(1, body=fenced("On A100.", marlin_log())))
    other_rules(monkeypatch, lambda facts: facts.model_copy(update={"gpus": ()}))
    statements: list[str] = []
    event.listen(store.engine, "before_cursor_execute", lambda *told: statements.append(told[2]))
    diff = diff_all(store, REPO, quiet)

    assert diff.differing == 1
    assert {statement.split()[0] for statement in statements} - {"BEGIN"} == {"SELECT"}
    assert "BEGIN IMMEDIATE" not in statements


def test_an_unknown_repository_is_named(store: Store) -> None:
    with pytest.raises(NotFoundError, match="acme/engine"):
        diff_all(store, "acme/engine", quiet)


def test_a_kept_reading_is_what_was_saved(store: Store, keep: Keep) -> None:
    keep(an_issue(1, body="On A100, see #2."), an_issue(2))
    with store.reading() as session:
        kept = find_kept_readings(session, 1, [1, 404])
        facts = find_facts(session, 1, [1])[1]

    assert list(kept) == [1]
    assert kept[1].facts == facts.model_dump(mode="json", exclude={"evidence"})
    assert (kept[1].rules_version, kept[1].fault) == (RULES_VERSION, None)
    assert [(link.target_number, link.kind) for link in kept[1].links] == [(2, "mentions")]


# Beside a sync


@contextmanager
def beside(work: Callable[[], object]) -> Iterator[threading.Thread]:
    """Does the work in another thread, to its end; its fault is ours."""
    faults: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            faults.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield thread
    finally:
        thread.join(60)
    assert (faults, thread.is_alive()) == ([], False)


def test_reading_again_waits_for_a_writer_and_reads_what_it_stored(store: Store, keep: Keep) -> None:
    repo_id = keep(an_issue(1, body=fenced("See.", marlin_log())))
    with ExitStack() as end, store.unit_of_work() as session:
        save_issues(session, repo_id, [an_issue(1, body=fenced("See.", rope_log()), updated_at=LATE)])
        thread = end.enter_context(beside(lambda: rederive_all(store, REPO, quiet)))
        thread.join(1)
        waits = thread.is_alive()

    with store.reading() as session:
        error = find_facts(session, repo_id, [1])[1].error
        stale = stale_numbers(session, repo_id, RULES_VERSION)
    assert error is not None
    assert (waits, error.type, stale) == (True, "KeyError", [])


def test_many_that_read_the_same_issues_at_once_do_not_collide(store: Store, keep: Keep) -> None:
    logs = (marlin_log(), rope_log())
    repo_id = keep(*(an_issue(n, body=fenced("See.", logs[n % 2])) for n in range(1, 13)))
    start = threading.Barrier(3)

    def sync() -> None:
        """The issues swap their logs again and again, so that the terms' frequencies go up and down."""
        start.wait(10)
        for turn in range(1, 5):
            now = datetime.now(UTC)
            rows = [
                an_issue(n, body=fenced("See.", logs[(n + turn) % 2]), updated_at=now) for n in range(1, 13)
            ]
            with store.unit_of_work() as session:
                save_issues(session, repo_id, rows)
            with store.unit_of_work() as session:
                derive_issues(session, repo_id, REPO, [row.number for row in rows])

    def again() -> None:
        start.wait(10)
        for _ in range(4):
            rederive_all(store, REPO, quiet)

    with beside(sync), beside(again), beside(again):
        pass
    with store.reading() as session:
        counts = session.connection().execute(text("SELECT id, df FROM term WHERE df > 0")).all()
        postings = (
            session.connection().execute(text("SELECT term_id, count(*) FROM posting GROUP BY term_id")).all()
        )
        stale = stale_numbers(session, repo_id, RULES_VERSION)
    assert sorted(map(tuple, counts)) == sorted(map(tuple, postings))
    assert stale == []


# The starter cards, loaded into an empty base


CARDS = len(list(cards_dir().glob("*.toml")))


def counts(store: Store) -> dict[str, int]:
    with store.reading() as session:
        return count_issues(session, find_repository(session, REPO))


def test_an_empty_base_gets_all_cards(store: Store) -> None:
    assert load_starter_set(store) == CARDS
    assert counts(store) == {"issues": CARDS, "pulls": 0, "from_cards": CARDS}


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """A folder of two cards."""
    folder = tmp_path / "few"
    folder.mkdir()
    for path in sorted(cards_dir().glob("*.toml"))[:2]:
        shutil.copy(path, folder)
    return folder


def test_a_second_time_nothing_is_loaded(store: Store) -> None:
    put_cards(store)

    assert load_starter_set(store) == 0


def test_a_base_that_holds_issues_gets_the_release_table_only(store: Store, keep: Keep) -> None:
    repo_id = keep(an_issue(1))

    assert load_starter_set(store) == 0
    assert counts(store) == {"issues": 1, "pulls": 0, "from_cards": 0}
    with store.reading() as session:
        assert first_releases_of(session, repo_id, [1, 27420]) == {1: "v0.1.0", 27420: "v0.11.1"}


def test_a_base_of_pull_requests_only_gets_them(store: Store, keep: Keep, few: Path) -> None:
    keep(a_pull(1))

    assert load_starter_set(store, few) == 2


def test_a_base_of_another_repository_gets_them(store: Store, keep: Keep, few: Path) -> None:
    keep(an_issue(1), repo="other/engine")

    assert load_starter_set(store, few) == 2


def test_a_card_becomes_an_issue_that_says_where_it_is_from(store: Store) -> None:
    put_cards(store)
    with store.reading() as session:
        issue = find_issue(session, 1, 39288)

    assert issue is not None
    assert (issue.origin, issue.url, issue.raw) == ("card", f"https://github.com/{REPO}/issues/39288", None)


def test_one_faulty_card_keeps_all_out(store: Store, tmp_path: Path) -> None:
    shutil.copytree(cards_dir(), tmp_path / "cards")
    (tmp_path / "cards" / "1-broken.toml").write_text("number = 'one'")

    with pytest.raises(CardError, match=r"^1-broken\.toml: "):
        load_starter_set(store, tmp_path / "cards")
    assert not any(counts(store).values())


def test_a_clock_that_was_ahead_keeps_no_change_from_being_read(store: Store) -> None:
    def save(issue: IssueRecord) -> list[int]:
        with store.unit_of_work() as session:
            repo_id = add_repository(session, REPO)
            save_issues(session, repo_id, [issue])
            return stale_numbers(session, repo_id, RULES_VERSION)

    with time_machine.travel("2099-01-01"):
        save(an_issue(1))
        derive_stale(store, REPO)

    assert save(an_issue(1)) == []
    assert save(an_issue(1, body="Another text", updated_at=LATE)) == [1]


def save_first(store: Store) -> int:
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        save_issues(session, repo_id, [an_issue(1)])
    return repo_id


def test_no_writer_waits_while_an_issue_is_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    save_first(store)
    written: list[int] = []
    read = readers.read_sources

    def read_slowly(sources: Sequence[Source]) -> list[StoredReading]:
        with store.unit_of_work() as session:
            written.append(add_repository(session, f"acme/other-{len(written)}"))
        return read(sources)

    monkeypatch.setattr(readers, "read_sources", read_slowly)
    monkeypatch.setattr("app.store.engine.connect.BUSY_TIMEOUT_MS", 100)

    assert derive_changed(store, REPO, [1]).read == 1
    assert len(written) == 1


def test_an_issue_whose_text_changes_whenever_it_is_read_is_left_to_who_changes_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo_id = save_first(store)
    texts: list[str] = []
    read = readers.read_sources

    def change(sources: Sequence[Source]) -> list[StoredReading]:
        texts.append(sources[0].issue.body)
        with store.unit_of_work() as session:
            save_issues(session, repo_id, [an_issue(1, body=f"text {len(texts)}", updated_at=LATE)])
        return read(sources)

    monkeypatch.setattr(readers, "read_sources", change)
    assert derive_changed(store, REPO, [1]).read == 0
    assert len(texts) == batches.TRIES
    with store.reading() as session:
        assert stale_numbers(session, repo_id, RULES_VERSION) == [1]


def test_of_very_long_comments_the_start_of_each_is_read() -> None:
    comments = [CommentRecord(id=at, issue_number=1, body="x " * 30_000) for at in range(30)]
    text = derive.issue_text_of(derive.Source(REPO, an_issue(1), tuple(comments)))

    assert 390_000 < sum(len(comment.body) for comment in text.comments) <= derive.COMMENTS_CHARS
