"""Extracted values judged by labels; confidences learned from that."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.reader import read_issue
from app.extract.text.document import IssueText
from app.train.confidence import Judged, calibration_error, is_alike, judge, learn, unseen_confidences

LABEL: dict[str, Any] = {
    "number": 1,
    "is_failure": True,
    "failure_kind": "exception",
    "gpus": ["H100"],
    "gpu_count": 1,
    "models": ["Qwen/Qwen3-8B"],
    "backends": {},
    "versions": {"vllm": "0.9.1"},
    "error": {"type": "KeyError", "message": "'layers.0.bias'", "wrappers": []},
    "workarounds": [],
    "regression": None,
    "related": [4321],
}
BODY = (
    "vLLM 0.9.1 on an H100 dies, maybe as in #4321.\n```\nvllm serve Qwen/Qwen3-8B\n"
    "Traceback (most recent call last):\n  File \"/x/vllm/worker.py\", line 3, in load\nKeyError: 'layers.0.bias'\n```\n"
)


def verdicts(**changes: Any) -> dict[str, bool]:
    facts = read_issue(IssueText(1, "It dies", BODY)).facts
    return {item.field: item.is_right for item in judge(facts, LABEL | changes)}


def test_values_that_the_label_names_are_right() -> None:
    found = verdicts()

    assert {"gpus", "models", "versions.vllm", "error.message", "related"} <= found.keys()
    assert [field for field, right in found.items() if not right and field != "backends.platform"] == []


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("gpus", {"gpus": ["A100"]}),
        ("models", {"models": []}),
        ("versions.vllm", {"versions": {"vllm": "0.9.2"}}),
        ("error.message", {"error": None}),
        ("related", {"related": [1]}),
    ],
)
def test_values_that_the_label_does_not_name_are_wrong(field: str, changes: dict[str, Any]) -> None:
    assert verdicts(**changes)[field] is False


@pytest.mark.parametrize(
    ("label", "value", "alike"),
    [
        ("--enforce-eager", "`--enforce-eager`", True),
        ("--enforce-eager", "set --enforce-eager", True),
        ("--enforce-eager", "--enable-lora", False),
        ("", "x", False),
        ("VLLM_USE_V1=0", " ".join(f"w{at}" for at in range(40)) + " VLLM_USE_V1=0", False),
    ],
)
def test_texts_are_alike_if_one_holds_the_other(label: str, value: str, alike: bool) -> None:
    assert is_alike(label, value) is alike


def values(rights: list[bool], rule: str = "gpus.prose", confidence: float = 0.9) -> list[Judged]:
    return [Judged(number, "gpus", rule, "H100", confidence, right) for number, right in enumerate(rights)]


def test_a_rule_seen_often_gets_its_share() -> None:
    assert learn(values([True] * 60 + [False] * 40)).rules["gpus|gpus.prose"] == pytest.approx(0.6, abs=0.03)


def test_a_rule_seen_once_stays_near_its_field() -> None:
    table = learn([*values([True] * 100), *values([False], "gpus.rare")])

    assert table.rules["gpus|gpus.rare"] > 0.8


def test_the_error_of_calibration_is_the_gap_between_said_and_right() -> None:
    assert calibration_error([(0.9, True)] * 9 + [(0.9, False)]) == pytest.approx(0.0)
    assert calibration_error([(0.9, False)] * 10) == pytest.approx(0.9)
    assert calibration_error([]) == 0.0


@given(st.lists(st.booleans(), min_size=5, max_size=40))
def test_each_value_is_judged_once_with_what_the_other_folds_taught(rights: list[bool]) -> None:
    judged = values(rights)

    assert sorted(item.number for item, _ in unseen_confidences(judged)) == list(range(len(rights)))
