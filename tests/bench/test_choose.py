"""Which issues become cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.bench.cases import read_texts
from app.store.session import Store
from tests.benchmarks import choose as module
from tests.benchmarks.choose import choose, load_twins, log_span, tied
from tests.samples import REPO, a_traceback, fenced

LOG = a_traceback("KeyError: 'a'", "vllm/a.py:f", "vllm/b.py:g") + "\n"


def test_the_longest_fenced_traceback_is_the_log() -> None:
    body = fenced("Hello.", LOG, "And:", LOG + "\nmore\nlines\n")
    start, end = log_span(body) or (0, 0)

    assert body[start:end] == LOG + "\nmore\nlines\n"


def test_a_traceback_without_a_fence_is_a_log_up_to_the_blank_line() -> None:
    body = f"It fails:\n\n{LOG}\nAny idea?"
    start, end = log_span(body) or (0, 0)

    assert body[start:end] == LOG


@pytest.mark.parametrize(
    "body",
    [
        "no log",
        fenced("x", "a = 1\nb = 2\nc = 3\nd = 4\n"),
        fenced("x", f"{LOG}PyTorch version: 2.9\n"),
        "Traceback (most recent call last): flattened into one line ValueError: no",
        fenced("x", LOG + "x" * module.CHARS_MAX),
    ],
)
def test_no_log_no_case(body: str) -> None:
    assert log_span(body) is None


def test_groups_that_share_a_number_are_one() -> None:
    found = tied([frozenset({1, 2}), frozenset({3, 4}), frozenset({2, 3})])

    assert found[4] == {1, 2, 3, 4}


def test_cases_follow_from_the_base_alone(base: Store) -> None:
    documents = read_texts(base, REPO)
    cases = choose(documents, [frozenset({11, 13, 999})], frozenset({12}))

    assert cases == choose(list(documents), [frozenset({11, 13, 999})], frozenset({12}))
    assert [case.number for case in cases] == [11, 13, 100, 101, 102, 103, 104, 105]
    assert cases[0].right == (11, 13)  # 999 is not stored


def test_above_the_limit_those_with_twins_stay(base: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CASES_MAX", 3)
    cases = choose(read_texts(base, REPO), [frozenset({11, 13})], frozenset())

    assert {11, 13} < {case.number for case in cases}
    assert len(cases) == 3


def test_the_command_writes_the_cases(base: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left_out, same = tmp_path / "left.jsonl", tmp_path / "same.jsonl"
    left_out.write_text('{"query": "x", "expected": [100], "exclude": [101]}\n')
    same.write_text(
        '{"a": 102, "b": 103, "label": "same_failure"}\n{"a": 104, "b": 105, "label": "unrelated"}\n'
    )
    monkeypatch.setattr(module, "CASES", tmp_path / "cases.jsonl")
    monkeypatch.setattr(
        "sys.argv",
        ["choose", "--database", str(base.engine.url), "--leave-out", str(left_out), "--same", str(same)],
    )
    module.main()
    written = (tmp_path / "cases.jsonl").read_text().splitlines()

    assert len(written) == 7
    assert '"right": [102, 103]' in written[3]


def test_twins_are_groups_of_several() -> None:
    assert all(len(group) > 1 for group in load_twins())
