"""The lines, the sentences and the whole message of an error."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.extract.reader import read_log
from app.knowledge.diagnosis.error_text import (
    lines_above,
    message_lines,
    sentences,
    whole_message,
    words_of_cause,
)
from tests.samples import a_traceback

CORE = "(EngineCore pid=7) ERROR 03-14 09:26:40 [core.py:1] "


def message_of(log: str) -> str:
    reading = read_log(log)
    cause = reading.errors.cause
    assert cause is not None
    return whole_message(reading, cause, cause.message, log)


def test_a_message_ends_where_another_record_or_process_begins() -> None:
    log = f"{CORE}ValueError: it is too much\n{CORE}Use less.\n(APIServer pid=1) INFO 03-14 09:26:41 [a.py:1] bye\n"

    assert [line.text for line in message_lines(read_log(log))] == ["ValueError: it is too much", "Use less."]


def test_a_message_ends_at_a_line_of_another_level() -> None:
    log = (
        a_traceback("ValueError: it is too much", "vllm/entrypoints/llm.py:generate")
        + "\nUse less.\nERROR 03-14 09:26:41 [client.py:6] Engine core proc EngineCore_DP0 died unexpectedly.\n"
    )

    assert [line.text for line in message_lines(read_log(log))] == ["ValueError: it is too much", "Use less."]


@pytest.mark.parametrize(
    ("log", "wanted"),
    [
        ("ValueError: it is too much", "it is too much"),
        (
            '  File "vllm/a.py", line 2, in load\n    assert rows == self.rows\nAssertionError',
            "assert rows == self.rows",
        ),
        ("RuntimeError: Engine core initialization failed. See root cause above.", None),
        ("", None),
    ],
    ids=["its message", "the assertion that did not hold", "only a wrapper is shown", "no error"],
)
def test_the_words_of_a_cause(log: str, wanted: str | None) -> None:
    said = words_of_cause(read_log("\n".join(f"{CORE}{line}" for line in log.splitlines())))

    assert (said[0] if said else None) == wanted


def test_the_lines_above_are_of_the_same_process() -> None:
    log = f"{CORE}one\n(APIServer pid=1) two\n{CORE}ValueError: it is too much\n"

    assert [line.text for line in lines_above(read_log(log))] == ["one"]


def test_a_log_without_an_error_has_no_message() -> None:
    reading = read_log("hello\n")

    assert (message_lines(reading), lines_above(reading)) == ([], [])


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("It is. So do (e.g. `this`) or that.", ["It is.", "So do (e.g. `this`) or that."]),
        ("ValueError: No.Please install it", ["No.", "Please install it"]),
        ("Value error, too big [type=value_error, input_value=3, input_type=int]", ["too big"]),
        ("No. Ask another.','type':'BadRequestError'", ["No.", "Ask another."]),
        ("one\n  two", ["one", "two"]),
        (
            """{"error":{"message":"1 error: {'msg': 'Value error, Use one. Not both.'}""",
            ["Use one.", "Not both.'}"],
        ),
    ],
)
def test_a_message_is_cut_into_sentences(text: str, wanted: list[str]) -> None:
    assert list(sentences(text)) == wanted


@pytest.mark.parametrize(
    ("log", "wanted"),
    [
        (
            "ValueError: This backend is not valid here. Reason: ['head_size']",
            "This backend is not valid here. Reason: ['head_size']",
        ),
        (
            "ValueError: Unknown method of reading: x. Must be one of [" + "'a', " * 40,
            "Unknown method of reading: x.",
        ),
        (
            "KeyError: 'no parser of that name: x (chose from { " + "a, " * 60 + "})'",
            "no parser of that name: x",
        ),
        (
            "ValueError: it could not be read from one of:\nthe first,\nthe second.\nthe third",
            "it could not be read from one of: the first, the second.",
        ),
        (
            "ERROR 03-14 09:26:53 [client.py:7] RuntimeError('Engine process (pid 9) died.')",
            "Engine process (pid 9) died.",
        ),
        (
            (
                """{"error":{"message":"1 validation error:\\n  {'type': 'value_error', 'loc': ('body',), 'msg': """
                """\\"Value error, Only one of ('a' or 'b').\\", 'input': {'model': 'm'}}","code":400}}"""
            ),
            "Only one of ('a' or 'b').",
        ),
    ],
)
def test_the_whole_message_holds_what_stands_behind_it_but_no_legal_values(log: str, wanted: str) -> None:
    assert message_of(log) == wanted


def test_a_field_is_named_with_what_is_not_valid_of_it() -> None:
    log = (
        "vllm serve: error: argument --compilation-config: 1 validation error for CompilationConfig\n"
        "mode\n  Input should be 0, 1 or 2 [type=enum, input_value=9, input_type=int]\n"
    )
    reading = read_log(log)
    cause = reading.errors.cause
    assert cause is not None
    line = next(line for line in reading.lines if "Input should" in line.text)
    cause = replace(cause, message="Input should be 0, 1 or 2", line=line)
    reading = replace(reading, errors=replace(reading.errors, cause=cause))

    assert whole_message(reading, cause, cause.message, log) == (
        "--compilation-config mode: Input should be 0, 1 or 2"
    )
