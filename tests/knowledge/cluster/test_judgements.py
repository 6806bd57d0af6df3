"""People's judgement outlives everything that is derived, and can be taken back."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from app.errors import InputError, NotFoundError, PullRequestError
from app.knowledge.cluster.judgements import Judgement, judge, judgements, undo
from app.knowledge.indexing.batches import rederive_all
from app.knowledge.indexing.derive import derive_issues
from app.store.github.issues import add_repository, find_repository, save_issues
from app.store.people import judged_pairs
from app.store.schema import migrate
from app.store.session import Store, open_store
from tests.knowledge.conftest import Keep
from tests.samples import LATE, REPO, a_pull, an_issue

NUMBERS = (900, 901, 902)
PAIRS = st.sampled_from([(900, 901), (901, 902), (902, 900)])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("derive"), st.sampled_from(NUMBERS), st.none()),
        st.tuples(st.just("rederive"), st.none(), st.none()),
        st.tuples(st.just("edit"), st.sampled_from(NUMBERS), st.none()),
        st.tuples(st.just("judge"), PAIRS, st.sampled_from(["same", "different"])),
        st.tuples(st.just("undo"), PAIRS, st.none()),
    ),
    max_size=10,
)
_names = count()


def test_two_issues_are_judged_and_the_judgement_is_listed(store: Store, keep: Keep) -> None:
    keep(an_issue(900), an_issue(901))
    judgement, is_new = judge(store, REPO, 901, 900, "different", "other cause")

    assert is_new
    assert (judgement.repo, judgement.a, judgement.b, judgement.note) == (REPO, 900, 901, "other cause")
    assert judgements(store, REPO) == (judgement,)


def test_one_issue_is_no_pair(store: Store) -> None:
    with pytest.raises(InputError):
        judge(store, REPO, 900, 900, "same")


def test_what_is_not_stored_cannot_be_judged(store: Store, keep: Keep) -> None:
    keep(an_issue(900))

    with pytest.raises(NotFoundError, match="901"):
        judge(store, REPO, 900, 901, "same")


def test_a_pull_request_is_not_judged(store: Store, keep: Keep) -> None:
    keep(an_issue(900), a_pull(950))

    with pytest.raises(PullRequestError):
        judge(store, REPO, 900, 950, "same")


def test_an_undone_judgement_is_listed_only_in_the_trail(store: Store, keep: Keep) -> None:
    keep(an_issue(900), an_issue(901))
    judgement, _ = judge(store, REPO, 900, 901, "same")
    undone = undo(store, (REPO,), judgement.id)

    assert undone.undone_why == "undone"
    assert judgements(store, REPO) == ()
    assert judgements(store, REPO, ended=True) == (undone,)


def test_a_judgement_of_another_repository_is_not_undone(store: Store, keep: Keep) -> None:
    keep(an_issue(900), an_issue(901))
    judgement, _ = judge(store, REPO, 900, 901, "same")

    with pytest.raises(NotFoundError):
        undo(store, ("else/where",), judgement.id)
    assert judgements(store, REPO) == (judgement,)


@pytest.fixture(scope="module")
def kept_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path_factory.mktemp('judged')}/triage.db")
    migrate(opened)
    yield opened
    opened.close()


@given(steps=STEPS)
@hypothesis_settings(max_examples=hypothesis_settings.default.max_examples // 5)
def test_no_rebuild_breaks_a_judgement(kept_store: Store, steps: list[tuple[str, object, object]]) -> None:
    repo = f"judged/rebuilt-{next(_names)}"
    with kept_store.unit_of_work() as session:
        repo_id = add_repository(session, repo)
        save_issues(session, repo_id, [an_issue(number) for number in NUMBERS])
    output: dict[tuple[int, int], object] = {}
    in_force: dict[tuple[int, int], Judgement] = {}
    for what, on, verdict in steps:
        _step(kept_store, repo, repo_id, what, on, verdict, output, in_force)
        with kept_store.reading() as session:
            assert judged_pairs(session, repo_id, NUMBERS) == output
    listed = {(one.a, one.b): one for one in judgements(kept_store, repo)}
    assert listed == in_force


def _step(
    store: Store,
    repo: str,
    repo_id: int,
    what: str,
    on: object,
    verdict: object,
    said: dict[tuple[int, int], object],
    in_force: dict[tuple[int, int], Judgement],
) -> None:
    if what == "rederive":
        rederive_all(store, repo, lambda _: None)
    elif what in {"derive", "edit"}:
        with store.unit_of_work() as session:
            if what == "edit":
                save_issues(
                    session, repo_id, [an_issue(on, body=f"It fails {next(_names)}.", updated_at=LATE)]
                )  # type: ignore[arg-type]
            derive_issues(session, repo_id, repo, [on])  # type: ignore[list-item]
    else:
        pair: tuple[int, int] = tuple(sorted(on))  # type: ignore[call-overload]
        if what == "judge":
            in_force[pair], _ = judge(store, repo, *pair, verdict)  # type: ignore[arg-type]
            said[pair] = verdict
        elif pair in said:
            undo(store, (repo,), in_force.pop(pair).id)
            del said[pair]


def test_a_repository_that_is_not_stored_has_no_judgements(store: Store) -> None:
    with store.reading() as session:
        assert not find_repository(session, "no/where")
    assert judgements(store, "no/where") == ()
