"""Which failures are read at all: for a stack by what may be its own, without one by what the versions may have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from app.extract.facts import Facts, Fix, Regression
from app.knowledge.stack.candidates import find_candidates
from app.knowledge.stack.stack import parse_stack
from app.store.derived.readings import Reading, save_readings
from app.store.github.issues import add_repository, save_issues
from app.store.session import Store
from tests.samples import REPO, an_issue

ROWS: dict[int, tuple[str, str | None, str, dict[str, Any]]] = {
    1: ("It hangs", "0.19.0", "open", {}),
    2: ("It hangs on exit", "0.19.0", "closed", {}),
    3: ("It hangs at times", "0.20.0", "closed", {}),
    4: ("It hung", "0.19.0", "closed", {"fix": Fix(state="fixed", pr="#9")}),
    5: ("It hangs again", "0.18.0", "closed", {"regression": Regression(still_failing=("0.24.0",))}),
    6: ("It hangs later", "0.23.0", "open", {}),
    7: ("Wrong words", "0.19.0", "closed", {"failure_kind": "wrong_output", "labels": ("stale",)}),
    8: ("It hangs", None, "open", {}),
    9: ("Qwen3 hangs", "0.19.0", "closed", {}),
    10: ("It hangs", "0.19.0", "closed", {"models": ("Qwen/Qwen3-32B",)}),
    11: ("LoRA hangs", "0.19.0", "closed", {}),
    12: ("It hangs with --seed 1", "0.19.0", "closed", {}),
}


Find = Callable[..., tuple[list[int], Mapping[Any, set[int]]]]


@pytest.fixture
def find(store: Store) -> Find:
    issues, readings = [], []
    for number, (title, version, state, more) in ROWS.items():
        labels = more.get("labels", ())
        issues.append(an_issue(number, title=title, body=title, state=state, labels=labels))
        given = {"failure_kind": "hang", **{key: value for key, value in more.items() if key != "labels"}}
        span, fix = given.get("regression"), given.get("fix")
        stated = [("versions.vllm", version), ("fix", fix and fix.pr)]
        stated += [("models", name) for name in given.get("models", ())]
        stated += [("regression.still_failing", one) for one in (span.still_failing if span else ())]
        where = {"source": "body", "start": 0, "end": 1, "rule": "t", "confidence": 1}
        evidence = [{"field": field, "value": text, "quote": text, **where} for field, text in stated if text]
        versions = {"vllm": version} if version else {}
        facts = {"number": number, "is_failure": True, "versions": versions, "evidence": evidence, **given}
        readings.append(Reading(number, Facts.model_validate(facts)))
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        save_issues(session, repo_id, issues)
        save_readings(session, repo_id, readings, rules_version="t")

    def find(versions: tuple[str, ...], stack: str | None = None) -> Any:
        with store.reading() as session:
            return find_candidates(session, repo_id, REPO, versions, parse_stack(stack))

    return find


def test_without_a_stack_a_closed_report_needs_a_fix_or_one_of_the_versions(find: Find) -> None:
    numbers, reported = find(("0.20.0", "0.21.0"))
    assert numbers == [1, 3, 4, 5, 7]
    assert reported[0, 20] == {3}
    assert not reported[0, 23]


def test_a_stack_has_its_model_its_features_and_its_options(find: Find) -> None:
    numbers, _ = find(("0.20.0",), "0.20.0~H100~Qwen/Qwen3-8B~--enable-lora --seed 0")
    assert numbers == [9, 10, 11, 12]
    assert find(("0.20.0",), "0.20.0~H100~meta-llama/Llama-3.1-8B~args:")[0] == []
