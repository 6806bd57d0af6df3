"""What is counted is what is stored."""

from __future__ import annotations

from sqlalchemy.orm import Session

from app.store.derived.search_index import count_indexed, hash_terms, index_terms
from app.store.github.counts import Stock, find_stock
from app.store.github.issues import add_repository, save_issues
from app.store.github.sync_state import begin_run, end_run, fresh_as_of
from app.store.schema import migrate
from app.store.session import Store, remembered
from tests.samples import REPO, an_issue
from tests.store.conftest import fill

OTHER = "vllm-project/vllm-ascend"


def put(session: Session, *numbers: int, repo: str = REPO) -> None:
    repo_id = add_repository(session, repo)
    save_issues(session, repo_id, [an_issue(number) for number in numbers])
    index_terms(session, repo_id, {number: hash_terms({(1, "word"): 1}) for number in numbers})


def test_a_base_goes_back_to_kept_counts_and_forth(store: Store) -> None:
    fill(store)
    migrate(store, "20261127_browse")
    migrate(store)
    with store.reading() as session:
        assert find_stock(session, (REPO,)).issues > 0


def test_what_is_indexed_again_is_counted_once(store: Store) -> None:
    for numbers in ((1, 2, 3), (3, 4)):
        with store.unit_of_work() as session:
            put(session, *numbers)
    with store.reading() as session:
        assert count_indexed(session) == 4


def test_an_answer_is_remembered_until_content_is_written(store: Store) -> None:
    answers = iter("abc")

    def ask(session: Session) -> str:
        return remembered(session, "name", lambda: next(answers))

    with store.reading() as before:
        assert [ask(before), ask(before)] == ["a", "a"]
        with store.unit_of_work() as session:
            put(session, 1)
        with store.reading() as session:
            assert ask(session) == "b"
        assert ask(before) == "a"
    with store.reading() as session:
        assert ask(session) == "b"


def test_the_stock_names_the_repositories_of_which_anything_is_stored(store: Store) -> None:
    for repo, numbers in ((REPO, (1, 2, 3)), (OTHER, (4,))):
        with store.unit_of_work() as session:
            put(session, *numbers, repo=repo)
            for _ in range(2):
                run = begin_run(session, add_repository(session, repo))
                end_run(session, run, outcome="complete")
    with store.reading() as session:
        ended = [fresh_as_of(session, repo_id) for repo_id in (1, 2)]
        mine, both = find_stock(session, (REPO, "nobody/nothing")), find_stock(session, (OTHER, REPO))

    assert mine == Stock({1: REPO}, issues=3, as_of=ended[0])
    assert both == Stock({2: OTHER, 1: REPO}, issues=4, as_of=min(ended, key=str))
