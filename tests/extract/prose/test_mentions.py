"""Issues and pull requests that are mentioned."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.prose.mentions import find_related
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
