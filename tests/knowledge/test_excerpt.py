"""The lines of a log that a page shows."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.extract.redact import BLOCK
from app.knowledge.diagnosis import diagnose
from app.knowledge.excerpt import MAX_LINE_CHARS, MAX_LINES, ExcerptLine, excerpt
from app.store.session import Store
from tests.samples import FOREIGN_LOG, HEALTHY_LOG, REPO, a_traceback, marlin_log

LOG = marlin_log()


def lines_of(store: Store, log: str) -> tuple[ExcerptLine, ...]:
    return excerpt(log, diagnose(store, log, repos=(REPO,)))


def test_the_cause_its_neighbours_and_the_wrappers_are_shown_in_order(sqlite_store: Store) -> None:
    assert [(line.number, line.role, line.remark) for line in lines_of(sqlite_store, LOG)] == [
        (1, "dim", "wrapper, not the cause"), (3, "dim", ""), (4, "dim", ""), (5, "dim", ""), (6, "hot", ""),
        (7, "dim", "wrapper, not the cause"),
    ]  # fmt: skip


def test_a_line_is_shown_as_it_stands_in_the_log(sqlite_store: Store) -> None:
    assert [line for line in lines_of(sqlite_store, LOG) if line.text != LOG.splitlines()[line.number - 1]] == []


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
        BLOCK * 14, BLOCK * 14, "-----END PRIVATE KEY-----", "ValueError: no"
    ]  # fmt: skip


def test_a_very_long_line_is_cut(sqlite_store: Store) -> None:
    [line] = lines_of(sqlite_store, f"ValueError: {'x' * 5000}\n" + "\n" * 20)

    assert len(line.text) == MAX_LINE_CHARS


def test_control_characters_do_not_shift_the_numbers(sqlite_store: Store) -> None:
    log = "first\x00\nTrace\x07back (most recent call last):\nValueError: no\n"

    assert [(line.number, line.role) for line in lines_of(sqlite_store, log)] == [(1, "dim"), (2, "dim"), (3, "hot")]


def test_the_cause_is_shown_however_many_wrappers_there_are(sqlite_store: Store) -> None:
    words = [f"(EngineCore_DP0 pid=9) ERROR 03-14 09:26:54 [x.py:1] Worker proc VllmWorker-{at} died unexpectedly" for at in range(12)]
    shown = lines_of(sqlite_store, "\n".join([*words, a_traceback("ValueError: no", "vllm/a.py:b")]))

    assert [line.role for line in shown].count("hot") == 1
    assert len(shown) <= MAX_LINES


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from([*LOG.splitlines(), *FOREIGN_LOG.splitlines(), "", "Trace\x00back (most recent call last):", "x" * 900]), min_size=1, max_size=30), st.sampled_from(["\n", " ", "\r\n"]))
def test_any_log_s_excerpt_is_short_and_in_order(sqlite_store: Store, lines: list[str], between: str) -> None:
    log = between.join([*lines, "end"])
    shown = [line.number for line in lines_of(sqlite_store, log)]

    assert shown == sorted(set(shown))
    assert len(shown) <= MAX_LINES


@pytest.mark.parametrize("flat", [" ".join(("We saw this after the upgrade of the cluster. " * 12 + LOG).split())])
def test_a_text_that_lost_its_line_breaks_is_shown_in_pieces(sqlite_store: Store, flat: str) -> None:
    hot = [line.text for line in lines_of(sqlite_store, flat) if line.role == "hot"]

    assert len(hot) == 1
    assert "is not divisible by min_thread_n = 64." in hot[0]
