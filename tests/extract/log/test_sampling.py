"""Which lines of a very long log are read."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.extract.log import sampling as telling
from app.extract.log.root_cause import read_errors
from app.extract.log.sampling import AFTER_LINES, BEFORE_LINES, EDGE_LINES, LONG_LOG_CHARS, informative_lines
from app.extract.reader import read_log
from app.extract.text.blocks import cut_lines, is_flattened

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

    assert [line for _, line in informative_lines(log)] == list(cut_lines(log))


def test_a_crash_within_a_day_of_requests_is_found_with_its_true_line_number() -> None:
    log = a_long_log(23_456)
    assert len(log) > LONG_LOG_CHARS

    _, errors = read_errors(log)

    assert errors.cause is not None
    assert (errors.cause.type, errors.cause.frame) == ("KeyError", "gpu_worker.py:load")
    assert errors.cause.line.number == 23_459
    assert log[errors.cause.line.start : errors.cause.line.end] == CRASH[-1]


def test_few_lines_of_a_long_log_are_read() -> None:
    assert len(list(informative_lines(a_long_log(23_456)))) < 2 * EDGE_LINES + 200


def test_a_log_of_nothing_but_errors_is_read_in_part() -> None:
    log = "\n".join(f"ERROR 04-01 12:00:00 [core.py:396] ValueError: shape {at}" for at in range(60_000))

    assert len(list(informative_lines(log))) < 10_000


@settings(max_examples=settings.default.max_examples // 6)
@given(
    st.lists(
        st.sampled_from(["", "x", "ERROR a", "Traceback (most recent call last):", "é\r"]),
        min_size=1,
        max_size=30,
    )
)
def test_every_line_read_stands_where_it_says(some: list[str]) -> None:
    log = "\n".join(some * (LONG_LOG_CHARS // (sum(map(len, some)) + len(some)) + 1))

    for number, line in informative_lines(log):
        assert log[line.start : line.end] == line.text
        assert number >= 1


def test_a_log_of_line_ends_is_read_at_its_edges_only() -> None:
    log = "\n" * (LONG_LOG_CHARS + 1)

    numbers = [number for number, _ in informative_lines(log)]

    last = LONG_LOG_CHARS + 2
    assert numbers == [*range(1, EDGE_LINES + 1), *range(last - EDGE_LINES, last + 1)]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_lines_around_a_mark_are_read(end: str) -> None:
    noise = ["all is well, nothing waits"] * 60_000
    noise[30_000] = "Fatal Python error: Aborted"
    log = end.join(noise)
    assert len(log) > LONG_LOG_CHARS

    numbers = [number for number, _ in informative_lines(log)]

    near = [number for number in numbers if EDGE_LINES < number < 60_000 - EDGE_LINES]
    assert near == list(range(30_001 - BEFORE_LINES, 30_001 + AFTER_LINES + 1))


def a_flattened_log(crash_at: int) -> str:
    noise = (
        "(APIServer pid=3) INFO 04-01 12:00:00 [loggers.py:9] nothing runs, nothing waits " + "." * 500 + " "
    )
    before, after = noise * crash_at, noise * (4_000 - crash_at)
    return before + " ".join(CRASH) + " " + after


def test_of_a_very_long_log_without_line_breaks_few_pieces_are_read() -> None:
    log = a_flattened_log(2_500)
    assert is_flattened(log)
    pieces = dict(enumerate(cut_lines(log), 1))

    read = list(informative_lines(log))

    assert 2 * EDGE_LINES < len(read) < 2 * EDGE_LINES + 200 < len(pieces)
    assert all(pieces[number] == line for number, line in read)
    assert [number for number, _ in read] == sorted({number for number, _ in read})


def test_a_crash_within_a_very_long_log_without_line_breaks_is_found() -> None:
    reading = read_log(a_flattened_log(2_500))

    cause = reading.errors.cause
    assert cause is not None
    assert cause.type == "KeyError"


SOME_LINES = st.lists(
    st.sampled_from(
        [
            "",
            "x",
            "ERROR a",
            "Traceback (most recent call last):",
            "é\r",
            "a line of noise",
            "out of memory: no",
        ]
    ),
    min_size=1,
    max_size=60,
)


@settings(max_examples=40)
@given(SOME_LINES, st.integers(5, 9))
def test_what_is_read_are_the_edges_and_what_stands_around_marks(some: list[str], edge: int) -> None:
    lines = some * 9
    log, last = "\n".join(lines), len(lines) - 1
    wanted = {*range(edge), *range(last - edge, last + 1)}
    for at, line in enumerate(lines):
        if telling._STRONG.search(line):
            wanted |= {*range(at - BEFORE_LINES, at + 4)}
        if telling._WEAK.search(line):
            wanted.add(at)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(telling, "LONG_LOG_CHARS", min(60, len(log) - 1))
        patch.setattr(telling, "EDGE_LINES", edge)
        patch.setattr(telling, "AFTER_LINES", 3)
        patch.setattr(telling, "STRONG_MARKS", last + 1)

        read = [number - 1 for number, _ in informative_lines(log)]

    assert read == sorted(wanted & {*range(last + 1)})
