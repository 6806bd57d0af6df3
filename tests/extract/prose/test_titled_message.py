"""A title's message: what a program says, told from what a person describes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.prose.titled_message import (
    features_of,
    find_titled_message,
    load_weights,
    spans_of,
    words_of,
)
from app.extract.reader import read_issue
from app.extract.text.document import IssueText
from tests.extract.saying import an_issue

BODY = "It happens at each start."


@pytest.mark.parametrize(
    ("title", "wanted"),
    [
        ('[Bug]: the new image crashes with "CPU tensor must be pinned"', "CPU tensor must be pinned"),
        ("[Usage]: vllm: error: unrecognized arguments: --fast-mode", "unrecognized arguments: --fast-mode"),
        ("[Bug]: with two hosts, list index out of range", "list index out of range"),
        ("[Bug]: Model architectures ['FooModel'] failed to be inspected", "failed to be inspected"),
        ("[Bug]: loading the adapter, error `quant_method is None`", "quant_method is None"),
    ],
)
def test_a_message_in_the_title_is_the_error(title: str, wanted: str) -> None:
    found = read_issue(IssueText(1, title, BODY)).facts

    assert found.error is not None
    assert wanted in found.error.message
    assert found.signatures == ()


@pytest.mark.parametrize(
    "title",
    [
        "[Bug]: the server does not answer with two cards",
        '[Bug]: "the big model" is slow',
        "[Bug]: `vllm serve` will not start and `python3 -m vllm` does",
        '[Bug]: "Engine core initialization failed" on start',
        "[Bug]: error: bad luck",
        "[Bug]: 500 Internal Server Error when serving an adapter",
        "[Performance]: the new kernel gives less throughput on H100",
        "[Usage]: How to run two models on one card",
    ],
)
def test_a_description_is_no_message(title: str) -> None:
    assert find_titled_message(an_issue(BODY, title=title)) is None


@pytest.mark.parametrize(
    "title",
    [
        '[Feature]: say "this option is not supported yet" in one place',
        "[Bug]: wrong output, tensor must be pinned",
        "[Performance]: slow, `src_cache must be uint8`",
    ],
)
def test_a_title_makes_no_failure_and_no_error_where_nothing_stops(title: str) -> None:
    assert read_issue(IssueText(1, title, "Nothing stops.")).facts.error is None


def test_an_assertion_has_its_class() -> None:
    found = find_titled_message(an_issue(BODY, title="[Bug]: assert total_num_scheduled_tokens > 0"))

    assert found is not None
    assert found.type == "AssertionError"


def test_features_are_of_the_span_and_what_stands_beside_it() -> None:
    title = "[Bug]: fails with `foo_bar is None` at start"
    start = title.index("foo_bar")

    found = set(features_of(title, words_of(title), (start, title.index("`", start))))

    assert {"w=IDENTIFIER", "b=is none", "last=none", "quotes=TrueTrue", "L0=with", "tag=bug"} <= found


@given(st.text(alphabet='error: "`not supported a[]', max_size=80))
def test_spans_are_words_of_the_title_behind_its_tags(title: str) -> None:
    for start, end in spans_of(title):
        assert 0 <= start < end <= len(title)
        assert title[start:end] == title[start:end].strip()
        assert title[start:end].count("`") % 2 == 0


@given(st.text(max_size=80))
def test_words_stand_in_the_title_in_its_order(title: str) -> None:
    words = words_of(title)
    assert all(0 <= word.start <= word.end <= len(title) for word in words)
    assert list(words) == sorted(words, key=lambda word: word.start)


def test_the_weights_are_learned_ones() -> None:
    assert 0 < load_weights().threshold < 1
    assert len(load_weights().weights) > 1000


def test_a_wrapper_in_the_log_yields_to_a_sure_message_in_the_title() -> None:
    body = (
        "```\nERROR 01-01 10:00:00 [core.py:1] Engine core initialization failed. See root cause above.\n```"
    )
    told = read_issue(IssueText(1, "[Bug]: with two hosts, list index out of range", body)).facts.error
    named = read_issue(IssueText(1, "[Bug]: it does not start with two hosts", body)).facts.error

    assert told is not None
    assert told.message == "list index out of range"
    assert named is not None
    assert named.message.startswith("Engine core initialization failed")


def test_a_frame_that_a_logger_printed_is_no_message() -> None:
    log = 'ERROR 01-01 10:00:00 [core.py:1] File "/opt/vllm/engine/core.py", line 9, in run\n'
    assert read_issue(IssueText(1, "[Bug]: it does not start", f"```\n{log}```")).facts.error is None
