"""The lines of a log and of a stored issue that a page shows, with what they have in common marked."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.extract.redact import BLOCK
from app.knowledge.diagnosis.diagnose import diagnose_log
from app.knowledge.diagnosis.excerpts import (
    MAX_LINE_CHARS,
    MAX_LINES,
    common_words,
    issue_excerpt,
    marked_pieces,
)
from app.knowledge.diagnosis.shapes import MatchLine
from app.paths import cards_dir
from app.starter.card import read_cards
from app.store.session import Store
from tests.knowledge.conftest import Keep
from tests.samples import FOREIGN_LOG, HEALTHY_LOG, REPO, a_comment, a_traceback, an_issue, fenced, marlin_log
from tests.starter_base import put_cards

LOG = marlin_log()


def lines_of(store: Store, log: str) -> tuple[MatchLine, ...]:
    return diagnose_log(store, log, repos=(REPO,)).excerpt


def test_the_cause_its_neighbours_and_the_wrappers_are_shown_in_order(sqlite_store: Store) -> None:
    assert [(line.number, line.role) for line in lines_of(sqlite_store, LOG)] == [
        (1, "wrapper"),
        (3, "before"),
        (4, "before"),
        (5, "before"),
        (6, "error"),
        (7, "wrapper"),
    ]


def test_a_line_is_shown_as_it_stands_in_the_log(sqlite_store: Store) -> None:
    assert [
        line for line in lines_of(sqlite_store, LOG) if line.text != LOG.splitlines()[line.number - 1]
    ] == []


def test_a_log_without_an_error_shows_nothing(sqlite_store: Store) -> None:
    assert lines_of(sqlite_store, HEALTHY_LOG) == ()


def test_blank_neighbours_are_left_out(sqlite_store: Store) -> None:
    assert [line.number for line in lines_of(sqlite_store, "first\n\n\nValueError: no\n\n")] == [1, 4]


def test_secrets_are_masked(sqlite_store: Store) -> None:
    [line] = lines_of(sqlite_store, "ValueError: password: correct-horse at /home/jane/x")

    assert line.text == f"ValueError: password: {BLOCK * 13} at /home/{BLOCK * 4}/x"


def test_a_key_block_beside_the_cause_is_masked(sqlite_store: Store) -> None:
    log = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\nAAAASCBKcwggSj\n-----END PRIVATE KEY-----\nValueError: no"

    assert [line.text for line in lines_of(sqlite_store, log)] == [
        BLOCK * 14,
        BLOCK * 14,
        "-----END PRIVATE KEY-----",
        "ValueError: no",
    ]


def test_a_very_long_line_is_cut(sqlite_store: Store) -> None:
    [line] = lines_of(sqlite_store, f"ValueError: {'x' * 5000}\n" + "\n" * 20)

    assert len(line.text) == MAX_LINE_CHARS


def test_control_characters_do_not_shift_the_numbers(sqlite_store: Store) -> None:
    log = "first\x00\nTrace\x07back (most recent call last):\nValueError: no\n"

    assert [(line.number, line.role) for line in lines_of(sqlite_store, log)] == [
        (1, "before"),
        (2, "before"),
        (3, "error"),
    ]


def test_the_cause_is_shown_however_many_wrappers_there_are(sqlite_store: Store) -> None:
    words = [
        f"(EngineCore_DP0 pid=9) ERROR 03-14 09:26:54 [x.py:1] Worker proc VllmWorker-{at} died unexpectedly"
        for at in range(12)
    ]
    page = lines_of(sqlite_store, "\n".join([*words, a_traceback("ValueError: no", "vllm/a.py:b")]))

    assert [line.role for line in page].count("error") == 1
    assert len(page) <= MAX_LINES


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.sampled_from(
            [
                *LOG.splitlines(),
                *FOREIGN_LOG.splitlines(),
                "",
                "Trace\x00back (most recent call last):",
                "x" * 900,
            ]
        ),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from(["\n", " ", "\r\n"]),
)
def test_any_log_s_excerpt_is_short_and_in_order(sqlite_store: Store, lines: list[str], between: str) -> None:
    log = between.join([*lines, "end"])
    page = [line.number for line in lines_of(sqlite_store, log)]

    assert page == sorted(set(page))
    assert len(page) <= MAX_LINES


@pytest.mark.parametrize(
    "flat", [" ".join(("We saw this after the upgrade of the cluster. " * 12 + LOG).split())]
)
def test_a_text_that_lost_its_line_breaks_is_shown_in_pieces(sqlite_store: Store, flat: str) -> None:
    hot = [line.text for line in lines_of(sqlite_store, flat) if line.role == "error"]

    assert len(hot) == 1
    assert "is not divisible by min_thread_n = 64." in hot[0]


PREFIX = "(EngineCore_DP0 pid=314) ERROR 03-14 09:26:54 [core.py:20] "


def marked(line: str, *others: str) -> list[str]:
    """What is marked in a line that stands beside others."""
    ours, theirs = (
        [MatchLine(number=1, text=text, role="error") for text in texts] for texts in ((line,), others)
    )
    return [text for text, is_common in marked_pieces(line, common_words(ours, theirs)) if is_common]


def test_what_both_say_is_marked_and_what_differs_is_not() -> None:
    ours = "ValueError: output_size = 4544 is not divisible by 64"
    theirs = "ValueError: output_size = 2112 is not divisible by 64"

    assert marked(ours, theirs) == marked(theirs, ours) == ["ValueError", "output_size", "divisible"]


def test_what_a_program_puts_before_its_words_is_never_marked() -> None:
    assert marked(PREFIX + "KeyError: 'rope'", PREFIX + "KeyError: 'rope'") == ["KeyError", "rope"]


def test_words_of_every_traceback_are_not_marked_alone() -> None:
    ours = '  File "/opt/venv/lib/python3.12/site-packages/a.py", line 20, in x'
    theirs = '  File "/opt/venv/lib/python3.12/site-packages/b.py", line 20, in y'

    assert marked(ours, theirs) == []


def test_a_terminal_s_colours_are_not_shown() -> None:
    pieces = marked_pieces("\x1b[1;36mValueError: no room\x1b[0;0m", frozenset())

    assert "".join(text for text, _ in pieces) == "ValueError: no room"


@given(st.text(max_size=80), st.text(max_size=80))
def test_the_pieces_of_a_line_are_the_line(ours: str, theirs: str) -> None:
    ours = ours.replace("\x1b", "")
    common = common_words(
        [MatchLine(number=1, text=ours, role="error")], [MatchLine(number=1, text=theirs, role="error")]
    )

    assert "".join(text for text, _ in marked_pieces(ours, common)) == ours


BODY = fenced("It fails.", marlin_log())


def lines_of_issue(store: Store, repo_id: int, number: int = 1) -> tuple[MatchLine, ...]:
    with store.reading() as session:
        return issue_excerpt(session, repo_id, number)


def test_the_error_its_frame_what_stands_before_and_the_wrappers_are_quoted(store: Store, keep: Keep) -> None:
    found = lines_of_issue(store, keep(an_issue(1, body=BODY)))

    assert [(line.number, line.role) for line in found] == [
        (4, "wrapper"),
        (6, "before"),
        (7, "before"),
        (8, "frame"),
        (9, "error"),
        (10, "wrapper"),
    ]


def test_of_two_errors_the_one_that_the_caller_met_is_quoted(store: Store, keep: Keep) -> None:
    first = a_traceback("RuntimeError: Cannot re-initialize CUDA in forked subprocess.", "vllm/a.py:start")
    second = a_traceback("RuntimeError: NCCL error: invalid usage", "vllm/b.py:check")
    repo_id = keep(an_issue(1, body=fenced("Both are in the log.", f"{first}\n\n{second}")))

    with store.reading() as session:
        for message in ("NCCL error: invalid usage", "Cannot re-initialize CUDA in forked subprocess."):
            [hot] = [x for x in issue_excerpt(session, repo_id, 1, message) if x.role == "error"]
            assert message in hot.text


def test_every_line_stands_in_the_body_at_its_number(store: Store, keep: Keep) -> None:
    found = lines_of_issue(store, keep(an_issue(1, body=BODY)))

    assert [line for line in found if line.text != BODY.splitlines()[line.number - 1]] == []


def test_marks_of_the_form_are_left_out(store: Store, keep: Keep) -> None:
    body = "### The error\n\n<details>\n\n```text\n    ^^^^^^\nValueError: no room for it\n```\n</details>"

    assert [line.text for line in lines_of_issue(store, keep(an_issue(1, body=body)))] == [
        "ValueError: no room for it"
    ]


def test_a_secret_is_masked_even_if_what_tells_it_stands_lines_above(store: Store, keep: Keep) -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\nAAAASCBKcwggSj\n-----END PRIVATE KEY-----"
    body = f"```text\n{key}\nValueError: password: correct-horse is wrong\n```"
    found = lines_of_issue(store, keep(an_issue(1, body=body)))

    assert [line.text for line in found] == [
        BLOCK * 14,
        BLOCK * 14,
        "-----END PRIVATE KEY-----",
        f"ValueError: password: {BLOCK * 13} is wrong",
    ]


def test_a_very_long_line_is_cut_around_its_words(store: Store, keep: Keep) -> None:
    body = fenced(f"{'x' * 3000} ValueError: no room {'y' * 3000}\nKeyError: '{'z' * 3000}'\n")
    found = lines_of_issue(store, keep(an_issue(1, body=body)))

    assert found != ()
    assert all(len(line.text) <= MAX_LINE_CHARS + 2 for line in found)


@pytest.mark.parametrize(
    "record",
    [
        an_issue(1, title="[Bug]: ValueError: no room for it", body="It fails."),
        an_issue(1, body="Please add it."),
    ],
    ids=["told by the title", "no error"],
)
def test_an_issue_whose_body_tells_no_error_has_no_lines(store: Store, keep: Keep, record) -> None:
    assert lines_of_issue(store, keep(record, a_comment(5, 1, "Me too."))) == ()


def test_an_unknown_number_has_no_lines(store: Store, keep: Keep) -> None:
    assert lines_of_issue(store, keep(an_issue(1)), number=99) == ()


def test_what_only_a_card_tells_is_quoted_from_the_card_s_log(store: Store) -> None:
    put_cards(store)
    with store.reading() as session:
        found = {
            card.number: (card.log.splitlines(), issue_excerpt(session, 1, card.number))
            for card in read_cards(cards_dir())
        }
    page = {number: lines for number, (_, lines) in found.items() if lines}

    assert len(page) > len(found) // 2
    for number, lines in page.items():
        assert [line for line in lines if line.text.strip("…") not in found[number][0][line.number - 1]] == []
