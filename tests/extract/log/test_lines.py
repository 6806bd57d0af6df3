"""A log line without its wrapping: who says it, at which level, and what."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.log.lines import (
    _LEVEL,
    _PROCESS,
    MAX_LINE_CHARS,
    is_usual,
    read_lines,
    read_numbered,
    shape_of,
    unwrap,
)
from app.extract.text.blocks import split_lines

CORE = "ERROR 03-14 09:26:53 [core.py:842] "
WRAPPED = [
    ("nothing around it", "ValueError: no", ("ValueError: no", "", "")),
    ("an empty line", "", ("", "", "")),
    ("vLLM's own prefix", f"{CORE}ValueError: no", ("ValueError: no", "", "ERROR")),
    (
        "vLLM's prefix before 0.6",
        "INFO 08-08 16:36:33 metrics.py:406] Avg prompt",
        ("Avg prompt", "", "INFO"),
    ),
    ("uvicorn's prefix", "INFO:     Started server process [7]", ("Started server process [7]", "", "INFO")),
    ("a process and its id", f"(EngineCore_DP0 pid=314) {CORE}no", ("no", "EngineCore_DP0", "ERROR")),
    ("a process without an id", f"(EngineCore) {CORE}no", ("no", "EngineCore", "ERROR")),
    ("a worker of all ranks", "(Worker_DP0_TP1_EP1 pid=5) ERROR no", ("no", "Worker_DP0_TP1_EP1", "ERROR")),
    (
        "a worker with spaces in its rank",
        f"(VllmWorker TP0 pid=5) {CORE}no",
        ("no", "VllmWorker_TP0", "ERROR"),
    ),
    ("a worker by rank", f"(VllmWorker rank=2 pid=99) {CORE}no", ("no", "VllmWorker_TP2", "ERROR")),
    ("a process in a process", "(Worker pid=5) (Worker_TP0 pid=5) no", ("no", "Worker_TP0", "")),
    (
        "Ray's worker with its host",
        f"(RayWorkerWrapper pid=27, ip=10.1.2.3) {CORE}no",
        ("no", "RayWorkerWrapper", "ERROR"),
    ),
    ("torch's rank", "[rank1]: ValueError: no", ("ValueError: no", "rank1", "")),
    (
        "torch's C++ logger",
        "[rank1]:[E1021 08:00:00.123456789 ProcessGroupNCCL.cpp:1895] watchdog",
        ("watchdog", "rank1", "ERROR"),
    ),
    (
        "Python's logger with its name and file",
        "2026-03-14 09:26:53,589 - zebra.pool - ERROR - pool.py:31 - no",
        ("no", "", "ERROR"),
    ),
    (
        "a logger with process and address",
        "2026-03-14 09:26:53,589 zebra.worker 75 ERROR    [address=0.0.0.0:43423, pid=7] no",
        ("no", "", "ERROR"),
    ),
    ("a time before prose", "2026-03-14 09:26:53 the ERROR was seen", ("the ERROR was seen", "", "")),
    ("RunPod", f"ab12cd34ef56gh[info]{CORE}no\\n", ("no", "", "ERROR")),
    ("Kubernetes", f"2026-03-14T09:26:53.589793238Z stdout F {CORE}no", ("no", "", "ERROR")),
    ("Kubernetes, local time", f"2026-03-14T09:26:53.589793238+08:00 stderr F {CORE}no", ("no", "", "ERROR")),
    ("Kubernetes, standard error", "2026-03-14T09:26:53.5Z stderr F no", ("no", "", "")),
    ("docker compose", f"vllm-server-1  | (APIServer pid=1) {CORE}no", ("no", "APIServer", "ERROR")),
    ("docker build", "#12 3.141 ptxas fatal   : Value 'x'", ("ptxas fatal   : Value 'x'", "", "")),
    (
        "Buildkite's page",
        f"[2026-03-14T09:26:53Z] (EngineCore pid=9) {CORE}no",
        ("no", "EngineCore", "ERROR"),
    ),
    (
        "Buildkite's raw log",
        f"\x1b_bk;t=1760000000000\x07(EngineCore pid=9) {CORE}no",
        ("no", "EngineCore", "ERROR"),
    ),
    ("Buildkite's raw log, cleaned", f"\x1b_bk;t=1760000000000{CORE}no", ("no", "", "ERROR")),
    ("journald", "Mar 14 09:26:53 node7 vllm[314]: ValueError: no", ("ValueError: no", "", "")),
    ("Python's logging", "2026-03-14 09:26:53,589 - INFO - hello", ("hello", "", "INFO")),
    ("pytest", "E       ValueError: no", ("ValueError: no", "", "")),
    ("a quote", "> ValueError: no", ("ValueError: no", "", "")),
    ("a frame of a group", "  | ValueError: no", ("ValueError: no", "", "")),
    ("colours", f"\x1b[1;36m(EngineCore_DP0 pid=9)\x1b[0;0m {CORE}no", ("no", "EngineCore_DP0", "ERROR")),
    (
        "colours that lost their escape",
        f"[1;36m(EngineCore_DP0 pid=9)[0;0m {CORE}no",
        ("no", "EngineCore_DP0", "ERROR"),
    ),
    (
        "colours written out",
        f"^[[1;36m(EngineCore_DP0 pid=9)^[[0;0m {CORE}no",
        ("no", "EngineCore_DP0", "ERROR"),
    ),
    ("a line end of another system", f"{CORE}no^M", ("no", "", "ERROR")),
    (
        "all at once",
        f"2026-03-14T09:26:53Z stdout F \x1b[31m(Worker_TP3 pid=9)\x1b[0m {CORE}no",
        ("no", "Worker_TP3", "ERROR"),
    ),
]


@pytest.mark.parametrize(("line", "wanted"), [row[1:] for row in WRAPPED], ids=[row[0] for row in WRAPPED])
def test_wrapping_is_taken_off(line: str, wanted: tuple[str, str, str]) -> None:
    assert unwrap(line) == wanted


@pytest.mark.parametrize(
    "line",
    [
        "The value (Worker) is no prefix",
        "model='org/m-7b', dtype=torch.bfloat16",
        "ERRORS were found",
        "array[0] and [1] stay",
        '    raise ValueError("no")',
        "(a, b) = c",
    ],
)
def test_a_line_without_wrapping_stays_as_it_is(line: str) -> None:
    assert unwrap(line) == (line, "", "")


def test_lines_are_counted_from_one_and_keep_their_place() -> None:
    log = f"first\n{CORE}second\n"
    second = list(read_lines(split_lines(log)))[1]

    assert (second.number, second.text, log[second.start : second.end], second.raw) == (
        2,
        "second",
        f"{CORE}second",
        f"{CORE}second",
    )


def test_of_a_very_long_line_the_beginning_is_read() -> None:
    line = next(read_lines(split_lines("x" * (MAX_LINE_CHARS + 1))))

    assert (len(line.text), line.end) == (MAX_LINE_CHARS, MAX_LINE_CHARS + 1)


PIECES = [
    "(EngineCore_DP0 pid=9) ",
    "[rank0]: ",
    "[rank0]:[E1021 08:00:00.1 x.cpp:1] ",
    CORE,
    "vllm-1  | ",
    "> ",
    "| ",
    "[",
    "2026-03-14T09:26:53Z stdout F ",
    "\x1b[0m",
    "[0;0m",
    "_bk;t=1760000000000",
    "ValueError: no",
    "(",
    ")",
    " ",
    "\t",
    "é",
]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_what_is_said_stands_at_the_end_of_the_line(line: str) -> None:
    text, _, _ = unwrap(line)
    plain = line.replace("\x1b[0m", "").replace("[0;0m", "")

    assert plain.endswith(text)


@given(st.text(max_size=200))
def test_any_line_can_be_unwrapped(line: str) -> None:
    text, process, level = unwrap(line)

    assert len(text) <= len(line)
    assert level in {"", "INFO", "WARNING", "WARN", "ERROR", "DEBUG", "CRITICAL", "FATAL"}
    assert " " not in process


@given(
    before=st.sampled_from(["(EngineCore_DP0 pid=314) ", "(VllmWorker rank=2 pid=99) ", "(Worker_TP0) ", ""]),
    level=st.sampled_from([CORE, "INFO 08-08 16:36:33 metrics.py:406] ", ""]),
    rest=st.text(alphabet=" \t-:)]([>|0a.py", max_size=12),
)
def test_a_known_prefix_ends_where_it_ends_before_any_words(before: str, level: str, rest: str) -> None:
    line = before + level + rest
    found = _PROCESS.match(line)
    assert (found.end() if found else 0) == len(before)
    found = _LEVEL.match(level + rest)
    assert (found.end() if found else 0) == len(level)
    alone, with_rest = unwrap(f"{before}{level}."), unwrap(line)
    assert with_rest[1:] == alone[1:]


def usual(log: str) -> list[bool]:
    return [is_usual(line) for line in read_numbered(enumerate(split_lines(log), 1))]


@pytest.mark.parametrize(
    "line",
    [
        "INFO:     Application startup complete.",
        "(APIServer pid=7) INFO 11-22 13:54:37 [api_server.py:500] Available routes are:",
    ],
)
def test_what_a_good_start_prints_is_usual_whoever_prints_it(line: str) -> None:
    assert usual(line) == [True]


def test_an_error_is_never_usual() -> None:
    line = "INFO 11-22 13:54:37 [api_server.py:500] Available routes are:"

    assert usual(line.replace("INFO", "ERROR")) == [False]


def test_a_line_that_no_good_run_prints_is_not_usual() -> None:
    assert usual("WARNING 11-22 13:54:37 [x.py:1] Falling back to a kernel that is not tuned") == [False]


def test_numbers_paths_and_values_do_not_change_a_shape() -> None:
    one = "Loading weights from /models/a took 3.21 seconds"

    assert shape_of(one) == shape_of("Loading weights from /srv/b took 188 seconds")
    assert shape_of(one) == "loading weights from # took # seconds"
