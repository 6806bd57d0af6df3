"""What a pull request's text says it closes.

Which pull request another takes back or brings back.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.prose.pull_requests import MAX_CHARS, closed_issues, relanded_pull, reverted_pull

REPO = "vllm-project/vllm"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        *(
            (f"{word} #39288", (39288,))
            for word in (
                "close",
                "closes",
                "closed",
                "fix",
                "fixes",
                "fixed",
                "resolve",
                "resolves",
                "resolved",
            )
        ),
        ("FIX #39288", (39288,)),
        ("Fixes: #39288.", (39288,)),
        ("fixes #1, fixes #2 and closes #1", (1, 2)),
        ("Fixes vllm-project/vllm#39288", (39288,)),
        ("Fixes VLLM-Project/vLLM#39288", (39288,)),
        ("Resolves https://github.com/vllm-project/vllm/issues/39288", (39288,)),
        ("fixes\n#39288", (39288,)),
        ("Fixes flashinfer-ai/flashinfer#7", ()),
        ("Resolves https://github.com/flashinfer-ai/flashinfer/issues/7", ()),
        ("Closes https://github.com/vllm-project/vllm/pull/7", ()),
        ("related to #39288", ()),
        ("prefix #39288", ()),
        ("fixes a crash, see #39288", ()),
        ("fixes#39288", ()),
        ("fixes #", ()),
        ("", ()),
    ],
)
def test_closing_keywords_are_read(text: str, wanted: tuple[int, ...]) -> None:
    assert closed_issues(text, REPO) == wanted


def test_what_stands_far_behind_is_not_read() -> None:
    assert closed_issues("x" * MAX_CHARS + " fixes #1", REPO) == ()


@given(
    st.lists(
        st.sampled_from(["fixes ", "closes: ", "#12", "a/b", "https://github.com/a/b/issues/", "9", "\n"]),
        max_size=20,
    ).map("".join)
)
def test_every_number_found_stands_in_the_text(text: str) -> None:
    assert [number for number in closed_issues(text, "a/b") if str(number) not in text] == []


REPO_REVERT_TEXT = "acme/engine"


@pytest.mark.parametrize(
    ("title", "body", "wanted"),
    [
        ('Revert "Fix the cache (#7)"', "", 7),
        ('Revert "Fix the cache"', "Reverts acme/engine#7", 7),
        ('Revert "Fix the cache"', "Reverts #7", 7),
        ('Revert "Fix the cache"', "It broke the nightly.\n\nThis reverts PR #7.", 7),
        ('Revert "Fix the cache"', "Reverts https://github.com/acme/engine/pull/7", 7),
        ('Revert "Fix the cache"', "Reverts other/engine#7", None),
        ('Revert "Fix the cache"', "", None),
        ("[Bugfix][CI] Revert #7", "", 7),
        ("[Revert] Fix the cache (#7)", "", 7),
        ("revert: the cache (#7)", "", 7),
        ('Revert "Revert "Fix the cache (#7)" (#8)"', "", 8),
        ('Revert "Fix #5 in the cache (#7)"', "Reverts acme/engine#7", 7),
        ("Undo the cache", "Reverts #7", 7),
        ("Partially revert #7", "", None),
        ("[Core] Revert part of #7", "", None),
        ("Detect alibi and revert to FA2 (#7)", "", None),
        ("Fix the cache", "This will be reverted by #7", None),
        ("Revertible caches (#7)", "", None),
        ("", "", None),
    ],
)
def test_a_revert_names_what_it_takes_back(title: str, body: str, wanted: int | None) -> None:
    assert reverted_pull(title, body, REPO_REVERT_TEXT) == wanted


@pytest.mark.parametrize(
    ("title", "body", "wanted"),
    [
        ('Reland "Fix the cache (#7)"', "", 7),
        ("[Core] Re-land #7", "", 7),
        ('Reapply "Fix the cache" (#7)', "", 7),
        ("[Reland] Fix the cache", "Re-lands #7 with a test.", 7),
        ("Reapply the cache", "Reapplies acme/engine#7", 7),
        ("Reapply the cache", "", None),
        ("Fix the cache", "Relands #7", None),
        ("Partially reland #7", "", None),
    ],
)
def test_a_re_landing_names_what_it_brings_back(title: str, body: str, wanted: int | None) -> None:
    assert relanded_pull(title, body, REPO_REVERT_TEXT) == wanted
