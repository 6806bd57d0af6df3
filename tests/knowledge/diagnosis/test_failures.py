"""Kinds of failure are data with a hit and a miss; what became of the program is read from the log."""

from __future__ import annotations

from typing import Any

import pytest

from app.extract.reader import read_log
from app.knowledge.cluster.families import failure_kinds, failure_rows
from app.knowledge.diagnosis.failures import (
    MAX_QUESTION_CHARS,
    asked_kinds,
    find_kinds,
    find_outcome,
    find_program,
    is_question,
    kinds_of,
    name_failure,
)
from tests.samples import HEALTHY_LOG, a_traceback

ROWS = [pytest.param(row, id=row["id"]) for row in failure_rows()]
UP = HEALTHY_LOG + '(APIServer pid=1) INFO:     10.0.0.1:4000 - "POST /v1/completions HTTP/1.1" 200 OK\n'
OUT_OF_MEMORY = a_traceback(
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "vllm/x.py:y"
)


def kinds(log: str) -> list[str]:
    return [kind.id for kind in find_kinds(read_log(log))]


@pytest.mark.parametrize("row", ROWS)
def test_a_kind_is_the_first_that_its_example_is_of(row: dict[str, Any]) -> None:
    found = kinds(row["hit"]) if "error" in row else [kind.id for kind in asked_kinds(row["hit"])]

    assert found[:1] == [row["id"]]


@pytest.mark.parametrize("row", ROWS)
def test_a_kind_is_not_read_into_what_is_not_one(row: dict[str, Any]) -> None:
    found = kinds(row["miss"]) if "error" in row else [kind.id for kind in asked_kinds(row["miss"])]

    assert row["id"] not in found


def test_ids_and_names_stand_there_once() -> None:
    rows = failure_rows()

    assert len({row["id"] for row in rows}) == len({row["name"] for row in rows}) == len(rows)
    assert len(failure_kinds()) == len(rows)


def test_an_error_that_names_nothing_is_of_no_kind() -> None:
    assert kinds("KeyError: 'rope_scaling_factor'") == []
    assert name_failure(()) is None


def test_values_that_are_listed_as_legal_name_no_failure() -> None:
    log = "vllm serve: error: argument --runner: invalid choice: 'x' (choose from 'lora', 'eagle', 'nccl')"

    assert kinds(log) == ["invalid_argument"]


def test_a_line_of_a_routine_level_names_no_kind_but_a_hang() -> None:
    routine = (
        "INFO 11-02 03:04:05 [api_server.py:1] vLLM API server version 0.9.1\n"
        "INFO 11-02 03:04:06 [monitor.py:34] torch.compile was given 21 s in total\n"
    )
    waiting = "INFO 11-02 03:05:07 [shm_broadcast.py:466] No available shared memory broadcast block in 60 seconds.\n"
    assert kinds_of(read_log(routine)) == ()
    assert [kind.id for kind in kinds_of(read_log(routine + waiting))] == ["timeout"]


def test_an_outer_error_names_the_kind_where_the_inner_one_does_not() -> None:
    log = (
        a_traceback("KeyError: 'r'", "vllm/lora/worker.py:load")
        + "\n\nThe above exception was the direct cause of the following exception:\n\n"
        + a_traceback("ValueError: the LoRA adapter cannot be read", "vllm/lora/worker.py:load")
    )

    assert kinds(log)[:1] == ["lora"]


@pytest.mark.parametrize(
    ("log", "wanted"),
    [
        (HEALTHY_LOG, "none"),
        (UP + OUT_OF_MEMORY, "stopped"),
        (HEALTHY_LOG.replace("Application startup complete", "Waiting") + OUT_OF_MEMORY, "not_started"),
        (OUT_OF_MEMORY, "stopped"),
        (a_traceback("ValueError: too many tokens", "vllm/entrypoints/llm.py:generate"), "stopped"),
        ("ValueError: No available memory for the cache blocks.", "not_started"),
        ("ModuleNotFoundError: No module named 'timm'", "not_started"),
    ],
)
def test_a_server_that_never_came_up_is_told_from_one_that_stopped(log: str, wanted: str) -> None:
    reading = read_log(log)

    assert find_outcome(reading, find_kinds(reading)) == wanted


@pytest.mark.parametrize(
    ("log", "wanted"),
    [
        (HEALTHY_LOG, "server"),
        (a_traceback("ValueError: no", "vllm/v1/engine/core.py:run"), "engine"),
        (a_traceback("OSError: no", "vllm/benchmarks/serve.py:main"), "client"),
        ("ValueError: no", "program"),
        (
            a_traceback("django.db.utils.OperationalError: no", "site-packages/django/db/base.py:x")
            + a_traceback("ValueError: no", "vllm/v1/engine/core.py:run"),
            "engine",
        ),
    ],
)
def test_the_program_is_told_from_the_log(log: str, wanted: str) -> None:
    assert find_program(read_log(log)) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "TTFT doubled on GB300 after the update",
        "gibberish output with fp8 kv cache",
        "Why does the server hang\nwhen I send two images?",
    ],
)
def test_words_are_a_question(text: str) -> None:
    assert is_question(read_log(text))


@pytest.mark.parametrize(
    "text",
    [
        "KeyError: 'layers.0.bias'",
        "INFO 04-01 12:00:00 [core.py:396] Initializing a V1 LLM engine (v0.9.1)",
        "(EngineCore_DP0 pid=7) loading weights",
        'Traceback (most recent call last):\n  File "a.py", line 1, in f',
        "slow " * MAX_QUESTION_CHARS,
    ],
)
def test_a_programs_output_is_no_question(text: str) -> None:
    assert not is_question(read_log(text))
