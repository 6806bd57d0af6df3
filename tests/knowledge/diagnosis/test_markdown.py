"""A diagnosis as Markdown: foreign text stays inert."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from app.extract.facts import Regression
from app.knowledge.diagnosis.markdown import diagnosis_markdown
from app.knowledge.diagnosis.shapes import (
    Diagnosis,
    IndexState,
    LogEnvironment,
    Match,
    MatchLine,
    NextStep,
    RootCause,
    Why,
)
from app.knowledge.fix.shapes import FixView
from app.knowledge.remedies import Remedy
from app.knowledge.text.quoting import code, escape
from tests.samples import REPO

URL = f"https://github.com/{REPO}/issues/39288"
RENDER = MarkdownIt("commonmark").enable(["table", "strikethrough"])

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[click](javascript:alert(1))",
    "![x](http://e.example/x.png)",
    "**bold** _it_ ~~gone~~",
    "`code` ``",
    "# heading",
    "> quote",
    "- item",
    "1. item",
    "| a | b |\n|---|---|\n| c | d |",
    "```\nfence",
    "line\n\n# heading after a blank line",
    "<!-- hidden",
    "&lt;b&gt;",
    "[ref]: http://e.example",
    "\\",
    "\\`",
    "***",
    "text\n===",
    "a ` b",
    "a `` b",
    "`",
    "</details>",
    "<http://e.example>",
    "    indented",
    "\t",
    "",
]


def a_diagnosis(text: str = "a thing", **more: Any) -> Diagnosis:
    remedy = Remedy(action=f"x {text}", kind="flag", outcome="works", repo=REPO, number=39288, url=URL)
    match = Match(
        number=39288,
        repo=REPO,
        title=text,
        url=URL,
        state="open",
        score=0.97,
        band="same",
        why=Why(shared=(text,), differs=(text,)),
        regression=Regression(first_failing=text, still_failing=(text,)),
        fix=FixView(state="fixed", pr="#7", released_in=text, for_you="upgrade"),
        workarounds=(remedy,),
        excerpt=(
            MatchLine(number=12, text=f"before {text}", role="before"),
            MatchLine(number=13, text=f"x {text}", role="error"),
        ),
    )
    told: dict[str, Any] = {
        "verdict": "same",
        "root_cause": RootCause(type=text, message=text, frame=text, process=text, line=3, quote=text),
        "environment": LogEnvironment(),
        "matches": (match,),
        "workarounds": (remedy,),
        "headline": text,
        "took_ms": 1.0,
        "next_steps": (NextStep(text="Run it once more", command="vllm serve"),),
        "index": IndexState(issues=15818, as_of=datetime(2026, 6, 3, 6, tzinfo=UTC)),
    }
    return Diagnosis(**{**told, **more})


def tokens(text: str) -> list[Token]:
    return [inner for token in RENDER.parse(text) for inner in (token, *(token.children or ()))]


def shape(text: str) -> list[tuple[str, str]]:
    """What the text makes: all tokens but words and code, with their targets."""
    kept = [
        token
        for token in tokens(text)
        if token.type not in {"text", "inline", "code_inline", "softbreak", "text_special"}
    ]
    return [(token.type, str(token.attrs.get("href", token.attrs.get("src", "")))) for token in kept]


def words(text: str) -> str:
    return "".join(
        token.content for token in tokens(text) if token.type in {"text", "code_inline", "text_special"}
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_changes_nothing_of_the_page_s_shape(text: str) -> None:
    assert shape(diagnosis_markdown(a_diagnosis(text))) == shape(diagnosis_markdown(a_diagnosis()))


@given(st.text(st.sampled_from("a`*_[]<>#|!~@\\()&:-=\n \t"), max_size=30))
def test_any_text_changes_nothing_of_the_page_s_shape(text: str) -> None:
    assert shape(diagnosis_markdown(a_diagnosis(text))) == shape(diagnosis_markdown(a_diagnosis()))


@given(st.text(st.sampled_from("a`*_[]<>#|!~@\\():-=\n 1."), max_size=30))
def test_escaped_text_reads_as_it_was(text: str) -> None:
    seen = words(f"x {escape(text)} x").replace("\u200b", "")
    assert seen == f"x {' '.join(text.split())} x"


def test_nobody_is_called_by_name() -> None:
    assert "@maintainer" not in escape("ask @maintainer")


@given(st.text(st.sampled_from("a`\\*<\n "), max_size=30).filter(str.strip))
def test_code_reads_as_it_was(text: str) -> None:
    assert words(f"x {code(text)} x") == f"x {' '.join(text.split())} x"


def test_the_answer_has_its_headings_in_order() -> None:
    text = diagnosis_markdown(a_diagnosis())

    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "## Root cause",
        "## Both logs",
        "## Remedies",
        "## Matches",
        "## Next steps",
    ]


def test_the_verdict_stands_first_and_the_freshness_last() -> None:
    lines = diagnosis_markdown(a_diagnosis()).splitlines()

    assert lines[0] == "**Same failure** (97%): a thing"
    assert lines[-1] == "Checked against 15,818 issues (as of: 2026-06-03 06:00 UTC)."


def test_an_answer_without_anything_is_short() -> None:
    empty = a_diagnosis(
        verdict="unknown",
        root_cause=None,
        matches=(),
        workarounds=(),
        next_steps=(),
        index=IndexState(issues=0),
    )

    assert (
        diagnosis_markdown(empty)
        == "**Unknown**: a thing\n\nChecked against 0 issues (as of: never synced).\n"
    )


def test_a_remedy_tells_outcome_and_source() -> None:
    remedy = Remedy(
        action="--enforce-eager",
        kind="flag",
        outcome="fails",
        by="maintainer",
        repo=REPO,
        number=39288,
        url=URL,
    )

    text = diagnosis_markdown(a_diagnosis(workarounds=(remedy,)))

    assert f"\n- `--enforce-eager`: did not help, reported by the maintainer, [#39288]({URL})\n" in text


@pytest.mark.parametrize(
    ("fix", "wanted"),
    [
        (FixView(state="fixed", pr="#7", released_in="0.9.2"), "Fixed by #7, in 0.9.2"),
        (
            FixView(state="fixed", pr="#7", released_in="0.9.2", for_you="upgrade"),
            "Fixed by #7, in 0.9.2. Upgrade: your version does not have it.",
        ),
        (FixView(state="not_fixed", for_you="not_fixed"), "Not fixed. Upgrading is not known to help."),
        (FixView(state="unknown"), "Fix unknown"),
    ],
)
def test_a_fix_is_told_in_words(fix: FixView, wanted: str) -> None:
    match = a_diagnosis().matches[0].model_copy(update={"fix": fix})

    assert f"\n  - fix: {wanted}\n" in diagnosis_markdown(a_diagnosis(matches=(match,)))


def test_both_logs_stand_as_two_blocks_of_code() -> None:
    blocks = [
        token.content
        for token in tokens(diagnosis_markdown(a_diagnosis("a ``` thing")))
        if token.type == "fence"
    ]

    assert blocks == ["a ``` thing\n", "before a ``` thing\nx a ``` thing\n"]


def test_without_the_issue_s_lines_there_are_no_blocks_of_code() -> None:
    empty = a_diagnosis().matches[0].model_copy(update={"excerpt": ()})

    assert "```" not in diagnosis_markdown(a_diagnosis(matches=(empty,)))
