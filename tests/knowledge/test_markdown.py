"""Words that the Markdown of issues and reports share."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from app.knowledge import labels
from app.knowledge.diagnosis.markdown import diagnosis_markdown
from app.knowledge.fix.shapes import FixView
from app.knowledge.issue.report import issue_markdown
from app.knowledge.markdown import code, cut_markdown, escape, fenced, render_markdown
from app.store.github.presence import KEPT_OUT, TAKEN_DOWN
from app.web.answers.budget import ORDERS, dumps, fit
from tests.web.conftest import ISSUE, SAME


def test_what_was_forgotten_is_named_by_the_reasons_that_are_stored() -> None:
    assert labels.FORGOTTEN == (TAKEN_DOWN, KEPT_OUT)


def test_a_merged_fix_names_its_pull_request_before_the_release() -> None:
    fix = FixView(state="merged_unreleased", pr="#20168")
    issue = SimpleNamespace(number=1, title="t", url="u", facts=None, fix=fix)
    text = render_markdown("tool_fix.md", issue=issue, version=None)
    assert "Merged by " in text
    assert ", in no known release" in text


def test_a_short_answer_on_an_upgrade_counts_what_breaks() -> None:
    line = {"number": 1, "title": "x" * 200, "reason": "r" * 200}
    totals = {"fixed": 0, "breaks": 9, "still_open": 50, "unsure": 4}
    answer = {"from_version": "0.21.0", "to_version": "0.22.1", "totals": totals, "breaks": [line] * 9}
    answer |= {"fixed": [], "reasons": ["a" * 200], "unsure": [line] * 4}
    found = fit(answer, ORDERS["compare_versions"], 250)
    assert len(dumps(found)) <= 250
    assert found["totals"] == totals


TEXTS = {
    "diagnosis": diagnosis_markdown(
        SAME.model_copy(update={"matches": SAME.matches * 9, "workarounds": SAME.workarounds * 9})
    ),
    "issue": issue_markdown(ISSUE.model_copy(update={"body": "A line of a log\n````\n</script>\n" * 300})),
    "one-paragraph": "word " * 3000 + "end\n",
    "one-block": "````text\n" + "a line\n" * 2000 + "````\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_no_budget_from_200_to_20000_is_exceeded(text: str) -> None:
    for max_chars in [*range(200, 2000, 131), *range(2000, 20_001, 1111)]:
        found = cut_markdown(text, max_chars)
        assert len(found) <= max_chars
        assert found.endswith("\n")
        assert_closed(found)
        if len(text) > max_chars:
            left = re.search(r"\(([\d,]+) more characters were left out\.\)\n$", found)
            assert left
            assert int(left[1].replace(",", "")) > 0
        else:
            assert found == text


def test_a_heading_without_what_it_heads_is_left_out() -> None:
    text = "First.\n\n## Remedies\n\n" + "".join(f"- `{'x' * 150}{at}`\n" for at in range(9))

    assert "Remedies" not in cut_markdown(text, 210)
    assert "## Remedies\n\n- `xxx" in cut_markdown(text, 400)


def test_entries_stay_whole() -> None:
    found = cut_markdown(TEXTS["diagnosis"], 2000)

    entries = [line for line in found.splitlines() if line.startswith("- ")]
    assert entries
    assert set(entries) <= set(TEXTS["diagnosis"].splitlines())


FOREIGN = st.text(st.sampled_from("ab `~#*[]()<>!|\n\\-\"'&;: é\u202e\u2028"), max_size=120)


@given(st.lists(FOREIGN, min_size=1, max_size=12), st.integers(200, 900))
def test_foreign_text_stays_inert_wherever_it_is_cut(foreign: list[str], max_chars: int) -> None:
    lines = ["# Ours", ""]
    for at, text in enumerate(foreign):
        part = [[code(text)], [f"- {escape(text)}"], list(fenced([*text.split("\n"), *["line"] * 20]))][
            at % 3
        ]
        lines += [*part, ""]

    found = cut_markdown("\n".join(lines), max_chars)

    assert len(found) <= max_chars
    assert_closed(found)
    tokens = MarkdownIt("commonmark").parse(found)
    kinds = {token.type for token in tokens} | {
        child.type for token in tokens for child in token.children or ()
    }
    assert not kinds & {"link_open", "image", "html_inline", "html_block", "blockquote_open"}
    assert sum(token.type == "heading_open" for token in tokens) <= 1


def assert_closed(text: str) -> None:
    """The last line is ours and no block of code swallows it."""
    tokens = MarkdownIt("commonmark").parse(text)
    assert tokens[-1].type != "fence" or text.rstrip().endswith("```")
    if "more characters were left out" in text:
        assert tokens[-1].type == "paragraph_close"
        assert tokens[-2].content.startswith("(")
