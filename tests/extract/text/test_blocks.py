"""Issue texts cut into blocks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.text.blocks import (
    LinesAt,
    Places,
    cut_lines,
    is_flattened,
    read_document,
    read_log_document,
    windows,
)
from app.extract.text.document import CommentText, IssueText


def blocks(body: str) -> list[tuple[str, str, str]]:
    return [(b.kind, b.heading, b.text) for b in read_document(IssueText(1, "", body)).blocks]


def test_a_fence_is_code_under_its_heading() -> None:
    assert blocks("### Logs\n\n```text\nKeyError: 'x'\n```\nthanks") == [
        ("heading", "Logs", "### Logs"),
        ("code", "Logs", "KeyError: 'x'"),
        ("prose", "Logs", "thanks"),
    ]


def test_an_unclosed_fence_runs_to_the_end() -> None:
    assert blocks("hello\n```\na\nb")[-1] == ("code", "", "a\nb")


def test_a_bare_traceback_is_code() -> None:
    body = 'It fails:\nTraceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\nValueError: no\n'
    assert blocks(body)[-1][0] == "code"


def test_crlf_stays_out_of_lines_but_in_positions() -> None:
    document = read_document(IssueText(1, "", "one\r\ntwo\r\n"))
    assert [line.text for b in document.blocks for line in b.lines if line.text] == ["one", "two"]


def test_a_heading_that_runs_on_is_split_in_a_flattened_text() -> None:
    words = "and then the server said nothing more " * 12
    body = f"### Your current environment vLLM 0.9 on one card ### 🐛 Describe the bug I started it {words}"
    assert is_flattened(body)
    found = blocks(body)
    assert ("heading", "🐛 Describe the bug", "### 🐛 Describe the bug") in found
    assert any(kind == "prose" and text.startswith("I started it") for kind, _, text in found)


def test_places_tell_output_from_prose() -> None:
    body = "I say\n```\nlog\n```\n"
    places = Places(read_document(IssueText(1, "", body)))
    assert places.is_prose("body", 0)
    assert not places.is_prose("body", body.index("log"))


def test_the_speaker_of_a_comment_is_known() -> None:
    comments = (CommentText("a", 1, "rep"), CommentText("b", 2, "dev", "MEMBER"), CommentText("c", None, "x"))
    speaker = read_document(IssueText(1, "t", "b", user="rep", comments=comments)).speaker
    assert (speaker["comment:1"], speaker["comment:2"], speaker["comment:#3"]) == (
        "reporter",
        "maintainer",
        "other",
    )


def test_a_very_long_log_is_read_at_both_ends() -> None:
    log = "begin " + "x" * 3_000_000 + " end"
    parts = list(windows(read_log_document(log)))
    assert parts[0][2].startswith("begin")
    assert parts[-1][2].endswith("end")
    assert all(log[offset : offset + len(text)] == text for _, offset, text in parts)


@given(
    st.lists(
        st.sampled_from([*list("#`>*|\n\r é:a "), "```", "### ", "Error: ", "<summary>"]), max_size=60
    ).map("".join)
)
def test_blocks_and_lines_are_spans_of_their_source(text: str) -> None:
    document = read_document(IssueText(1, text, text))
    for block in document.blocks:
        source = document.sources[block.source]
        assert source[block.start : block.end] == block.text
        assert all(source[line.start : line.end] == line.text for line in block.lines)


def test_a_form_heading_ends_a_fence_that_was_never_closed() -> None:
    body = (
        "### Your current environment\n```text\nvLLM 0.9\n\n### Describe the bug\nIt hangs.\n```\nlog\n```\n"
    )

    assert ("prose", "Describe the bug", "It hangs.") in blocks(body)


def test_a_form_heading_within_a_closed_fence_is_code() -> None:
    body = "I pasted the form:\n```\n### Describe the bug\nIt hangs.\n```\nthanks"

    assert ("code", "", "### Describe the bug\nIt hangs.") in blocks(body)


def test_a_mark_at_the_end_of_the_last_line_closes_a_fence() -> None:
    assert blocks("```\nKeyError: 'x'```\nI use two cards.")[-1] == ("prose", "", "I use two cards.")


def test_marks_around_a_word_in_a_sentence_open_no_fence() -> None:
    assert [kind for kind, _, _ in blocks("```vllm serve m``` dies.\nI use two cards.")] == ["prose"]


def test_a_text_longer_than_any_of_github_is_cut_into_blocks_at_both_ends() -> None:
    body = "first words\n" + "filler line\n" * 60_000 + "last words"
    found = blocks(body)

    assert found[0][2].startswith("first words")
    assert found[-1][2].endswith("last words")
    assert sum(len(text) for _, _, text in found) < len(body) / 2


# Lines by their position


FLATTENED = "### Your current environment " + "INFO 09-01 10:00:00 [core.py:1] loading " * 40
TEXTS = st.text(alphabet="ab \r\n", max_size=60) | st.just(FLATTENED)


@given(TEXTS)
def test_each_line_is_the_one_that_cutting_gives(text: str) -> None:
    lines = LinesAt(text)

    cut = list(cut_lines(text))

    assert [lines[at] for at in range(len(cut))] == cut


@given(TEXTS, st.integers(-2, 70))
def test_a_place_is_found_in_the_last_line_that_begins_before_it(text: str, spot: int) -> None:
    cut = list(cut_lines(text))
    last = max((at for at, line in enumerate(cut) if line.start <= spot), default=None)

    assert LinesAt(text).at(spot) == (last if last is not None and spot <= cut[last].end else None)


@pytest.mark.parametrize("text", ["", "\n", "one\r\ntwo\n"])
def test_the_last_line_may_be_empty(text: str) -> None:
    assert LinesAt(text)[text.count("\n")].text == ""
