"""What a pull request's text says it closes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.pull_text import MAX_CHARS, closed_issues

REPO = "vllm-project/vllm"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        *((f"{word} #39288", (39288,)) for word in ("close", "closes", "closed", "fix", "fixes", "fixed", "resolve", "resolves", "resolved")),
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
)  # fmt: skip
def test_closing_keywords_are_read(text: str, wanted: tuple[int, ...]) -> None:
    assert closed_issues(text, REPO) == wanted


def test_what_stands_far_behind_is_not_read() -> None:
    assert closed_issues("x" * MAX_CHARS + " fixes #1", REPO) == ()


@given(st.lists(st.sampled_from(["fixes ", "closes: ", "#12", "a/b", "https://github.com/a/b/issues/", "9", "\n"]), max_size=20).map("".join))
def test_every_number_found_stands_in_the_text(text: str) -> None:
    assert [number for number in closed_issues(text, "a/b") if str(number) not in text] == []
