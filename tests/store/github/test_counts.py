"""How many issues a repository has is told as its rows are, whatever was done to them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from sqlalchemy import event, text
from sqlmodel import Session

from app.store.backup.backup import back_up, restore
from app.store.backup.copy import copy_base
from app.store.derived.search_index import count_indexed, index_terms
from app.store.github.counts import KeptCounts, Stock, correct_tally, count_anew, find_stock, find_tallies
from app.store.github.issues import add_repository, count_issues, save_issues
from app.store.github.presence import mark_gone
from app.store.github.sync_state import begin_run, end_run
from app.store.records import CARD, GITHUB
from app.store.schema import migrate
from app.store.session import Store, open_store, remembered
from tests.samples import REPO, a_pull, an_issue
from tests.store.conftest import fill

OTHER = "vllm-project/vllm-ascend"
BEFORE_TALLY = "20261127_browse"
repos = st.sampled_from((REPO, OTHER))
some_numbers = st.lists(st.integers(1, 8), min_size=1, max_size=4, unique=True)
origins = st.sampled_from((CARD, GITHUB))


class GivenUpError(Exception):
    """Ends a transaction without a commit."""


def put(session: Session, *numbers: int, repo: str = REPO) -> None:
    repo_id = add_repository(session, repo)
    save_issues(session, repo_id, [an_issue(number) for number in numbers])
    index_terms(session, repo_id, {number: {(1, "word"): 1} for number in numbers})


def told(store: Store) -> dict[str, KeptCounts]:
    with store.reading() as session:
        return {tally.repo: tally.counts for tally in find_tallies(session)}


def counted(store: Store) -> dict[str, KeptCounts]:
    with store.reading() as session:
        return {tally.repo: count_anew(session, tally.repo_id) for tally in find_tallies(session)}


def indexed(store: Store) -> int:
    with store.reading() as session:
        return count_indexed(session)


class Writers(RuleBasedStateMachine):
    """Rows are stored, replaced, indexed, marked gone and given up, in any order, in a base of any past."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store

    @rule(repo=repos, numbers=some_numbers, is_pull=st.booleans(), origin=origins, keeps=st.booleans())
    def save(self, repo: str, numbers: Sequence[int], is_pull: bool, origin: str, keeps: bool) -> None:
        make = a_pull if is_pull else an_issue
        with suppress(GivenUpError), self.store.unit_of_work() as session:
            records = [make(number, origin=origin) for number in numbers]
            save_issues(session, add_repository(session, repo), [*records, *records[:1]])
            if not keeps:
                raise GivenUpError

    @rule(repo=repos, numbers=some_numbers, keeps=st.booleans())
    def index(self, repo: str, numbers: Sequence[int], keeps: bool) -> None:
        with suppress(GivenUpError), self.store.unit_of_work() as session:
            put(session, *numbers, repo=repo)
            if not keeps:
                raise GivenUpError

    @rule(number=st.integers(1, 8))
    def mark_gone(self, number: int) -> None:
        with self.store.unit_of_work() as session:
            mark_gone(session, "issue", add_repository(session, REPO), number, "deleted")

    @invariant()
    def told_as_it_is(self) -> None:
        assert told(self.store) == counted(self.store)


def test_after_any_writes_the_counts_are_those_of_the_rows(store: Store) -> None:
    run_state_machine_as_test(
        lambda: Writers(store),
        settings=settings(max_examples=12, stateful_step_count=12, suppress_health_check=list(HealthCheck)),
    )
    assert any(counts.issues for counts in told(store).values())


def test_writers_at_the_same_time_are_all_counted(store: Store) -> None:
    with store.unit_of_work() as session:
        add_repository(session, REPO)

    def write(first: int) -> None:
        for number in range(first, first + 6):
            with store.unit_of_work() as session:
                put(session, number, number + 1)

    threads = [threading.Thread(target=write, args=(first,)) for first in (1, 3, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert told(store) == counted(store) == {REPO: KeptCounts(issues=11, indexed=11)}


def test_what_another_process_writes_is_counted(store: Store) -> None:
    before = indexed(store)
    other = open_store(store.engine.url.render_as_string(hide_password=False))
    with other.unit_of_work() as session:
        put(session, 1, 2)
    other.close()

    assert (before, indexed(store)) == (0, 2)


def test_a_writer_counts_what_it_wrote_itself(store: Store) -> None:
    with store.unit_of_work() as session:
        put(session, 1)
        first = count_indexed(session)
        put(session, 2)
        assert (first, count_indexed(session), count_issues(session, 1)["issues"]) == (1, 2, 2)


def test_a_copy_and_a_restored_backup_tell_the_same(store: Store, empty_url: str, tmp_path: Path) -> None:
    fill(store, issues=4)
    wanted = told(store)
    target = open_store(empty_url)
    copy_base(store, target)
    back_up(target, tmp_path / "triage.backup")
    target.close()
    restore(tmp_path / "triage.backup", empty_url, force=True)
    target = open_store(empty_url)
    with target.unit_of_work() as session:
        put(session, 1)

    assert wanted == {REPO: KeptCounts(issues=4, pulls=1, indexed=5)}
    assert told(target) == counted(target) == {REPO: KeptCounts(issues=5, pulls=1, indexed=6)}
    target.close()


def test_a_base_from_before_is_counted_as_it_is_migrated(store: Store) -> None:
    fill(store)
    wanted = told(store)
    migrate(store, BEFORE_TALLY)
    migrate(store)

    assert told(store) == wanted == counted(store)


def test_wrong_counts_are_put_right(store: Store) -> None:
    with store.unit_of_work() as session:
        put(session, 1, 2, 3)
        session.connection().execute(text("DELETE FROM profile WHERE number = 1"))
        session.connection().execute(text("UPDATE tally SET issues = 9"))

    with store.unit_of_work() as session:
        assert correct_tally(session, 1) == KeptCounts(issues=-6, indexed=-1)
    assert told(store) == {REPO: KeptCounts(issues=3, indexed=2)}
    with store.unit_of_work() as session:
        assert correct_tally(session, 1) == KeptCounts()


def test_one_who_only_reads_asks_once(store: Store) -> None:
    asked: list[Any] = []
    event.listen(store.engine, "before_cursor_execute", lambda *told: asked.append(told[2]))
    with store.reading() as session:
        find_stock(session, (REPO,))
        assert (count_indexed(session), count_issues(session, 1)["pulls"]) == (0, 0)
    assert len([statement for statement in asked if "tally" in statement]) == 1


def test_each_view_of_the_data_is_remembered_for_itself(store: Store) -> None:
    answers = iter("abc")
    with store.reading() as session:
        seen = [remembered(session, "name", lambda: next(answers)) for _ in range(2)]
    with store.reading() as session:
        seen.append(remembered(session, "name", lambda: next(answers)))
    assert seen == ["a", "a", "b"]


def test_the_stock_names_the_repositories_of_which_anything_is_stored(store: Store) -> None:
    ended = []
    for repo, numbers in ((REPO, (1, 2, 3)), (OTHER, (4,))):
        with store.unit_of_work() as session:
            put(session, *numbers, repo=repo)
            for _ in range(2):
                run = begin_run(session, add_repository(session, repo))
                end_run(session, run, outcome="complete")
    with store.reading() as session:
        ended = [tally.as_of for tally in find_tallies(session)]
        mine, both = find_stock(session, (REPO, "nobody/nothing")), find_stock(session, (OTHER, REPO))

    assert mine == Stock({1: REPO}, issues=3, as_of=ended[0])
    assert both == Stock({2: OTHER, 1: REPO}, issues=4, as_of=min(ended, key=str))
