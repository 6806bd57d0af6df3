"""Which lines of a very long log are read."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from app.extract.rootcause import read_errors
from app.extract.sections import cut_lines
from app.extract.telling import EDGE_LINES, LONG_LOG_CHARS, telling_lines

CRASH = [
    "(EngineCore_DP0 pid=7) ERROR 04-01 12:00:00 [core.py:396] Traceback (most recent call last):",
    '(EngineCore_DP0 pid=7) ERROR 04-01 12:00:00 [core.py:396]   File "/opt/vllm/v1/worker/gpu_worker.py", line 9, in load',
    "(EngineCore_DP0 pid=7) ERROR 04-01 12:00:00 [core.py:396] KeyError: 'layers.0.bias'",
]


def a_long_log(crash_at: int, lines: int = 40_000) -> str:
    dice = random.Random(5)
    noise = [
        f'(APIServer pid=3) INFO:     10.0.0.9:{dice.randrange(1000, 60000)} - "POST /v1/chat/completions HTTP/1.1" 200 OK'
        for _ in range(lines)
    ]
    return "\n".join([*noise[:crash_at], *CRASH, *noise[crash_at:]])


def test_a_short_log_is_read_whole() -> None:
    log = "one\ntwo\r\nthree"

    assert [line for _, line in telling_lines(log)] == list(cut_lines(log))


def test_a_crash_within_a_day_of_requests_is_found_with_its_true_line_number() -> None:
    log = a_long_log(23_456)
    assert len(log) > LONG_LOG_CHARS

    _, errors = read_errors(log)

    assert errors.cause is not None
    assert (errors.cause.type, errors.cause.frame) == ("KeyError", "gpu_worker.py:load")
    assert errors.cause.line.number == 23_459
    assert log[errors.cause.line.start : errors.cause.line.end] == CRASH[-1]


def test_few_lines_of_a_long_log_are_read() -> None:
    assert len(list(telling_lines(a_long_log(23_456)))) < 2 * EDGE_LINES + 200


def test_a_log_of_nothing_but_errors_is_read_in_part() -> None:
    log = "\n".join(f"ERROR 04-01 12:00:00 [core.py:396] ValueError: shape {at}" for at in range(60_000))

    assert len(list(telling_lines(log))) < 10_000


@settings(max_examples=20)
@given(st.lists(st.sampled_from(["", "x", "ERROR a", "Traceback (most recent call last):", "é\r"]), min_size=1, max_size=30))
def test_every_line_read_stands_where_it_says(some: list[str]) -> None:
    log = "\n".join(some * (LONG_LOG_CHARS // (sum(map(len, some)) + len(some)) + 1))

    for number, line in telling_lines(log):
        assert log[line.start : line.end] == line.text
        assert number >= 1
