"""A fix, as far as people say it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.prose.stated_fix import find_fix
from tests.extract.saying import NUMBER, an_issue


def told(*comments: str) -> tuple[str, str | None, str | None] | None:
    fix, _ = find_fix(an_issue("", *comments))
    return (fix.state, fix.pr, fix.released_in) if fix else None


@pytest.mark.parametrize(
    ("said", "fix"),
    [
        ("Fixed by #31000.", ("fixed", "#31000", None)),
        ("The same cause is already addressed by #31000.", ("fixed", "#31000", None)),
        ("v0.20.2, which has #31000, removes the assertion.", ("fixed", "#31000", "0.20.2")),
        ("v0.20.1 contains the fix (#31000).", ("fixed", "#31000", "0.20.1")),
        ("Expects #31000, now merged, to have fixed it.", ("merged_unreleased", "#31000", None)),
        ("A fix is on main (#31000).", ("merged_unreleased", "#31000", None)),
        ("Fix submitted: PR #31000", ("in_progress", "#31000", None)),
        (
            "Opened https://github.com/vllm-project/vllm/pull/31000 to fix it.",
            ("in_progress", "#31000", None),
        ),
        ("Should be solved by #31000.", ("in_progress", "#31000", None)),
        ("Applying #31000, and nothing else, ends the crashes.", ("in_progress", "#31000", None)),
        ("已在 #31000 修复", ("fixed", "#31000", None)),
    ],
)
def test_a_fix_that_is_said_is_read(said: str, fix: tuple[str, str, str | None]) -> None:
    assert told(said) == fix


@pytest.mark.parametrize(
    "said",
    [
        "Duplicate of #31000.",
        "Introduced by #31000.",
        "Reverting #31000 fixes it.",
        "#31000 does not fix this.",
        "Is this fixed by #31000?",
        "After #31000 fixed the assert this test fails.",
        "Fixed by #31000. However it came back.",
        f"Fixed by #{NUMBER}.",
        "I opened an issue at #31000",
    ],
)
def test_a_mentioned_change_is_no_fix(said: str) -> None:
    assert told(said) is None


def test_a_fix_that_was_seen_to_help_wins_over_one_that_was_opened() -> None:
    assert told("Opened #31000 for it.", "Fixed by #32000.") == ("fixed", "#32000", None)


def test_a_request_has_no_fix() -> None:
    assert find_fix(an_issue("Fixed by #31000.", title="[RFC]: paths")) == (None, None)


@given(
    st.lists(
        st.sampled_from(["fixed by ", "#31000 ", "merged ", "v0.20.2 ", ". ", "\n"]) | st.text(max_size=8)
    ).map("".join)
)
def test_a_fix_has_a_quote_whatever_the_text(body: str) -> None:
    document = an_issue(body)
    fix, evidence = find_fix(document)
    assert (fix is None) == (evidence is None)
    if evidence is not None:
        assert document.sources[evidence.source][evidence.start : evidence.end] == evidence.quote
