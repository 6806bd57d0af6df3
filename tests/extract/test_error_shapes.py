"""How an error is told in few words, and errors in shapes that no Python traceback has."""

from __future__ import annotations

import pytest

from app.extract.facts import Facts
from app.extract.log.messages import first_sentence
from app.extract.log.root_cause import read_errors
from app.extract.reader import read_issue
from app.extract.text.document import IssueText

FRAME = '  File "/opt/vllm/worker.py", line 9, in load\n    load()\n'
TRACEBACK = f"Traceback (most recent call last):\n{FRAME}"
WORKER_FAILED = "Worker failed with error %s, please check the stack trace above for the root cause"
COLLECT = 'Traceback (most recent call last):\n  File "/w/collect_env.py", line 17, in <module>\n'


def told(log: str) -> tuple[str | None, str] | None:
    cause = read_errors(log)[1].cause
    return (cause.type, cause.message) if cause else None


def facts(title: str, body: str) -> Facts:
    return read_issue(IssueText(1, title, body)).facts


@pytest.mark.parametrize(
    ("message", "short"),
    [
        (
            "This node has no free card left. current={'CPU': 118.0}. It cannot start.",
            "This node has no free card left.",
        ),
        ("Grids of this size are odd, e.g. 3 by 5 or so", "Grids of this size are odd, e.g. 3 by 5 or so"),
        (f"The settings do not fit together: Namespace({'a=1, ' * 40})", "The settings do not fit together"),
        (f"/lib/a.so: undefined symbol: _ZN{'x' * 150}", f"/lib/a.so: undefined symbol: _ZN{'x' * 150}"),
    ],
)
def test_a_message_ends_where_its_advice_or_a_dump_begins(message: str, short: str) -> None:
    assert first_sentence(message) == short


def test_a_library_s_class_may_have_its_words_below_a_blank_line() -> None:
    log = "client.lib.OldCallRemovedInV2:\n\nThis call is gone since version 2\n"

    assert told(log) == ("OldCallRemovedInV2", "This call is gone since version 2")


def test_an_answer_over_several_lines_is_told_by_its_message() -> None:
    log = 'client.BadRequestError: Error code: 400 - {\n  "object": "error",\n  "message": "The schema has no type."\n}'

    assert told(log) == ("BadRequestError", "The schema has no type.")


def test_the_tool_that_lists_the_environment_is_not_the_failure() -> None:
    beside = f"{COLLECT}ModuleNotFoundError: No module named 'vllm'\n"

    assert told(beside + TRACEBACK + "KeyError: 'scale'\n") == ("KeyError", "'scale'")
    assert facts("[Bug]: slow since yesterday", f"```\n{beside}```").error is None


def test_a_debugger_s_own_error_is_not_the_failure() -> None:
    debugger = 'Traceback (most recent call last):\n  File "_pydevd_x.pyx", line 4, in _info\nKeyError: 3\n\n'
    log = f"{debugger}During handling of the above exception, another exception occurred:\n\n{TRACEBACK}ValueError: no such op\n"

    assert told(log) == ("ValueError", "no such op")


def test_a_process_that_waited_in_vain_only_wraps_the_watchdog_s_error() -> None:
    log = (
        "[rank1]:[E520 22:23:46.5 ProcessGroupNCCL.cpp:1896] [Rank 1] Process group watchdog thread terminated with "
        f"exception: CUDA error: an illegal memory access was encountered\n{TRACEBACK}TimeoutError\n"
    )

    assert told(log) == ("CUDA error", "an illegal memory access was encountered")


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        ("free(): invalid pointer\nFatal Python error: Aborted\n", (None, "free(): invalid pointer")),
        ("Bus error (core dumped)", ("Bus error", "Bus error")),
        (
            "thread '<unnamed>' panicked at src/a.rs:20:14:\nthe index is out of bounds",
            (None, "the index is out of bounds"),
        ),
        (
            "ERROR 01-01 10:00:00 [a.py:1] TimeoutError('No sign of life')",
            ("TimeoutError", "No sign of life"),
        ),
        (
            "File \" \", line 1, in ModuleNotFoundError: No module named 'foo'\n",
            ("ModuleNotFoundError", "No module named 'foo'"),
        ),
        (
            'File "/opt/vllm/engine.py", line 9, in step assert output == other AssertionError\n',
            ("AssertionError", ""),
        ),
        (
            "[rank1]: closed by socket.gaierror: [Errno -3] No name resolution\n",
            ("gaierror", "[Errno -3] No name resolution"),
        ),
        (
            "Uncaught exception | <class 'ValueError'>; The model is unknown",
            ("ValueError", "The model is unknown"),
        ),
        (
            f"RuntimeError: ({WORKER_FAILED!r}, 'TypeError : scale(): argument must be a Tensor')",
            ("TypeError", "scale(): argument must be a Tensor"),
        ),
        ("Exception:\n\nmy first start\n", None),
        ("exc_map = {\n    OSError: ConnectError,\n}", None),
    ],
)
def test_shapes_without_a_traceback(log: str, cause: tuple[str | None, str] | None) -> None:
    assert told(log) == cause


@pytest.mark.parametrize(
    "body",
    [
        "ValueError: The architecture Foo is unknown\n",
        f"{FRAME}KeyError: 'a.weight'\n",
        "ERROR 01-01 10:00:00 [core.py:1] ValueError: heads must be large\n",
    ],
)
def test_a_request_that_shows_a_printed_error_is_a_failure(body: str) -> None:
    assert facts("[New Model]: Foo", f"It fails:\n```\n{body}```").is_failure


def test_a_request_that_only_mentions_an_error_is_none() -> None:
    assert not facts(
        "[Feature]: smaller heads", "Today one gets a ValueError there, as heads must be large."
    ).is_failure


def test_a_class_without_a_message_takes_the_one_in_the_title() -> None:
    found = facts(
        "[Bug]: AssertionError: top_k is None in the mixer", f"```\n{TRACEBACK}AssertionError\n```"
    ).error

    assert found is not None
    assert (found.message, found.frame) == ("top_k is None in the mixer", "worker.py:load")


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (
            "It ends in an AttributeError. Then: 'Foo' object has no attribute 'bar'.",
            "has no attribute 'bar'",
        ),
        ("We hit the following exception: `Token 7 is out of range`.", "Token 7 is out of range"),
        ("I get this error during start: `No runtime is found here`.", "No runtime is found here"),
    ],
)
def test_the_words_of_an_error_that_is_told_are_its_message(body: str, wanted: str) -> None:
    found = facts("[Bug]: it does not start", body).error

    assert found is not None
    assert wanted in found.message


def test_a_name_in_quotation_marks_is_no_message() -> None:
    assert facts("[Bug]: it does not start", "It fails with the error `MambaCacheManager`.").error is None
