"""The search index: frequencies, postings and profiles say the same at all times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from app.store.derived.search_index import (
    count_indexed,
    find_frequencies,
    find_postings,
    find_profiles,
    hash_terms,
    index_terms,
    term_id,
)
from app.store.engine.connect import KEYS_PER_QUERY
from app.store.github.issues import add_repository, save_issues
from app.store.session import Store
from tests.samples import REPO, an_issue

NUMBERS = (1, 2, 3)
VOCABULARY = [(channel, word) for channel in (1, 2) for word in ("cuda", "fp8", "moe_align", "größe")]
IDS = sorted(term_id(*term) for term in VOCABULARY)

Terms = Mapping[tuple[int, str], int]
terms = st.dictionaries(st.sampled_from(VOCABULARY), st.integers(1, 70_000), max_size=6)
batches = st.lists(st.dictionaries(st.sampled_from(NUMBERS), terms, max_size=3), max_size=6)


@pytest.fixture
def filled(store: Store) -> Store:
    with store.unit_of_work() as session:
        save_issues(session, add_repository(session, REPO), [an_issue(number) for number in NUMBERS])
    return store


def index(store: Store, batch: Mapping[int, Terms]) -> None:
    with store.unit_of_work() as session:
        index_terms(session, 1, {number: hash_terms(terms) for number, terms in batch.items()})


def unindex(store: Store) -> None:
    with store.unit_of_work() as session:
        for table in ("posting", "term", "profile"):
            session.connection().execute(text(f"DELETE FROM {table}"))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches)
def test_after_any_writes_frequencies_postings_and_profiles_agree(
    filled: Store, sequence: list[dict[int, Terms]]
) -> None:
    unindex(filled)
    wanted: dict[int, Terms] = {}
    for batch in sequence:
        index(filled, batch)
        wanted |= batch

    held = {(term_id(*term), number) for number, held in wanted.items() for term in held}
    with filled.reading() as session:
        profiles = find_profiles(session, [(1, number) for number in NUMBERS])
        assert find_frequencies(session, IDS) == Counter(key for key, _ in held)
        assert {(key, number) for key, _, number in find_postings(session, IDS)} == held
        assert count_indexed(session) == len(wanted)
        assert {
            number: dict(zip(profile.ids.tolist(), profile.counts.tolist(), strict=True))
            for (_, number), profile in profiles.items()
        } == {
            number: {term_id(*term): min(count, 65_535) for term, count in held.items()}
            for number, held in wanted.items()
        }


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches)
def test_both_engines_hold_the_same(
    sqlite_store: Store, postgresql_store: Store, sequence: list[dict[int, Terms]]
) -> None:
    answers = []
    for store in (sqlite_store, postgresql_store):
        with store.unit_of_work() as session:
            save_issues(session, add_repository(session, REPO), [an_issue(number) for number in NUMBERS])
        unindex(store)
        for batch in sequence:
            index(store, batch)
        with store.reading() as session:
            rows = [
                session.connection().execute(text(query)).all()
                for query in (
                    "SELECT id, df FROM term ORDER BY id",
                    "SELECT term_id, repo_id, number FROM posting ORDER BY 1, 2, 3",
                    "SELECT repo_id, number, terms FROM profile ORDER BY 1, 2",
                )
            ]
        answers.append([[tuple(row) for row in table] for table in rows])

    assert answers[0] == answers[1]


def test_a_term_s_id_is_the_same_in_every_process() -> None:
    assert term_id(2, "moe_align") == 5030554082773256196


def test_the_channel_is_part_of_a_term() -> None:
    assert term_id(1, "cuda") != term_id(2, "cuda")


def test_ids_of_a_profile_are_sorted(filled: Store) -> None:
    index(filled, {1: dict.fromkeys(VOCABULARY, 1)})

    with filled.reading() as session:
        assert find_profiles(session, [(1, 1)])[1, 1].ids.tolist() == IDS


def test_an_issue_without_terms_is_indexed_and_empty(filled: Store) -> None:
    index(filled, {1: {}})

    with filled.reading() as session:
        assert (count_indexed(session), find_profiles(session, [(1, 1)])[1, 1].ids.tolist()) == (1, [])


def test_a_term_that_stands_nowhere_any_more_has_no_frequency(filled: Store) -> None:
    index(filled, {1: {(1, "cuda"): 1}})
    index(filled, {1: {}})

    with filled.reading() as session:
        assert find_frequencies(session, [term_id(1, "cuda")]) == {}


def test_more_terms_than_one_query_takes_are_found(filled: Store) -> None:
    many = {(1, f"word{position}"): 1 for position in range(KEYS_PER_QUERY * 2 + 5)}
    index(filled, {1: many, 2: many})
    index(filled, {2: {}})

    with filled.reading() as session:
        ids = [term_id(*term) for term in many]
        assert set(find_frequencies(session, ids).values()) == {1}
        assert len(find_postings(session, ids)) == len(many)


def test_one_number_in_two_repositories_has_two_profiles(filled: Store) -> None:
    with filled.unit_of_work() as session:
        other = add_repository(session, "other/engine")
        save_issues(session, other, [an_issue(1)])
        index_terms(session, other, {1: hash_terms({(1, "fp8"): 1})})
        index_terms(session, 1, {1: hash_terms({(1, "cuda"): 1, (1, "fp8"): 1})})

    with filled.reading() as session:
        assert find_frequencies(session, IDS) == {term_id(1, "cuda"): 1, term_id(1, "fp8"): 2}
        assert sorted(find_postings(session, [term_id(1, "fp8")]).tolist()) == [
            [term_id(1, "fp8"), 1, 1],
            [term_id(1, "fp8"), other, 1],
        ]


@given(st.integers(1, 4), st.text(st.characters(), max_size=20))
def test_any_word_has_an_id_of_eight_bytes(channel: int, word: str) -> None:
    assert -(2**63) <= term_id(channel, word) < 2**63


def test_a_lone_surrogate_has_an_id() -> None:
    assert term_id(1, "\ud83d") == term_id(1, "?")


def test_a_count_of_nothing_leaves_the_length_as_it_is(filled: Store) -> None:
    with filled.unit_of_work() as session:
        index_terms(session, 1, {1: hash_terms({(1, "cuda"): 2, (5, "title"): 0})})
    with filled.reading() as session:
        profile = find_profiles(session, [(1, 1)])[1, 1]
        holders = find_postings(session, [term_id(5, "title")]).tolist()

    assert (len(profile.ids), profile.length) == (2, 1)
    assert holders == [[term_id(5, "title"), 1, 1]]
