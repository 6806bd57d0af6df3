"""Which stored issues share the rarest terms with a log."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from sqlalchemy.orm import Session

from app.match.search import log_search as candidates
from app.match.search.log_query import LogQuery, Part
from app.match.search.log_search import CANDIDATES, Candidate, find_candidates
from app.match.search.terms import ERROR, FRAME, SIGNATURE, TEXT
from app.store.derived.search_index import hash_terms, index_terms
from app.store.github.issues import add_repository, save_issues
from app.store.session import Store, open_store
from tests.samples import REPO, an_issue

Terms = dict[tuple[int, str], int]

PARTS: dict[int, Part] = {TEXT: "context", ERROR: "error", FRAME: "frames", SIGNATURE: "signature"}

WORDS = ("common", "cuda", "graph", "weights")
COMMON: Terms = {(TEXT, "common"): 1}


def put(session: Session, stored: dict[int, Terms], repo: str = REPO) -> int:
    repo_id = add_repository(session, repo)
    save_issues(session, repo_id, [an_issue(number) for number in stored])
    index_terms(session, repo_id, {number: hash_terms(terms) for number, terms in stored.items()})
    return repo_id


def fill(store: Store, stored: dict[int, Terms], repo: str = REPO) -> int:
    with store.unit_of_work() as session:
        return put(session, stored, repo)


@pytest.fixture
def by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A base that is weighed by its own counts, as a full one is."""
    monkeypatch.setattr("app.match.search.bm25.ISSUES", 0)


def asked(terms: Terms) -> LogQuery:
    return LogQuery({term: PARTS[term[0]] for term in terms}, is_common=False)


def candidates_of(session: Session, terms: Terms, repo_ids: list[int] | None = None) -> list[Candidate]:
    """The candidates, those that share most first."""
    found = find_candidates(session, asked(terms), repo_ids)
    return sorted(found, key=lambda item: (-sum(item.scores.values()), item.key))


def found(store: Store, terms: Terms, repo_ids: list[int] | None = None) -> list[tuple[int, int]]:
    with store.reading() as session:
        return [item.key for item in candidates_of(session, terms, repo_ids)]


def test_an_empty_base_has_no_candidates(store: Store) -> None:
    assert found(store, COMMON) == []


def test_a_log_without_terms_has_no_candidates(store: Store) -> None:
    fill(store, {1: COMMON})

    assert found(store, {}) == []


def test_an_issue_that_shares_nothing_is_no_candidate(store: Store) -> None:
    fill(store, {1: {(TEXT, "weights"): 1}, 2: {(TEXT, "cuda"): 1}})

    assert found(store, {(TEXT, "cuda"): 1}) == [(1, 2)]


def test_an_excluded_issue_takes_no_one_s_place(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.match.search.log_search.CANDIDATES", 2)
    repo_id = fill(store, dict.fromkeys((1, 2, 3, 4), COMMON))

    with store.reading() as session:
        keys = [item.key for item in find_candidates(session, asked(COMMON), exclude={1, 2})]

    assert keys == [(repo_id, 3), (repo_id, 4)]


def test_a_word_of_one_channel_does_not_match_another_s(store: Store) -> None:
    fill(store, {1: {(ERROR, "cuda"): 1}})

    assert found(store, {(TEXT, "cuda"): 1}) == []


def test_a_new_issue_is_found_within_the_unit_of_work_that_stores_it(store: Store) -> None:
    with store.unit_of_work() as session:
        repo_id = put(session, {7: COMMON})

        assert [item.key for item in candidates_of(session, COMMON)] == [(repo_id, 7)]


def test_a_new_issue_is_found_by_another_process_once_it_is_stored(store: Store) -> None:
    other = open_store(store.engine.url.render_as_string(hide_password=False))
    before = found(other, COMMON)
    fill(store, {7: COMMON})
    after = found(other, COMMON)
    other.close()

    assert (before, after) == ([], [(1, 7)])


def test_an_issue_read_anew_is_no_longer_found_by_what_it_held(store: Store) -> None:
    fill(store, {7: {(TEXT, "cuda"): 1}})
    with store.unit_of_work() as session:
        index_terms(session, 1, {7: hash_terms(COMMON)})

    assert (found(store, {(TEXT, "cuda"): 1}), found(store, COMMON)) == ([], [(1, 7)])


@pytest.mark.usefixtures("by_itself")
def test_a_rare_term_weighs_more_than_a_common_one(store: Store) -> None:
    fill(store, dict.fromkeys(range(1, 9), COMMON) | {9: {(TEXT, "weights"): 1}})

    assert found(store, COMMON | {(TEXT, "weights"): 1})[0] == (1, 9)


def test_who_shares_more_comes_first(store: Store) -> None:
    fill(store, {1: {(ERROR, "a"): 1}, 2: {(ERROR, "a"): 1, (FRAME, "f"): 1}, 3: {(TEXT, "other"): 1}})

    assert found(store, {(ERROR, "a"): 1, (FRAME, "f"): 1}) == [(1, 2), (1, 1)]


def test_equals_come_in_the_order_of_their_numbers_however_they_were_stored(store: Store) -> None:
    for number in (9, 3, 7):
        fill(store, {number: COMMON})

    assert found(store, COMMON) == [(1, 3), (1, 7), (1, 9)]


def test_of_equals_at_the_limit_the_same_ones_are_weighed_on_both_engines(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates, "CANDIDATES", 2)
    for number in (9, 3, 7):
        fill(store, {number: COMMON})

    assert found(store, COMMON) == [(1, 3), (1, 7)]


def test_only_asked_repositories_are_searched(store: Store) -> None:
    here = fill(store, {1: COMMON})
    there = fill(store, {1: COMMON}, "other/engine")

    assert found(store, COMMON, [there]) == [(there, 1)]
    assert sorted(found(store, COMMON)) == [(here, 1), (there, 1)]
    assert found(store, COMMON, []) == []


def test_each_part_of_the_query_has_its_share(store: Store) -> None:
    fill(store, {1: {(ERROR, "a"): 1, (FRAME, "f"): 1}, 2: {(ERROR, "b"): 1}})
    with store.reading() as session:
        [item, _] = candidates_of(session, {(ERROR, "a"): 1, (ERROR, "b"): 1, (FRAME, "f"): 1})

    shares = {part: round(share, 6) for part, share in item.shares.items() if share}
    assert shares == {"error": 0.5, "frames": 1}


def test_a_term_that_no_issue_holds_lowers_the_share(store: Store) -> None:
    fill(store, {1: {(ERROR, "a"): 1}, 2: {(ERROR, "a"): 1}})
    with store.reading() as session:
        shares = [
            candidates_of(session, terms)[0].shares["error"]
            for terms in ({(ERROR, "a"): 1}, {(ERROR, "a"): 1, (ERROR, "never seen"): 1})
        ]

    assert shares[0] == 1
    assert 0 < shares[1] < 0.5


def test_a_term_that_no_issue_holds_leaves_the_known_share_as_it_is(store: Store) -> None:
    fill(store, {1: {(ERROR, "a"): 1}})
    with store.reading() as session:
        [item] = candidates_of(session, {(ERROR, "a"): 1, (ERROR, "never seen"): 1})

    assert item.known_shares["error"] == 1


def test_shared_terms_are_told_the_weightiest_first(store: Store) -> None:
    fill(store, {1: {(TEXT, "common"): 1, (ERROR, "rare"): 1}, 2: COMMON, 3: COMMON})
    with store.reading() as session:
        best = candidates_of(session, {(TEXT, "common"): 1, (ERROR, "rare"): 1})[0]

    assert [(channel, term) for channel, term, _ in best.shared] == [(ERROR, "rare"), (TEXT, "common")]


def test_no_more_candidates_than_the_limit_are_weighed(store: Store) -> None:
    fill(store, dict.fromkeys(range(1, CANDIDATES + 30), COMMON))

    assert len(found(store, COMMON)) == CANDIDATES


@pytest.mark.usefixtures("by_itself")
def test_very_common_terms_are_not_read_when_the_budget_is_spent(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates, "POSTINGS_MAX", 3)
    fill(store, dict.fromkeys(range(1, 9), COMMON) | {9: {(TEXT, "weights"): 1}})

    assert found(store, COMMON | {(TEXT, "weights"): 1}) == [(1, 9)]


def test_the_rarest_term_is_read_however_common_it_is(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "POSTINGS_MAX", 3)
    fill(store, dict.fromkeys(range(1, 9), COMMON))

    assert len(found(store, COMMON)) == 8


term_sets = st.dictionaries(
    st.tuples(st.sampled_from([TEXT, ERROR, FRAME, SIGNATURE]), st.sampled_from(WORDS)),
    st.integers(1, 9),
    max_size=8,
)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.integers(1, 30), term_sets, max_size=12), term_sets)
def test_both_engines_rank_alike(
    sqlite_store: Store, postgresql_store: Store, stored: dict[int, Terms], query: Terms
) -> None:
    answers = []
    for store in (sqlite_store, postgresql_store):
        with store.unit_of_work() as session:
            for table in ("posting", "term", "profile"):
                session.connection().execute(text(f"DELETE FROM {table}"))
            put(session, stored)
        with store.reading() as session:
            answers.append(candidates_of(session, query))

    assert answers[0] == answers[1]


def rarities(store: Store, terms: Terms) -> dict[int, tuple[float, float]]:
    with store.reading() as session:
        return {item.key[1]: (item.rare, item.scarce) for item in candidates_of(session, terms)}


@pytest.mark.usefixtures("by_itself")
def test_words_that_few_issues_hold_are_told_apart(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "RARE_DF", 1)
    monkeypatch.setattr(candidates, "SCARCE_DF", 2)
    everywhere = dict.fromkeys((1, 2, 3), COMMON)
    fill(
        store,
        everywhere
        | {1: {**COMMON, (TEXT, "weights"): 1, (TEXT, "graph"): 1}, 2: {**COMMON, (TEXT, "graph"): 1}},
    )

    found_of = rarities(store, {(TEXT, word): 1 for word in ("common", "weights", "graph")})

    assert found_of == {1: (1.0, 1.0), 2: (0.0, 1.0), 3: (0.0, 0.0)}


@pytest.mark.usefixtures("by_itself")
def test_a_rare_word_that_no_issue_holds_counts_against_none(store: Store) -> None:
    fill(store, {1: {(TEXT, "weights"): 1}})

    assert rarities(store, {(TEXT, "weights"): 1, (TEXT, "never seen"): 1})[1][0] == 1.0


def test_without_rare_words_neither_much_nor_little_is_told(store: Store) -> None:
    fill(store, {1: {(ERROR, "a"): 1}})

    assert rarities(store, {(ERROR, "a"): 1}) == {1: (0.5, 0.5)}


def test_in_a_small_base_the_missing_who_would_share_the_error_are_told(store: Store) -> None:
    fill(
        store,
        {
            1: {(ERROR, "memory"): 1},
            2: {(ERROR, "memory"): 1, (ERROR, "quokkapouch"): 1},
            3: {(TEXT, "memory"): 1},
        },
    )
    query: Terms = {(ERROR, "memory"): 1, (ERROR, "quokkapouch"): 1, (TEXT, "memory"): 1}

    with store.reading() as session:
        crowds = {item.key[1]: item.crowd for item in candidates_of(session, query)}

    assert crowds[1] > 100
    assert crowds[2] == crowds[3] == 0


@pytest.mark.usefixtures("by_itself")
def test_in_a_full_base_nobody_is_missing(store: Store) -> None:
    fill(store, {1: {(ERROR, "memory"): 1}})

    with store.reading() as session:
        assert [item.crowd for item in candidates_of(session, {(ERROR, "memory"): 1})] == [0]
