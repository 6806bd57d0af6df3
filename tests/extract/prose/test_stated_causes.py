"""Causes that are told, and the commands that fail or work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.prose.stated_causes import find_causes, find_reproductions
from tests.extract.saying import an_issue


def told(body: str) -> list[tuple[str, str]]:
    return [(cause.text, cause.certainty) for cause, _ in find_causes(an_issue(body))]


@pytest.mark.parametrize(
    ("said", "certainty"),
    [
        ("The root cause is a missing None check in the scheduler.", "stated"),
        ("The crash is caused by an empty batch on one rank.", "stated"),
        ("The crash is probably caused by an empty batch on one rank.", "hypothesis"),
        ("I think the error comes from the sampler.", "hypothesis"),
        ("报错的原因是缺少检查，在采样器里没有判断空值的情况。", "stated"),
    ],
)
def test_a_cause_is_stated_or_guessed(said: str, certainty: str) -> None:
    assert told(said) == [(said, certainty)]


def test_a_section_on_the_cause_gives_its_first_sentence() -> None:
    body = "## Root Cause Hypothesis\nThe kernel writes out of bounds. More words follow here."
    assert told(body) == [("The kernel writes out of bounds.", "hypothesis")]


@pytest.mark.parametrize(
    "said",
    [
        "What is the root cause of this crash?",
        "It fails on H100.",
        "The crash is not caused by the driver.",
        "Because I like it so much.",
    ],
)
def test_a_question_or_a_report_names_no_cause(said: str) -> None:
    assert told(said) == []


def test_commands_are_told_apart_by_the_line_above() -> None:
    body = "Crashes:\n\n```bash\nvllm serve org/m-7b\n```\n\nWorks:\n\n```bash\nvllm serve org/m-7b --enforce-eager\n```\n"
    found = [(item.command, item.outcome) for item, _ in find_reproductions(an_issue(body))]
    assert found == [("vllm serve org/m-7b", "fails"), ("vllm serve org/m-7b --enforce-eager", "works")]


def test_a_command_in_a_section_on_the_bug_fails() -> None:
    body = "### Steps to reproduce\n\n```\nvllm serve org/m-7b \\\n  --max-model-len 4096\n```\n"
    ((item, _),) = find_reproductions(an_issue(body))
    assert item.outcome == "fails"
    assert item.command.endswith("--max-model-len 4096")


@given(
    st.lists(
        st.sampled_from(["vllm serve m ", "--x 1", "\\\n", "```\n", "works:\n", "root cause is ", "# "])
        | st.text(max_size=8)
    ).map("".join)
)
def test_causes_and_commands_are_quotes_whatever_the_text(body: str) -> None:
    document = an_issue(body)
    for value, evidence in (*find_causes(document), *find_reproductions(document)):
        quote = document.sources[evidence.source][evidence.start : evidence.end]
        assert evidence.quote == quote == (getattr(value, "text", None) or getattr(value, "command", None))
