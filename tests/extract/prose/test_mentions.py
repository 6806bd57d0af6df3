"""Issues and pull requests that are mentioned."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.prose.mentions import (
    MAX_CHARS,
    closed_issues,
    find_fix,
    find_related,
    relanded_pull,
    reverted_pull,
)
from tests.extract.saying import NUMBER, an_issue


def told(body: str, *comments: str) -> tuple[tuple[int, ...], tuple[str, ...]]:
    here, elsewhere, _ = find_related(an_issue(body, *comments))
    return here, elsewhere


@pytest.mark.parametrize(
    "said",
    [
        "Same as #30579.",
        "(#30579)",
        "see https://github.com/vllm-project/vllm/issues/30579#issuecomment-1",
        "see https://github.com/vllm-project/vllm/pull/30579/files",
        "[#30579](https://github.com/vllm-project/vllm/pull/30579)",
        "vllm-project/vllm#30579",
        "> as in #30579",
    ],
)
def test_a_mention_is_related(said: str) -> None:
    assert told(said) == ((30579,), ())


@pytest.mark.parametrize(
    "said",
    [
        f"This is #{NUMBER}.",
        "#1 start the server",
        "#0 0x00007f1c in raise ()",
        "#4 3572.0 building the wheel",
        "GPU #100 fails",
        "Buildkite build #54783 fails",
        "https://github.com/vllm-project/vllm/discussions/30579",
        "https://github.com/vllm-project/vllm/blob/main/vllm/envs.py#L123",
        "https://github.com/vllm-project/vllm/commit/46f01a50ac",
        "pytorch#159674",
        "PyTorch issue #159674",
        "a colour like #123456 is no issue" if NUMBER < 20_000 else "color #123456",
        "```\n#30579 in a log\n```",
    ],
)
def test_what_only_looks_like_a_mention_is_none(said: str) -> None:
    assert told(said) == ((), ())


def test_other_repositories_are_named_in_full() -> None:
    output = "See flashinfer-ai/flashinfer#2822 and https://github.com/pytorch/pytorch/issues/159674."
    assert told(output) == ((), ("flashinfer-ai/flashinfer#2822", "pytorch/pytorch#159674"))


def test_a_link_text_belongs_to_the_repository_it_points_to() -> None:
    assert told("[#2822](https://github.com/flashinfer-ai/flashinfer/pull/2822)") == (
        (),
        ("flashinfer-ai/flashinfer#2822",),
    )


def test_each_is_named_once_in_the_order_of_reading() -> None:
    assert told("#300 and #200", "#200, #400") == ((300, 200, 400), ())


@given(
    st.lists(
        st.sampled_from(["#123 ", "#", "https://github.com/vllm-project/vllm/pull/77", "\n", "a/b#4", "```"])
        | st.text(max_size=8)
    ).map("".join)
)
def test_every_mention_is_a_quote_whatever_the_text(body: str) -> None:
    document = an_issue(body)
    here, elsewhere, evidence = find_related(document)
    assert len(evidence) == len(here) + len(elsewhere)
    for item in evidence:
        assert document.sources[item.source][item.start : item.end] == item.quote


@pytest.mark.parametrize(
    ("said", "relation"),
    [
        ("This is a duplicate of #30579.", "duplicate"),
        ("I see the same error as in #30579.", "same"),
        ("It is similar to #30579.", "similar"),
        ("It was introduced by #30579.", "culprit"),
        ("This should be fixed by #30579.", "fix"),
        ("#30579 has more on it.", "mention"),
    ],
)
def test_the_quote_s_rule_names_the_relation(said: str, relation: str) -> None:
    _, _, evidence = find_related(an_issue(said))
    assert [item.rule for item in evidence] == [f"related.{relation}"]


def test_a_relation_ends_with_its_sentence() -> None:
    _, _, evidence = find_related(
        an_issue("It was introduced by #30579. See also #30612. The same as #30700.")
    )
    assert [item.rule for item in evidence] == ["related.culprit", "related.mention", "related.same"]


def test_a_link_s_address_wins_over_its_words() -> None:
    assert told("see [#11732](https://github.com/vllm-project/vllm/issues/11762)")[0] == (11762,)


def told_fix(*comments: str) -> tuple[str, str | None, str | None] | None:
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
    assert told_fix(said) == fix


@pytest.mark.parametrize(
    "said",
    [
        "Duplicate of #31000.",
        "Introduced by #31000.",
        "Reverting #31000 fixes it.",
        "#31000 does not fix this.",
        "Is this fixed by #31000?",
        "After #31000 fixed the assert this test fails.",
        f"Fixed by #{NUMBER}.",
        "I opened an issue at #31000",
    ],
)
def test_a_mentioned_change_is_no_fix(said: str) -> None:
    assert told_fix(said) is None


def test_a_fix_that_was_seen_to_help_wins_over_one_that_was_opened() -> None:
    assert told_fix("Opened #31000 for it.", "Fixed by #32000.") == ("fixed", "#32000", None)


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
