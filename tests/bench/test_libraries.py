"""Rewritten logs: who sees what; and that the libraries answer beside ours."""

from __future__ import annotations

from app.bench.cases import Pinned, find_logs, read_texts
from app.bench.run import BenchQuery, ask_all
from app.store.session import Store
from tests.bench.conftest import TWIN
from tests.benchmarks.libraries import OURS, ask_library, baselines, rewritten_queries, rows_of, table
from tests.samples import REPO


def queries(base: Store, pinned: Pinned, number: int) -> dict[str, BenchQuery]:
    texts = read_texts(base, REPO)
    found = find_logs(texts, [case for case in pinned.cases if case.number == number])
    return {query.split: query for query in rewritten_queries(texts, found)}


def test_a_temporal_query_sees_nothing_newer_and_wants_nothing_of_the_future(
    base: Store, pinned: Pinned
) -> None:
    assert queries(base, pinned, 12)["temporal"].hidden == {13}
    assert queries(base, pinned, 11)["temporal"].right == {11}


def test_a_hidden_query_sees_neither_its_issue_nor_its_twins(base: Store, pinned: Pinned) -> None:
    asked = queries(base, pinned, TWIN.number)["hidden"]

    assert (asked.right, asked.hidden) == (frozenset(), {11, 13})


def test_every_system_answers_hides_what_is_hidden_and_is_asked_what_it_can_know(
    base: Store, pinned: Pinned
) -> None:
    asked, texts = list(queries(base, pinned, 11).values()), read_texts(base, REPO)
    ours = ask_all(base, REPO, asked)
    rows = list(rows_of(OURS, ours))
    for name, build in baselines().items():
        answers = ask_library(build(texts), asked) if build else []
        assert answers or build is None, name
        assert all(item.query.right and not item.query.hidden & set(item.numbers) for item in answers)
        rows += rows_of(name, answers)

    assert f"| rewritten, cascade (1) | {OURS} | 1.000 |" in table(rows, ours)
