"""Which stored issues are worth weighing against an issue."""

from __future__ import annotations

import pytest

from app.match.pairs import candidates as neighbours
from app.match.pairs.candidates import NEIGHBOURS, choose_seeds, find_neighbours
from app.match.search.terms import ERROR, TEXT
from app.store.github.issues import add_repository
from app.store.session import Store
from tests.match.search.test_log_search import Terms, fill
from tests.samples import REPO


def found(store: Store, number: int, title: str, terms: Terms) -> list[int]:
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
    with store.reading() as session:
        keys = find_neighbours(session, repo_id, {number: choose_seeds(title, terms)})[number].here
        return [number for _, number in keys]


def test_issues_that_share_a_rare_term_come_first_and_the_issue_itself_not_at_all(store: Store) -> None:
    rare, common = (TEXT, "marlin"), (TEXT, "common")
    fill(
        store,
        {1: {rare: 1, common: 1}, 2: {common: 1}, 3: {rare: 1, common: 1}, 4: {common: 1}, 5: {}, 6: {}},
    )

    assert found(store, 1, "marlin common", {rare: 1, common: 1})[0] == 3
    assert 1 not in found(store, 1, "marlin common", {rare: 1, common: 1})


def test_an_issue_that_shares_nothing_has_no_neighbours(store: Store) -> None:
    fill(store, {1: {(TEXT, "alone"): 1}, 2: {(TEXT, "other"): 1}})

    assert found(store, 1, "alone", {(TEXT, "alone"): 1}) == []


def test_another_repository_s_issues_are_no_neighbours(store: Store) -> None:
    terms = {(ERROR, "type:ValueError"): 1}
    fill(store, {1: terms})
    fill(store, {2: terms}, repo="other/one")

    assert found(store, 1, "", terms) == []


def test_there_are_only_so_many_neighbours(store: Store) -> None:
    terms = {(TEXT, "marlin"): 1}
    fill(store, dict.fromkeys(range(1, NEIGHBOURS + 30), terms))

    assert len(found(store, 1, "marlin", terms)) == NEIGHBOURS


def test_common_terms_are_left_out_when_the_budget_is_spent(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "POSTINGS_MAX", 10)
    common, rare = (TEXT, "common"), (TEXT, "marlin")
    fill(store, {number: {common: 1} | ({rare: 1} if number < 4 else {}) for number in range(1, 40)})

    assert found(store, 1, "common marlin", {common: 1, rare: 1}) == [2, 3]
