"""The error line that a title quotes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.prose.titled_line import find_titled_line
from app.extract.reader import read_issue
from app.extract.text.document import IssueText
from tests.extract.saying import an_issue


def quoted(title: str, body: str) -> str | None:
    found = find_titled_line(an_issue(body, title=title))
    return found.message if found else None


@pytest.mark.parametrize(
    ("title", "body", "wanted"),
    [
        (
            "[Bug]: Cannot use the fast backend with two cards",
            "INFO 08-07 16:06:47 selector.py:189] Cannot use the fast backend because its package is missing.\nDone",
            "Cannot use the fast backend because its package is missing.",
        ),
        (
            "[Installation]: could not find the root of the library, not even once",
            "We get the error: Could not find the root of the library",
            None,
        ),
        (
            "[Usage]: start: no node can fulfil the request",
            "```\n(autoscaler +7s) Error: No node can fulfil the request {'GPU': 1.0}. Add nodes.\n```",
            "No node can fulfil the request {'GPU': 1.0}.",
        ),
        (
            "Unrecognized keys in the rope settings",
            'A message appears: "Unrecognized keys in the rope settings", and it stops.',
            "Unrecognized keys in the rope settings",
        ),
    ],
)
def test_the_line_of_the_log_is_the_error(title: str, body: str, wanted: str | None) -> None:
    assert quoted(title, body) == wanted


@pytest.mark.parametrize(
    ("title", "body"),
    [
        ("[Bug]: the model does not answer", "# the model does not answer\n\nIt is slow."),
        ("[Bug]: the model does not answer", "As said, the model does not answer."),
        ("[Bug]: Loading weights from disk", "INFO loader.py:12] Loading weights from disk"),
        ("[Bug]: not good", "The error: not good"),
        ("[Bug]: Engine core initialization failed", "ERROR core.py:12] Engine core initialization failed."),
        ("", ""),
    ],
)
def test_prose_that_repeats_the_title_and_lines_without_failure_are_none(title: str, body: str) -> None:
    assert quoted(title, body) is None


def test_a_named_error_comes_first() -> None:
    line = "selector.py:9] Cannot use the fast backend here"
    title = "[Bug]: Cannot use the fast backend here"

    alone = read_issue(IssueText(1, title, line)).facts
    named = read_issue(IssueText(1, title, f"{line}\nThen the loader raises a KeyError.")).facts

    assert alone.error is not None
    assert alone.error.message == "Cannot use the fast backend here"
    assert alone.signatures == ()
    assert named.error is not None
    assert named.error.type == "KeyError"


@given(st.text(max_size=80), st.text(max_size=200))
def test_any_text_gives_a_span_of_it(title: str, body: str) -> None:
    document = an_issue(body, title=title)
    found = find_titled_line(document)
    assert found is None or document.sources["body"][found.line.start : found.line.end] == found.line.raw
