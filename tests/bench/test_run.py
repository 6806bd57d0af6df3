"""Asking: who sees what, what is told of texts that are gone, and the figures of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from app.bench import run as command
from app.bench.cases import Pinned, find_logs, load_pinned, read_texts
from app.bench.run import (
    AnsweredQuery,
    BenchQuery,
    BenchRun,
    bench_diagnose,
    figures_of,
    markdown,
    paste_queries,
    recall_of,
    run,
)
from app.errors import InputError
from app.store.github.issues import add_repository, save_issues
from app.store.session import Store
from tests.bench.conftest import MARLIN, TWIN, a_case
from tests.benchmarks.libraries import write_between_marks
from tests.samples import REPO, an_issue


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


def test_a_paste_is_asked_without_its_issue_where_others_report_the_same(base: Store, pinned: Pinned) -> None:
    asked = list(paste_queries(find_logs(read_texts(base, REPO), pinned.cases)))

    assert [(query.right, query.hidden) for query in asked] == [({13}, {11}), ({11}, {13})]
    assert asked[1].text in TWIN.body


def test_whole_real_logs_are_asked_and_their_answers_checked(ran: BenchRun) -> None:
    known, new = [item for item in ran.answers if item.query.real_log]

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


def test_a_foreign_text_is_not_found_and_what_is_hidden_is_no_answer(ran: BenchRun) -> None:
    assert [item.verdict for item in ran.answers if item.query.split == "foreign"] == ["unknown"]
    assert not any(item.query.hidden & set(item.numbers) for item in ran.answers)


def test_the_tables_have_every_set(ran: BenchRun) -> None:
    text = markdown(figures_of(ran))

    assert "| pastes | 2 | 1.000 |" in text
    assert "other programs (1) |" in text


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
    query = BenchQuery("x", "paste", frozenset({right}))
    return AnsweredQuery(query, numbers, took_ms, "same", chance)


def test_recall_and_reciprocal_rank() -> None:
    found = recall_of("paste", [an_answer(1), an_answer(2, 1), an_answer(2, 3, 4, 5, 6, 1), an_answer(2)])

    assert (found.r1, found.r5, found.r10) == (0.25, 0.5, 0.75)
    assert found.mrr == pytest.approx((1 + 1 / 2 + 1 / 6) / 4, abs=1e-4)


def test_no_queries_no_division_by_zero() -> None:
    assert recall_of("paste", []).queries == 0


def test_reliability_counts_what_was_said_against_what_was_right(base: Store, pinned: Pinned) -> None:
    found = find_logs(read_texts(base, REPO), pinned.cases)
    answers = [an_answer(1, chance=0.92), an_answer(2, chance=0.94), an_answer(1, chance=1.0)]
    rows = {row.low: row for row in figures_of(BenchRun(9, found, answers)).reliability}

    assert (rows[0.9].queries, rows[0.9].given, rows[0.9].right) == (2, 0.93, 0.5)
    assert (rows[0.95].queries, rows[0.95].right) == (1, 1.0)


def test_the_figures_name_no_host_and_no_path(ran: BenchRun) -> None:
    found = figures_of(ran).machine

    assert "core" in found
    assert "/" not in found


# The command


def test_the_command_gives_all_figures_as_json(
    base: Store, pinned: Pinned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "load_pinned", lambda: pinned)
    found = json.loads(bench_diagnose(base, REPO, report=lambda _: None, as_json=True))

    assert found["cases"] == 3
    assert [row["split"] for row in found["recall"]][:2] == ["real log", "real log, unseen"]


def test_a_table_goes_between_the_marks(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("# Head\n<!-- bench: begin -->\nold\n<!-- bench: end -->\nfoot\n", encoding="utf-8")
    write_between_marks(page, "new\n", "bench")

    text = page.read_text(encoding="utf-8")
    assert text == "# Head\n<!-- bench: begin -->\nnew\n<!-- bench: end -->\nfoot\n"


def test_a_file_without_marks_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "notes.md"
    page.write_text("mine", encoding="utf-8")

    with pytest.raises(InputError, match="lacks the marks"):
        write_between_marks(page, "x", "bench")
    with pytest.raises(InputError, match="cannot read"):
        write_between_marks(tmp_path / "nowhere.md", "x", "bench")
    assert page.read_text(encoding="utf-8") == "mine"


# What the repository pins


def test_the_pinned_facts_are_whole() -> None:
    pinned = load_pinned()

    assert len(pinned.cases) >= 140
    assert len({case.number for case in pinned.cases}) == len(pinned.cases)
    assert all(case.number in case.right and case.start < case.end for case in pinned.cases)
    assert [question.held_out for question in pinned.questions] == [False] * 40 + [True] * 40
    assert all(question.right for question in pinned.questions)
    assert len(pinned.foreign) >= 15


def test_cases_hold_facts_only() -> None:
    text = (Path(command.__file__).parent / "cases.jsonl").read_text(encoding="utf-8")

    for line in text.splitlines():
        assert set(json.loads(line)) == {"number", "start", "end", "sha256", "right"}


def test_a_case_made_here_is_found_here(base: Store) -> None:
    assert len(find_logs(read_texts(base, REPO), [a_case(MARLIN)]).logs) == 1
