"""One line that names the failure, then the verdict."""

from __future__ import annotations

import pytest

from app.knowledge.diagnosis.headline import MAX_CHARS, cut_at_word, describe_failure, headline
from app.knowledge.diagnosis.shapes import Band, Failure, Match, Why
from tests.samples import REPO

PORT = Failure(kind="port_in_use", name="port in use")
BUSY = "Server did not start (port in use): [Errno 98] Address already in use"
LONG_PATH = f"path {'a' * 200}/{'b' * 14} is longer than 107 characters"
SHORT_PATH = f"path {'a' * 50}…/{'b' * 14} is longer than 107 characters"


def a_match(title: str = "[Bug]: it fails", **why: tuple[str, ...]) -> Match:
    return Match(
        number=7, repo=REPO, title=title, url="u", state="open", score=0.5, band="likely", why=Why(**why)
    )


@pytest.mark.parametrize(
    ("program", "outcome", "failure", "error_type", "message", "wanted"),
    [
        ("server", "not_started", PORT, "OSError", "[Errno 98] Address already in use", BUSY),
        ("server", "stopped", None, "KeyError", "'x'", "Engine stopped: KeyError: 'x'"),
        ("engine", "not_started", None, "ValueError", "no\n  room", "Engine did not start: no room"),
        ("server", "refused", None, "BadRequestError", "", "The request was refused: BadRequestError"),
        ("client", "stopped", None, None, "no answer", "The command failed: no answer"),
        ("program", "stopped", None, None, "no shop", "The program stopped: no shop"),
        ("client", "stopped", None, None, LONG_PATH, f"The command failed: {SHORT_PATH}"),
        (
            "server",
            "not_started",
            PORT,
            None,
            "The port is in use",
            "Server did not start: The port is in use",
        ),
    ],
)
def test_the_failure_is_what_became_of_the_program_and_its_cause(
    program, outcome, failure, error_type, message, wanted
) -> None:
    assert describe_failure(program, outcome, failure, error_type, message) == wanted


@pytest.mark.parametrize(
    ("verdict", "matches", "wanted"),
    [
        ("same", [a_match()], "You hit #7: it fails."),
        ("same", [a_match("[Bug][ROCm]: it fails.")], "You hit #7: it fails."),
        ("same", [a_match("[Bug]")], "You hit #7."),
        ("same", [a_match("how to set the port of the server?")], "You hit #7."),
        ("same", [a_match("[CI Failure]: entrypoints/test_ports.py")], "You hit #7."),
        ("same", [a_match(f"[Bug]: {BUSY} again")], "You hit #7."),
        (
            "related",
            [a_match(shared=("the whole signature: OSError | Address already in use",))],
            "No known same failure; closest is #7, which shares the whole signature.",
        ),
        ("likely", [a_match()], "Probably #7: it fails."),
        (
            "likely",
            [a_match(differs=("your GPU is L4; theirs H100",))],
            "Probably #7: it fails. It differs: your GPU is L4; theirs H100.",
        ),
        (
            "related",
            [a_match(shared=("frame a.py:b",))],
            "No known same failure; closest is #7, which shares frame a.py:b.",
        ),
        ("related", [a_match()], "No known same failure; closest is #7, which shares some of its words."),
        ("unknown", [], "No stored issue is known to be this failure."),
        ("unknown", [a_match()], "No stored issue is known to be this failure."),
    ],
)
def test_the_failure_is_followed_by_the_verdict(verdict, matches, wanted: str) -> None:
    assert headline(verdict, matches, BUSY) == f"{BUSY} – {wanted}"


def test_without_an_error_the_verdict_says_so() -> None:
    assert headline("unknown", [], "") == (
        "No stored issue is known to be this failure: the text holds no error line."
    )


def test_of_a_long_cause_the_beginning_stays_and_so_does_the_verdict() -> None:
    line = headline("same", [a_match("word " * 60)], "Engine stopped: " + "telling " * 60)

    assert len(line) <= MAX_CHARS
    assert line.startswith("Engine stopped: telling telling")
    assert "telling… – You hit #7: word" in line


@pytest.mark.parametrize(
    ("text", "length", "wanted"),
    [
        ("short", 10, "short"),
        ("one two three", 10, "one two…"),
        ("It is too much. Try less", 22, "It is too much."),
        ("x" * 20, 10, "x" * 9 + "…"),
    ],
)
def test_a_text_is_cut_behind_a_sentence_or_a_word(text: str, length: int, wanted: str) -> None:
    assert cut_at_word(text, length) == wanted


@pytest.mark.parametrize(
    ("verdict", "matches", "wanted"),
    [
        ("likely", [a_match()], "By your words, probably #7: it fails. No log was read."),
        (
            "related",
            [a_match(shared=("words “a b”",))],
            "By your words alone, closest is #7, which shares words “a b”. No log was read.",
        ),
        (
            "unknown",
            [a_match()],
            "No stored issue is known to answer this: the question's words are too few or too common, and there is no log to read.",
        ),
    ],
)
def test_a_question_s_headline_says_that_words_answered_it_and_no_log(verdict, matches, wanted: str) -> None:
    assert headline(verdict, matches, "", is_question=True) == wanted


@pytest.mark.parametrize(("verdict", "is_said"), [("unknown", True), ("related", True), ("same", False)])
def test_an_answer_of_a_base_with_few_issues_says_so(verdict: Band, is_said: bool) -> None:
    assert ("Only 80 issues are stored here." in headline(verdict, [a_match()], "", stored=80)) is is_said


@pytest.mark.parametrize("failure", ["", "Engine stopped: " + "no block is left " * 20])
def test_an_answer_of_a_base_that_is_being_filled_says_to_ask_again(failure: str) -> None:
    told = headline("unknown", [], failure, stored=0)

    assert told.endswith("if triage up is filling this base, ask again in a minute.")
    assert "0 issues" not in told
