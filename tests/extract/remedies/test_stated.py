"""Remedies that sentences state, as issues tell them."""

from __future__ import annotations

import pytest

from app.extract.remedies.workarounds import find_workarounds
from app.extract.text.blocks import read_document
from app.extract.text.document import CommentText, IssueText


def _of(body: str, *comments: CommentText) -> list[tuple[str, str, bool]]:
    document = read_document(IssueText(1, "[Bug]: server hangs at startup", body, comments=comments))
    return [(item.action, item.outcome, item.without) for item, _ in find_workarounds(document)]


def test_a_stated_remedy_carries_its_sentence_and_its_chance() -> None:
    body = "The server hangs at startup. Setting VLLM_USE_V1=0 fixes the problem and it works fine."
    document = read_document(IssueText(1, "[Bug]: server hangs at startup", body))
    [(item, quote)] = find_workarounds(document)
    assert "VLLM_USE_V1=0" in item.action
    assert item.quote == "Setting VLLM_USE_V1=0 fixes the problem and it works fine."
    assert item.confidence == quote.confidence >= 0.5


def test_a_set_up_is_no_remedy() -> None:
    assert _of("I run it with --enforce-eager on two GPUs and the server hangs at startup.") == []


@pytest.mark.parametrize(
    "said",
    [
        "Offline inference works fine, but `vllm serve` returns garbage.",
        "The models run normally under low concurrency but crash under high concurrency.",
        "It works fine with a single message, but fails with several.",
    ],
)
def test_shorter_or_fewer_requests_are_no_remedy(said: str) -> None:
    assert _of(said) == []


@pytest.mark.parametrize(
    ("said", "action"),
    [
        ("It works fine on two 8xA100 nodes.", None),
        ("It does not occur with L4 or A100 GPUs.", None),
        ("This is normal when using one H100 GPU.", "using one H100 GPU"),
    ],
)
def test_another_card_is_no_remedy_and_one_card_of_many_is(said: str, action: str | None) -> None:
    assert [found for found, *_ in _of(said)] == ([action] if action else [])


@pytest.mark.parametrize(
    ("title", "found"),
    [
        ("[Bug]: garbage under tensor-parallel-size 2", []),
        ("[Bug]: garbage under tensor-parallel-size 4", ["TP=2"]),
        ("[Bug]: it only works with TP=2", ["TP=2"]),
    ],
)
def test_what_the_title_fails_under_is_no_remedy_though_another_model_works_with_it(
    title: str, found: list[str]
) -> None:
    document = read_document(IssueText(1, title, "The 31B model works correctly with TP=2."))
    assert [item.action for item, _ in find_workarounds(document)] == found


def test_the_reporter_and_the_title_confirm_nothing() -> None:
    comments = (
        CommentText("Thanks, works for me now with VLLM_USE_V1=0.", 5, "alice", "NONE"),
        CommentText("Same here: with VLLM_USE_V1=0 it works fine.", 6, "bob", "NONE"),
    )
    text = IssueText(
        1,
        "[Bug]: hangs, VLLM_USE_V1=0 works",
        "The server hangs at startup. Setting VLLM_USE_V1=0 fixes the problem and it works fine.",
        user="alice",
        comments=comments,
    )
    found = [item for item, _ in find_workarounds(read_document(text)) if "V1" in item.action]
    assert [item.confirmed_by for item in found] == [1]


def _commands(body: str) -> list[str | None]:
    document = read_document(IssueText(1, "[Bug]: server hangs at startup", body))
    return [item.command for item, _ in find_workarounds(document) if item.outcome == "works"]


def test_of_two_changes_of_which_one_is_removed_the_other_is_left_out_too() -> None:
    output = "Either removing `--enable-prefix-caching` or `--kv-cache-dtype fp8` solves the problem."
    assert _commands(output)
    assert not any(_commands(output))
    assert all(without or "emoving" in action for action, _, without in _of(output))


def test_what_works_in_another_version_is_not_handed_over_to_be_typed() -> None:
    assert _commands("It works fine with `--enforce-eager`.") == ["--enforce-eager"]
    assert not any(_commands("vLLM version 0.11.0 works fine with `--enforce-eager`."))


def test_a_size_at_which_it_works_is_quoted_only() -> None:
    assert _commands("It works fine with `--tensor-parallel-size 1`.") == [None]


def test_what_brings_another_failure_is_quoted_only() -> None:
    assert _commands("Setting `VLLM_USE_V1=0` prevents the crash.") == ["export VLLM_USE_V1=0"]
    assert not any(
        _commands("Setting `VLLM_USE_V1=0` prevents the crash (though it introduces [another bug](x)).")
    )


@pytest.mark.parametrize(
    ("run", "command"),
    [
        ("docker run vllm/vllm-openai:v0.8.5", "vllm/vllm-openai:v0.8.4"),
        ("pip install vllm==0.8.5", "pip install vllm==0.8.4"),
        ("pip install vllm==0.8.5\ndocker run vllm/vllm-openai:v0.8.5", "pip install vllm==0.8.4"),
    ],
)
def test_a_release_is_named_as_the_report_runs_it(run: str, command: str) -> None:
    said = "Downgrading to `v0.8.4` resolves the issue."
    assert _commands(f"{said}\n\n```\n{run}\n```\n") == [command]


def test_what_it_fails_with_is_never_handed_over_as_the_cure() -> None:
    output = (
        "The error occurs when using export VLLM_USE_V1=1, but it does not occur when using VLLM_USE_V1=0."
    )
    assert set(_commands(output)) <= {None, "export VLLM_USE_V1=0"}


@pytest.mark.parametrize(
    ("said", "thing"),
    [
        ("The hang only occurs if prefix caching is enabled; otherwise it is stable.", "prefix caching"),
        ("This works when --enable-lora is not set.", "--enable-lora"),
    ],
)
def test_what_works_only_without_a_thing_says_to_leave_it_out(said: str, thing: str) -> None:
    assert _of(said) == [(thing, "works", True)]


@pytest.mark.parametrize(
    ("said", "act"),
    [
        ("But without cuda graph, it exits normally.", "without cuda graph"),
        (
            "The crash is gone when `enable_prefix_caching` is disabled.",
            "`enable_prefix_caching` is disabled",
        ),
    ],
)
def test_words_that_take_a_thing_away_themselves_are_the_remedy_and_nothing_to_type(
    said: str, act: str
) -> None:
    assert _of(said) == [(act, "works", False)]
    assert _commands(said) == [None]


@pytest.mark.parametrize(
    ("said", "action"),
    [
        ("It breaks with bfloat16. float16 works fine.", "float16"),
        ("Works fine without guided decoding.", "without guided decoding"),
    ],
)
def test_a_choice_that_works_beside_the_one_that_fails_is_a_remedy(said: str, action: str) -> None:
    assert [(item, outcome) for item, outcome, _ in _of(said)] == [(action, "works")]


@pytest.mark.parametrize(
    ("body", "action"),
    [
        ("It works fine after reducing `max_model_len`.", "reducing `max_model_len`"),
        ("I downgraded to `v0.5.3` and it works fine.", "`v0.5.3`"),
    ],
)
def test_an_action_holds_both_backticks_of_its_code(body: str, action: str) -> None:
    [(found, outcome, _)] = _of(body)
    assert found.endswith(action)
    assert found.count("`") % 2 == 0
    assert outcome == "works"


def test_what_it_fails_without_is_the_remedy() -> None:
    output = (
        "[bug/perf] The server hangs an hour in weight loading without --safetensors-load-strategy prefetch."
    )
    assert not any("ithout" in action for action, outcome, _ in _of(output) if outcome != "fails")
    assert any("ithout" in action for action, _, _ in _of("Without streaming it works fine."))
    assert _of("It crashes when `--enforce-eager` is not set.") == [("--enforce-eager", "works", False)]


@pytest.mark.parametrize(
    "said",
    [
        "`--enforce-eager` seems to work, no more crash.",
        "The server works with `--enforce-eager`, if I run it with CPU offload enabled.",
        "Serving the AWQ model works fine with `--enforce-eager`.",
    ],
)
def test_an_outcome_in_doubt_or_of_another_model_is_not_handed_over_to_be_typed(said: str) -> None:
    assert not any(_commands(said))


def test_an_attempt_failed_only_if_the_whole_sentence_is_read_so() -> None:
    fixed = "Downgrading to v0.8.5 resolves this issue. I also tried `--enforce-eager`, it did not help."
    assert ("--enforce-eager", "fails", False) in _of(fixed)
    assert not any(outcome == "fails" and "0.8.5" in action for action, outcome, _ in _of(fixed))
    assert _of("We are trying to run speculative decoding with LoRA without success.") == []
