"""The verdict in one sentence."""

from __future__ import annotations

import pytest

from app.knowledge.answers import Match, RootCause, Why
from app.knowledge.headline import headline
from tests.samples import REPO

CAUSE = RootCause(type="KeyError", message="'x'", line=3, quote="KeyError: 'x'")


def a_match(title: str = "[Bug]: it fails", **why: tuple[str, ...]) -> Match:
    return Match(number=7, repo=REPO, title=title, url="u", state="open", score=0.5, band="likely", why=Why(**why))


@pytest.mark.parametrize(
    ("verdict", "matches", "cause", "wanted"),
    [
        ("same", [a_match()], CAUSE, "You hit #7: it fails."),
        ("same", [a_match("[Bug][ROCm]: it fails.")], CAUSE, "You hit #7: it fails."),
        ("same", [a_match("[Bug]")], CAUSE, "You hit #7: [Bug]."),
        ("likely", [a_match()], CAUSE, "Probably #7: it fails."),
        ("likely", [a_match(differs=("your GPU is L4; theirs H100",))], CAUSE, "Probably #7: it fails. It differs: your GPU is L4; theirs H100."),
        ("related", [a_match(shared=("frame a.py:b",))], CAUSE, "No known same failure; closest is #7, which shares frame a.py:b."),
        ("related", [a_match()], CAUSE, "No known same failure; closest is #7, which shares some of its words."),
        ("unknown", [], None, "No stored issue is known to be this failure: the text holds no error line."),
        ("unknown", [], CAUSE, "No stored issue is known to be this failure: nothing stored shares its error or its frames."),
        ("unknown", [a_match()], CAUSE, "No stored issue is known to be this failure: what it shares with others is too common to tell."),
    ],
)  # fmt: skip
def test_the_headline_says_which_issue_or_why_none(verdict, matches, cause, wanted: str) -> None:
    assert headline(verdict, matches, cause) == wanted


@pytest.mark.parametrize(
    ("verdict", "matches", "wanted"),
    [
        ("likely", [a_match()], "By your words, probably #7: it fails. No log was read."),
        ("related", [a_match(shared=("words “a b”",))], "By your words alone, closest is #7, which shares words “a b”. No log was read."),
        ("unknown", [a_match()], "No stored issue is known to answer this: the question's words are too few or too common, and there is no log to read."),
    ],
)  # fmt: skip
def test_a_question_s_headline_says_that_words_answered_it_and_no_log(verdict, matches, wanted: str) -> None:
    assert headline(verdict, matches, None, is_question=True) == wanted
