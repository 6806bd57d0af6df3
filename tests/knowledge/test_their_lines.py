"""The telling lines of a stored issue, as its own text has them."""

from __future__ import annotations

import pytest

from app.extract.redact import BLOCK
from app.knowledge.answers import MatchLine
from app.knowledge.starter_set import load_starter_set
from app.knowledge.their_lines import MAX_LINE_CHARS, their_lines
from app.paths import cards_dir
from app.starter.cards import read_cards
from app.store.session import Store
from tests.knowledge.conftest import Keep
from tests.samples import a_comment, an_issue, fenced, marlin_log

BODY = fenced("It fails.", marlin_log())


def lines_of(store: Store, repo_id: int, number: int = 1) -> tuple[MatchLine, ...]:
    with store.reading() as session:
        return their_lines(session, repo_id, number)


def test_the_error_its_frame_what_stands_before_and_the_wrappers_are_quoted(store: Store, keep: Keep) -> None:
    found = lines_of(store, keep(an_issue(1, body=BODY)))

    assert [(line.number, line.role) for line in found] == [
        (4, "wrapper"), (6, "before"), (7, "before"), (8, "frame"), (9, "error"), (10, "wrapper")
    ]  # fmt: skip


def test_every_line_stands_in_the_body_at_its_number(store: Store, keep: Keep) -> None:
    found = lines_of(store, keep(an_issue(1, body=BODY)))

    assert [line for line in found if line.text != BODY.splitlines()[line.number - 1]] == []


def test_marks_of_the_form_are_left_out(store: Store, keep: Keep) -> None:
    body = "### The error\n\n<details>\n\n```text\n    ^^^^^^\nValueError: no room for it\n```\n</details>"

    assert [line.text for line in lines_of(store, keep(an_issue(1, body=body)))] == ["ValueError: no room for it"]


def test_a_secret_is_masked_even_if_what_tells_it_stands_lines_above(store: Store, keep: Keep) -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\nAAAASCBKcwggSj\n-----END PRIVATE KEY-----"
    body = f"```text\n{key}\nValueError: password: correct-horse is wrong\n```"
    found = lines_of(store, keep(an_issue(1, body=body)))

    assert [line.text for line in found] == [
        BLOCK * 14, BLOCK * 14, "-----END PRIVATE KEY-----", f"ValueError: password: {BLOCK * 13} is wrong"
    ]  # fmt: skip


def test_a_very_long_line_is_cut_around_its_words(store: Store, keep: Keep) -> None:
    body = fenced(f"{'x' * 3000} ValueError: no room {'y' * 3000}\nKeyError: '{'z' * 3000}'\n")
    found = lines_of(store, keep(an_issue(1, body=body)))

    assert found != ()
    assert all(len(line.text) <= MAX_LINE_CHARS + 2 for line in found)


@pytest.mark.parametrize(
    "record",
    [an_issue(1, title="[Bug]: ValueError: no room for it", body="It fails."), an_issue(1, body="Please add it.")],
    ids=["told by the title", "no error"],
)
def test_an_issue_whose_body_tells_no_error_has_no_lines(store: Store, keep: Keep, record) -> None:
    assert lines_of(store, keep(record, a_comment(5, 1, "Me too."))) == ()


def test_an_unknown_number_has_no_lines(store: Store, keep: Keep) -> None:
    assert lines_of(store, keep(an_issue(1)), number=99) == ()


def test_what_only_a_card_tells_is_quoted_from_the_card_s_log(store: Store) -> None:
    load_starter_set(store)
    with store.reading() as session:
        told = {card.number: (card.log.splitlines(), their_lines(session, 1, card.number)) for card in read_cards(cards_dir())}
    shown = {number: lines for number, (_, lines) in told.items() if lines}

    assert len(shown) > len(told) // 2
    for number, lines in shown.items():
        assert [line for line in lines if line.text.strip("…") not in told[number][0][line.number - 1]] == []
