"""An answer fits its budget to the character, stays valid, and says what was left out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.knowledge.diagnosis.shapes import Diagnosis, NextStep
from app.knowledge.launch import ComposedCommand
from app.web.answers.budget import (
    MIN_CHARS,
    ORDERS,
    TRUNCATED,
    Cut,
    CutOrder,
    cut_text,
    dumps,
    fit,
    order_of,
)
from app.web.answers.openapi import answer_examples
from app.web.answers.schemas import issue_document
from tests.web.conftest import ISSUE as AN_ISSUE
from tests.web.conftest import MATCHES, SAME, UNKNOWN

DIAGNOSIS, ISSUE, REPORT = ORDERS["Diagnosis"], ORDERS["IssueDocument"], ORDERS["Report"]
LIST, VERSION_LIST = ORDERS["RelatedList"], ORDERS["KnownIssueList"]
LONG = SAME.model_copy(
    update={
        "matches": tuple(MATCHES[at % 3].model_copy(update={"number": 1000 + at}) for at in range(40)),
        "workarounds": SAME.workarounds * 12,
        "issue_draft": "### What happened\n" * 300,
    }
).model_dump(mode="json")
LONG_ISSUE = issue_document(
    AN_ISSUE.model_copy(update={"body": 'A line of the log, \\\\ "quoted" ✓\n' * 900})
).model_dump(mode="json")
LONG_REPORT = {
    **answer_examples()["Report"],
    "body": "An issue's text. " * 2000,
    "timeline": answer_examples()["Report"]["timeline"] * 150,
    "facts": answer_examples()["Report"]["facts"] * 60,
}
LONG_LIST = {
    **answer_examples()["KnownIssueList"],
    "items": answer_examples()["KnownIssueList"]["items"] * 50,
    "next_cursor": "x9",
}
ANSWERS = [
    pytest.param(LONG, DIAGNOSIS, id="diagnosis"),
    pytest.param(UNKNOWN.model_dump(mode="json"), ORDERS["Diagnosis:unknown"], id="unknown"),
    pytest.param(LONG_ISSUE, ISSUE, id="issue"),
    pytest.param(LONG_REPORT, REPORT, id="report"),
    pytest.param(LONG_LIST, VERSION_LIST, id="known-issues"),
    pytest.param(
        {**answer_examples()["RelatedList"], "items": answer_examples()["RelatedList"]["items"] * 99},
        LIST,
        id="related",
    ),
]


@pytest.mark.parametrize(("answer", "shape"), ANSWERS)
def test_no_budget_from_200_to_20000_is_exceeded(answer: dict[str, Any], shape: CutOrder) -> None:
    before = json.dumps(answer)
    for max_chars in [*range(200, 2000, 61), *range(2000, 20_001, 997), 20_000]:
        found = fit(answer, shape, max_chars)
        sent = dumps(found)
        assert len(sent) <= max_chars
        assert json.loads(sent) == found
        assert set(shape.keeps) <= set(found)
        if len(dumps(answer)) > max_chars:
            assert found[TRUNCATED], max_chars
            assert all(left > 0 for left in found[TRUNCATED].values())
        else:
            assert found == answer
    assert json.dumps(answer) == before


@pytest.mark.parametrize(("answer", "shape"), ANSWERS)
def test_a_budget_is_used(answer: dict[str, Any], shape: CutOrder) -> None:
    for max_chars in (4000, 8000, 20_000):
        whole = len(dumps(answer))
        assert len(dumps(fit(answer, shape, max_chars))) > min(max_chars, whole) * 0.6


def test_a_larger_budget_never_tells_fewer_matches() -> None:
    counts = [len(fit(LONG, DIAGNOSIS, chars).get("matches", ())) for chars in range(1000, 40_000, 1250)]

    assert counts == sorted(counts)


def test_what_was_left_out_is_counted() -> None:
    found = fit(LONG, DIAGNOSIS, 6000)

    assert found[TRUNCATED]["issue_draft"] == len(LONG["issue_draft"])
    assert found[TRUNCATED]["matches"] + len(found["matches"]) == len(LONG["matches"])
    assert found["matches"] == [
        {**match, "excerpt": [], "workarounds": [], "regression": found["matches"][at]["regression"]}
        for at, match in enumerate(LONG["matches"][: len(found["matches"])])
    ]


def test_whole_fields_are_counted_when_they_go() -> None:
    found = fit(LONG, DIAGNOSIS, 200)

    assert found["verdict"] == "same"
    assert found[TRUNCATED]["*"] + len(found) - 1 == len(LONG)


def test_a_text_is_cut_at_the_end_of_a_line_and_spans_stay_true() -> None:
    found = fit(LONG_ISSUE, ISSUE, 9000)

    assert LONG_ISSUE["body"].startswith(found["body"])
    assert found["body"].endswith("✓")
    assert found[TRUNCATED]["body"] == len(LONG_ISSUE["body"]) - len(found["body"])


def test_a_shortened_list_goes_on_where_it_was_cut() -> None:
    items = [{"number": number, "title": "x" * 50} for number in range(100)]
    whole = {"items": items, "next_cursor": "after-100", "total": 300}

    found = fit(whole, LIST, 1000, cursor_at=lambda at: f"after-{at}")

    assert found["next_cursor"] == f"after-{len(found['items'])}"
    assert found[TRUNCATED] == {"items": 100 - len(found["items"])}
    assert len(dumps(found)) <= 1000
    assert fit(whole, LIST, 100_000, cursor_at=lambda at: f"after-{at}") == whole


def test_a_list_whose_first_entry_is_too_long_says_so() -> None:
    whole = {"items": [{"title": "x" * 500}], "next_cursor": None, "total": 1}

    assert fit(whole, LIST, 200, cursor_at=lambda at: f"after-{at}") == {
        "items": [],
        "next_cursor": None,
        "total": 1,
        TRUNCATED: {"items": 1},
    }


def test_a_list_goes_on_behind_an_entry_that_is_too_long() -> None:
    whole = {"items": [{"title": "x" * 500}, {"title": "y"}], "next_cursor": "after-2", "total": 9}

    found = fit(whole, LIST, 200, cursor_at=lambda at: f"after-{at}")

    assert (found["items"], found["next_cursor"]) == ([], "after-1")


@pytest.mark.parametrize(
    ("text", "limit", "cut"),
    [
        ("one\ntwo three", 100, "one\ntwo three"),
        ("one two\nthree four", 12, "one two"),
        ("one two three", 9, "one two"),
        ("onetwothree", 5, ""),
        ("a\n" + "word " * 9, 20, "a\nword word word"),
        ("one\ntwo", 3, "one"),
        ("one\ntwo", 0, ""),
    ],
)
def test_a_text_is_cut_between_words(text: str, limit: int, cut: str) -> None:
    found = cut_text(text, limit)

    assert found == cut
    assert len(found) <= limit or text == found


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=60),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
ENTRIES = st.lists(
    st.fixed_dictionaries(
        {"number": st.integers(1, 10**6), "quotes": st.lists(st.text(max_size=30), max_size=4)}
    ),
    max_size=30,
)
MADE = st.fixed_dictionaries(
    {
        "verdict": st.sampled_from(["same", "unknown"]),
        "matches": ENTRIES,
        "body": st.text(max_size=1500),
        "graph": st.fixed_dictionaries({"nodes": ENTRIES, "edges": ENTRIES}),
        "draft": st.text(max_size=300),
    },
    optional={"other": VALUES, "fix": VALUES},
)
MADE_SHAPE = CutOrder(
    keeps=("verdict",),
    cuts=(
        Cut("draft"),
        Cut("matches.quotes"),
        Cut("body", keep=300),
        Cut("graph.edges", keep=2),
        Cut("matches", keep=3),
        Cut("body"),
        Cut("graph.nodes", keep=1),
        Cut("matches"),
        Cut("absent"),
        Cut("absent.quotes"),
        Cut("fix"),
    ),
    ranked=("matches", "graph", "body"),
)


@given(answer=MADE, max_chars=st.integers(MIN_CHARS, 3000))
def test_any_answer_fits_any_budget(answer: dict[str, Any], max_chars: int) -> None:
    found = fit(answer, MADE_SHAPE, max_chars)

    sent = dumps(found)
    assert len(sent) <= max_chars
    assert json.loads(sent) == found
    assert found["verdict"] == answer["verdict"]
    whole = len(dumps(answer)) <= max_chars
    assert (TRUNCATED in found) is not whole
    gone = [name for name in answer if name not in found]
    assert found.get(TRUNCATED, {}).get("*", 0) == len(gone)
    if "matches" in found:
        numbers = [match["number"] for match in found["matches"]]
        assert numbers == [match["number"] for match in answer["matches"]][: len(numbers)]
        left = found.get(TRUNCATED, {}).get("matches", 0)
        assert len(numbers) + left == len(answer["matches"])
    if "body" in found:
        assert answer["body"].startswith(found["body"])
        assert len(found["body"]) + found.get(TRUNCATED, {}).get("body", 0) == len(answer["body"])


@pytest.mark.parametrize("diagnosis", [SAME, UNKNOWN])
@pytest.mark.parametrize("max_chars", [MIN_CHARS, 250, 300, 400])
def test_verdict_and_headline_stay_to_the_last(diagnosis: Diagnosis, max_chars: int) -> None:
    data = diagnosis.model_copy(
        update={"headline": "Server did not start: " + "out of room " * 18}
    ).model_dump(mode="json")
    short = fit(data, order_of("Diagnosis", data), max_chars)

    assert short["verdict"] == data["verdict"]
    assert data["headline"].startswith(short["headline"])
    assert len(short["headline"]) > max_chars // 3
    assert len(dumps(short)) <= max_chars


def test_of_an_unknown_failure_the_cause_the_steps_and_the_draft_outlive_weak_matches() -> None:
    whole = UNKNOWN.model_copy(update={"matches": MATCHES * 4, "issue_draft": "### What happened\n" * 30})
    data = whole.model_dump(mode="json")
    room = len(dumps(data)) - len(dumps(data["matches"])) + 200
    found = fit(data, order_of("Diagnosis", data), room)

    assert len(found["matches"]) < 2
    for name in ("root_cause", "next_steps", "issue_draft"):
        assert found[name] == data[name]


@pytest.mark.parametrize(
    ("name", "fields"),
    [("Diagnosis", None), ("diagnose_log", {"verdict", "headline", "matches", "root_cause", "next_steps"})],
)
@pytest.mark.parametrize("verdict", ["related", "unknown"])
def test_the_step_with_a_command_outlives_other_steps_and_matches(
    name: str, fields: set[str] | None, verdict: str
) -> None:
    steps = (NextStep(text="The message itself says: look"), NextStep(text="Try it", command="vllm serve X"))
    whole = UNKNOWN.model_copy(
        update={"verdict": verdict, "headline": "Stopped", "matches": MATCHES, "next_steps": steps}
    )
    data = whole.model_dump(mode="json", include=fields)
    found = fit(data, order_of(name, data), 250)

    assert [step["command"] for step in found["next_steps"]] == ["vllm serve X"]
    assert found[TRUNCATED]["next_steps"] == 1


def test_of_a_known_failure_its_match_the_remedy_and_one_step_outlive_all_else() -> None:
    steps = [step.model_dump(mode="json") for step in UNKNOWN.next_steps * 3]
    found = fit({**LONG, "next_steps": steps}, DIAGNOSIS, 1900)

    for field in ("matches", "workarounds", "next_steps"):
        assert len(found[field]) == 1, field


def test_a_tool_s_answer_to_an_unknown_failure_keeps_its_steps_longer_than_weak_matches() -> None:
    steps = tuple(NextStep(text=f"Step {at}: " + "look at it " * 9, command="vllm serve") for at in range(4))
    whole = UNKNOWN.model_copy(update={"matches": MATCHES * 4, "next_steps": steps})
    fields = {"verdict", "headline", "root_cause", "next_steps", "matches"}
    data = whole.model_dump(mode="json", include=fields)
    found = fit(data, order_of("diagnose_log", data), len(dumps(data)) - len(dumps(data["matches"])) + 200)

    assert len(found["matches"]) < 2
    assert found["next_steps"] == data["next_steps"]


def test_of_an_unknown_failure_every_step_outlives_the_draft_s_parts_and_the_composed_commands() -> None:
    steps = tuple(NextStep(text=f"Step {at}: " + "look at it " * 9, command="vllm serve") for at in range(4))
    command = ComposedCommand(change="--seed 1", line="vllm serve " * 40, parts=(), source="command")
    whole = UNKNOWN.model_copy(
        update={"next_steps": steps, "composed": (command,) * 4, "issue_draft": "### What happened\n" * 200}
    )
    data = whole.model_dump(mode="json")
    found = fit(data, order_of("Diagnosis", data), 4000)

    assert found["next_steps"] == data["next_steps"]
    assert found["issue_draft"].startswith("### What happened")
