"""JSON lines of issues in, JSON lines of facts out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.extract.facts import Facts
from app.extract.jsonl import facts_lines, issue_text

ROW = {"number": 7, "title": "[Bug]: it fails", "body": "ValueError: no such head size 80"}


def answers(*lines: Any) -> list[tuple[str, str]]:
    return list(
        facts_lines([line if isinstance(line, str) else json.dumps(line) for line in lines], "in.jsonl")
    )


def test_facts_come_in_the_order_of_the_issues() -> None:
    found = answers(*(ROW | {"number": number} for number in (3, 1, 2)))

    assert [json.loads(answer[0])["number"] for answer in found] == [3, 1, 2]


def test_a_line_of_facts_holds_every_field() -> None:
    assert set(json.loads(answers(ROW)[0][0])) == set(Facts.model_fields)


def test_the_error_is_read() -> None:
    assert json.loads(answers(ROW)[0][0])["error"]["message"] == "no such head size 80"


def test_blank_lines_are_passed_over() -> None:
    assert len(answers("", ROW, "  \n")) == 1


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("[]", "not a JSON object"),
        ("7", "not a JSON object"),
        ({"title": "x"}, "`number` is missing or no whole number"),
        ({"number": "7", "title": "x"}, "`number` is missing or no whole number"),
        ({"number": True, "title": "x"}, "`number` is missing or no whole number"),
        ({"number": 7}, "`title` is missing or no text"),
        ({"number": 7, "title": None}, "`title` is missing or no text"),
    ],
)
def test_a_line_that_cannot_be_used_is_named_by_file_and_number(line: Any, fault: str) -> None:
    assert answers(ROW, line)[1] == ("", f"in.jsonl:2: {fault}")


def test_a_line_that_is_no_json_is_named_and_the_next_is_read() -> None:
    broken, good = answers("{", ROW)

    assert broken[1].startswith("in.jsonl:1: ")
    assert good[1] == ""


def test_a_line_nested_too_deeply_is_named_and_the_next_is_read() -> None:
    broken, good = answers("[" * 200_000, ROW)

    assert (broken[1], good[1]) == ("in.jsonl:1: nested too deeply", "")


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ({}, {"repo": "vllm-project/vllm", "labels": (), "comments": (), "user": None}),
        ({"body": None}, {"body": ""}),
        ({"repo": "a/b"}, {"repo": "a/b"}),
        ({"labels": ["bug", {"name": "ci"}]}, {"labels": ("bug", "ci")}),
        ({"user": {"login": "someone"}}, {"user": "someone"}),
        ({"user": "someone"}, {"user": "someone"}),
        ({"labels": ["bug", None, 7, {}, {"name": None}]}, {"labels": ("bug",)}),
        ({"title": "lone \ud83d"}, {"title": "lone \ufffd"}),
    ],
)
def test_an_issue_s_fields_are_taken_as_github_and_other_tools_write_them(
    more: dict[str, Any], wanted: dict[str, Any]
) -> None:
    issue = issue_text(ROW | more)

    assert {name: getattr(issue, name) for name in wanted} == wanted


@pytest.mark.parametrize(
    "odd",
    [
        {"labels": "bug"},
        {"labels": [None, 7]},
        {"labels": {"name": "bug"}},
        {"comments_data": "no"},
        {"comments_data": 7},
        {"comments_data": [None, {"body": 7, "id": "x"}]},
        {"body": ["a"]},
        {"user": 7},
        {"state": 7},
        {"created_at": 7},
        {"repo": 7},
    ],
)
def test_odd_values_stop_nothing(odd: dict[str, Any]) -> None:
    found = answers(ROW | odd, ROW)

    assert [bool(answer[0]) != bool(answer[1]) for answer in found] == [True, True]


def test_comments_are_taken_with_who_said_them() -> None:
    row = ROW | {
        "comments_data": [
            {"id": 5, "user": {"login": "x"}, "body": "ok", "author_association": "MEMBER"},
            {"body": "no id"},
        ]
    }
    first, second = issue_text(row).comments

    assert (first.id, first.user, first.body, first.author_association) == (5, "x", "ok", "MEMBER")
    assert (second.id, second.author_association) == (None, "NONE")
