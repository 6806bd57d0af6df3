"""Whether a thing is to be applied or left out, by the clause around it."""

from __future__ import annotations

import pytest

from app.extract.facts import Outcome
from app.extract.remedies.polarity import with_polarity
from app.extract.remedies.sentences import RemedyStatement
from app.extract.text.blocks import read_document
from app.extract.text.document import IssueText
from app.extract.text.sentences import read_sentences


def _judged(
    said: str, action: str, *, without: bool = False, outcome: Outcome = "works"
) -> tuple[str, bool] | None:
    document = read_document(IssueText(1, "[Bug]: server hangs at startup", said))
    sentence = next(one for one in read_sentences(document) if action in one.text)
    at = sentence.text.index(action)
    source, start, end = sentence.span(at, at + len(action))
    read = RemedyStatement(action, source, start, end, "flag", outcome, "any", 0.9, without)
    found = with_polarity(sentence, read)
    return (found.action, found.without) if found else None


@pytest.mark.parametrize(
    ("said", "action"),
    [
        ("The server hangs after a few requests without `--enforce-eager`.", "`--enforce-eager`"),
        ("It crashes at warm-up when --enforce-eager is not set.", "--enforce-eager"),
        ("The workers fail to start properly without --enforce-eager.", "--enforce-eager"),
    ],
)
def test_what_it_fails_without_is_the_remedy(said: str, action: str) -> None:
    assert _judged(said, action, without=True) == (action, False)


def test_of_what_it_fails_without_the_negation_is_no_part() -> None:
    assert _judged("Every worker crashes without --enforce-eager.", "without --enforce-eager") == (
        "--enforce-eager",
        False,
    )


@pytest.mark.parametrize(
    ("said", "action"),
    [
        ("The crash occurs only when prefix caching is enabled.", "prefix caching"),
        ("Throughput is worse with LoRA than without LoRA adapters.", "LoRA adapters"),
        ("Without chunked prefill it stays fast, but with ten clients it crashes.", "chunked prefill"),
        ("The hang does not happen when async scheduling is disabled.", "async scheduling"),
    ],
)
def test_what_it_fails_with_is_left_out(said: str, action: str) -> None:
    assert _judged(said, action, without=True) == (action, True)


@pytest.mark.parametrize(
    ("said", "action"),
    [
        ("When I set --tensor-parallel-size 4, the server crashes.", "--tensor-parallel-size 4"),
        ("After removing --enforce-eager it prints garbage.", "removing --enforce-eager"),
        ("The crash also reproduces without --enable-lora.", "without --enable-lora"),
        ("With --max-num-seqs 8 it works, but it crashes with --max-num-seqs 64.", "--max-num-seqs 64"),
        (
            "I set --block-size to 16 and got an error, so I chose 32, which works.",
            "set --block-size to 16 and got",
        ),
        (
            "Without LoRA: the output is correct - with `--enable-lora`: the output is garbage.",
            "`--enable-lora`",
        ),
        ("When setting --pp 4, the throughput is lower than with 2, which is fine.", "--pp 4"),
        ("Running without `foo` installed causes empty outputs, it works in 0.5.", "without `foo` installed"),
    ],
)
def test_a_clause_that_tells_a_failure_right_after_a_change_states_no_remedy(said: str, action: str) -> None:
    assert _judged(said, action) is None


def test_what_is_no_different_without_a_thing_is_not_left_out() -> None:
    said = "It was found with `--enable-lora`, but all of it reproduces identically without it."
    assert _judged(said, "--enable-lora", without=True) is None


@pytest.mark.parametrize(
    ("said", "action"),
    [
        ("Using --enforce-eager gets rid of the crash.", "--enforce-eager"),
        ("The workaround is --enforce-eager (otherwise it crashes).", "--enforce-eager"),
        ("Restarting the pod helps when it hangs.", "Restarting the pod"),
        ("With --pp 2 it works; without --pp 2 it crashes.", "--pp 2"),
    ],
)
def test_a_failure_told_of_something_else_takes_nothing_away(said: str, action: str) -> None:
    assert _judged(said, action) == (action, False)


@pytest.mark.parametrize(
    ("said", "action", "without"),
    [
        ("The server starts with --enforce-eager.", "--enforce-eager", False),
        ("It works when --enable-lora is not set.", "--enable-lora", True),
        ("Not using --enable-lora makes it start.", "--enable-lora", True),
        ("The crash does **not** occur with `--enforce-eager`.", "`--enforce-eager`", False),
        ("**disabling the V1 engine** or **setting --enforce-eager** solves it.", "--enforce-eager", False),
    ],
)
def test_where_it_works_the_nearest_words_decide(said: str, action: str, without: bool) -> None:
    assert _judged(said, action) == (action, without)


def test_what_is_praised_is_no_failed_attempt_though_another_one_in_its_sentence_is() -> None:
    said = "Downgrading to 0.8.4 fixes the crash I also set --enforce-eager which did not help"
    assert _judged(said, "Downgrading to 0.8.4", outcome="fails") is None
    assert _judged(said, "--enforce-eager", outcome="fails") == ("--enforce-eager", False)
