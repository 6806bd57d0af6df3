"""Words that the Markdown of issues and reports share."""

from __future__ import annotations

from types import SimpleNamespace

from app.knowledge import labels
from app.knowledge.text.markdown import render_markdown
from app.store.github.presence import KEPT_OUT, TAKEN_DOWN
from app.web.answers.budget import ORDERS, dumps, fit
from app.web.mcp.shapes import FixAnswer, FixShort


def test_what_was_forgotten_is_named_by_the_reasons_that_are_stored() -> None:
    assert labels.FORGOTTEN == (TAKEN_DOWN, KEPT_OUT)


def test_a_merged_fix_names_its_pull_request_before_the_release() -> None:
    fix = FixShort(state="merged_unreleased", pr=20168, pull_request="#20168")
    answer = FixAnswer(number=1, repo="vllm-project/vllm", title="t", url="u", state="open", fix=fix)
    text = render_markdown("tool_fix.md", answer=answer, issue=SimpleNamespace(), fix=fix)
    assert "Merged by " in text
    assert ", in no known release" in text


def test_a_short_answer_on_an_upgrade_counts_what_breaks() -> None:
    line = {"number": 1, "title": "x" * 200, "reason": "r" * 200}
    totals = {"fixed": 0, "breaks": 9, "still_open": 50, "unsure": 4}
    answer = {"from_version": "0.21.0", "to_version": "0.22.1", "totals": totals, "breaks": [line] * 9}
    answer |= {"fixed": [], "reasons": ["a" * 200], "unsure": [line] * 4}
    found = fit(answer, ORDERS["UpgradeAnswer"], 250)
    assert len(dumps(found)) <= 250
    assert found["totals"] == totals
