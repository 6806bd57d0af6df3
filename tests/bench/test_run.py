"""Asking: who sees what, what is told of texts that are gone, and the figures of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from app.bench import baselines as baselines_module
from app.bench import report as command
from app.bench.cases import Pinned, find_logs, load_pinned, read_texts
from app.bench.report import BEGIN, END, bench_diagnose, figures_of, markdown, recall_of, write_between_marks
from app.bench.run import OURS, AnsweredQuery, BenchQuery, BenchRun, log_queries, run
from app.errors import InputError
from app.store.github.issues import add_repository, save_issues
from app.store.session import Store
from tests.bench.conftest import MARLIN, TWIN, a_case
from tests.samples import REPO, an_issue

NOBODY: frozenset[int] = frozenset()


def queries(base: Store, pinned: Pinned, number: int) -> dict[tuple[str, str | None], BenchQuery]:
    documents = read_texts(base, REPO)
    found = find_logs(documents, [case for case in pinned.cases if case.number == number])
    return {(query.split, query.form): query for query in log_queries(documents, found)}


def test_line_ends_do_not_move_a_span(base: Store, pinned: Pinned) -> None:
    found = find_logs(read_texts(base, REPO), pinned.cases)

    assert [case.number for case, _ in found.logs] == [11, 12, 13]
    assert found.logs[1][1].startswith("(EngineCore_DP0")
    assert (found.missing, found.changed) == ((), ())


def test_missing_and_changed_texts_are_told_and_left_out(base: Store, pinned: Pinned) -> None:
    with base.unit_of_work() as session:
        edited = replace(MARLIN, body=MARLIN.body.replace("4544", "9"), raw={"number": 11, "edited": True})
        save_issues(session, add_repository(session, REPO), [edited])
    cases = [*pinned.cases, pinned.cases[0].model_copy(update={"number": 7})]
    found = find_logs(read_texts(base, REPO), cases)

    assert ([case.number for case, _ in found.logs], found.missing, found.changed) == ([12, 13], (7,), (11,))


def test_a_temporal_query_sees_nothing_newer(base: Store, pinned: Pinned) -> None:
    asked = queries(base, pinned, 12)["temporal", "whole"]

    assert asked.hidden == {13}
    assert asked.right == {12}


def test_right_answers_of_the_future_are_not_wanted_of_the_past(base: Store, pinned: Pinned) -> None:
    assert queries(base, pinned, 11)["temporal", "whole"].right == {11}


def test_an_unknown_query_sees_neither_its_issue_nor_its_twins(base: Store, pinned: Pinned) -> None:
    asked = queries(base, pinned, 13)["unknown", "cascade"]

    assert (asked.right, asked.hidden) == (NOBODY, {11, 13})


def test_a_paste_is_asked_without_its_issue_where_others_report_the_same(base: Store, pinned: Pinned) -> None:
    asked = queries(base, pinned, 13)["paste", None]

    assert (asked.right, asked.hidden) == ({11}, {13})
    assert asked.text in TWIN.body
    assert ("paste", None) not in queries(base, pinned, 12)


def test_whole_real_logs_are_asked_and_their_answers_checked(ran: BenchRun) -> None:
    known, new = [item for item in ran.answers[OURS] or [] if item.query.real_log]

    assert (known.query.split, new.query.split) == ("real log", "real log, unseen")
    assert known.result is not None
    assert known.result.root_cause
    assert known.rank == 1
    assert new.result is not None
    assert new.result.root_cause

    figures = figures_of(ran).real_logs
    assert figures["the root cause is right"] == {"real log": (1, 1), "real log, unseen": (1, 1)}
    assert figures["another failure is claimed"]["real log"] == (0, 1)


def test_a_new_failure_is_not_claimed(ran: BenchRun) -> None:
    figures = figures_of(ran).real_logs
    assert figures["where none is stored, none is claimed"]["real log, unseen"] == (1, 1)


def test_every_system_answers_and_hides_what_is_hidden(ran: BenchRun) -> None:
    for name, asked in ran.answers.items():
        assert asked or name.startswith("bm25s"), name
        for item in asked or []:
            assert not item.query.hidden & set(item.numbers), (name, item.query.split)


def test_a_known_log_is_found_and_a_foreign_text_is_not(ran: BenchRun) -> None:
    ours = ran.answers[OURS] or []

    assert all(item.rank == 1 for item in ours if item.query.split == "plain")
    assert [item.verdict for item in ours if item.query.split == "foreign"] == ["unknown"]


def test_libraries_are_not_asked_what_they_cannot_know(ran: BenchRun) -> None:
    splits = {item.query.split for name, asked in ran.answers.items() if name != OURS for item in asked or []}

    assert splits == {"real log", "paste", "plain", "temporal", "question", "question, held out"}


def test_a_missing_library_is_a_row_that_says_so(
    base: Store, pinned: Pinned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baselines_module, "find_spec", lambda _: None)
    table = markdown(figures_of(run(base, REPO, pinned, report=lambda _: None)))

    assert "| bm25s, masked | not installed | – | – | – | – | – |" in table
    assert "| TF-IDF, words | not installed | – | – | – | – | – |" in table


def test_an_empty_base_is_refused_with_what_to_do(sqlite_store: Store, pinned: Pinned) -> None:
    with pytest.raises(InputError, match="no issue of vllm-project/vllm is stored"):
        run(sqlite_store, REPO, pinned, report=lambda _: None)


def test_pull_requests_are_no_documents(base: Store) -> None:
    with base.unit_of_work() as session:
        save_issues(session, add_repository(session, REPO), [an_issue(900, is_pull_request=True)])

    assert 900 not in {document.number for document in read_texts(base, REPO)}


# Figures


def an_answer(
    *numbers: int, chance: float | None = None, right: int = 1, took_ms: float = 1.0
) -> AnsweredQuery:
    query = BenchQuery("x", "paste", None, frozenset({right}), NOBODY)
    return AnsweredQuery(query, numbers, took_ms, "same", chance)


def test_recall_and_reciprocal_rank() -> None:
    found = recall_of(
        "x", "plain", [an_answer(1), an_answer(2, 1), an_answer(2, 3, 4, 5, 6, 1), an_answer(2)]
    )

    assert (found.r1, found.r5, found.r10) == (0.25, 0.5, 0.75)
    assert found.mrr == pytest.approx((1 + 1 / 2 + 1 / 6) / 4, abs=1e-4)


def test_no_queries_no_division_by_zero() -> None:
    assert recall_of("x", "plain", []).queries == 0


def test_reliability_counts_what_was_said_against_what_was_right(base: Store, pinned: Pinned) -> None:
    found = find_logs(read_texts(base, REPO), pinned.cases)
    answers = [an_answer(1, chance=0.92), an_answer(2, chance=0.94), an_answer(1, chance=1.0)]
    rows = {row.low: row for row in figures_of(BenchRun(9, found, {OURS: answers})).reliability}

    assert (rows[0.9].queries, rows[0.9].given, rows[0.9].right) == (2, 0.93, 0.5)
    assert (rows[0.95].queries, rows[0.95].right) == (1, 1.0)


def test_the_figures_name_no_host_and_no_path(ran: BenchRun) -> None:
    found = figures_of(ran).machine

    assert "core" in found
    assert "/" not in found


# The command


def test_the_table_goes_between_the_marks(
    base: Store, pinned: Pinned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "load_pinned", lambda: pinned)
    page = tmp_path / "README.md"
    page.write_text(f"# Head\n{BEGIN}\nold\n{END}\nfoot\n", encoding="utf-8")
    found = json.loads(bench_diagnose(base, REPO, report=lambda _: None, as_json=True, write=page))
    text = page.read_text(encoding="utf-8")

    assert found["cases"] == 3
    assert found["recall"][0]["system"] == OURS
    assert text.startswith(f"# Head\n{BEGIN}\n20")
    assert text.endswith(f"{END}\nfoot\n")
    assert "old\n" not in text


def test_a_file_without_marks_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "notes.md"
    page.write_text("mine", encoding="utf-8")

    with pytest.raises(InputError, match="lacks the marks"):
        write_between_marks(page, "x")
    with pytest.raises(InputError, match="cannot read"):
        write_between_marks(tmp_path / "nowhere.md", "x")
    assert page.read_text(encoding="utf-8") == "mine"


# What the repository pins


def test_the_pinned_facts_are_whole() -> None:
    pinned = load_pinned()

    assert len(pinned.cases) >= 140
    assert len({case.number for case in pinned.cases}) == len(pinned.cases)
    assert all(case.number in case.right and case.rewrites and case.start < case.end for case in pinned.cases)
    assert [question.held_out for question in pinned.questions] == [False] * 40 + [True] * 40
    assert all(question.right for question in pinned.questions)
    assert len(pinned.foreign) >= 15


def test_cases_hold_facts_only() -> None:
    text = (Path(command.__file__).parent / "cases.jsonl").read_text(encoding="utf-8")

    for line in text.splitlines():
        assert set(json.loads(line)) == {"number", "start", "end", "sha256", "right", "rewrites"}


def test_a_case_made_here_is_found_here(base: Store) -> None:
    assert len(find_logs(read_texts(base, REPO), [a_case(MARLIN)]).logs) == 1
