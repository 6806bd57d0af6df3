"""What became of the program: it stopped, a request was refused, or nothing failed."""

from __future__ import annotations

import pytest

from app.extract.log.course import Outcome
from app.extract.reader import read_log

DIED = "ValueError: No tokenizer file found.\nRuntimeError: Engine core initialization failed.\n"
BODY = (
    '{"error":{"message":"The model `a` does not exist.","type":"NotFoundError","param":"model","code":404}}'
)
HEALTHY = (
    'INFO:     Application startup complete.\nINFO:     10.0.0.1:4 - "POST /v1/completions HTTP/1.1" 200 OK\n'
)


@pytest.mark.parametrize(
    ("log", "outcome"), [(DIED, "stopped"), (BODY, "refused"), (HEALTHY, "none"), ("", "none")]
)
def test_the_outcome_of_a_log(log: str, outcome: Outcome) -> None:
    assert read_log(log).outcome == outcome


UP = "INFO:     Application startup complete.\n"
ASKED = 'INFO:     10.0.0.1:4 - "POST /v1/completions HTTP/1.1" {}\n'
TRACE = (
    "ERROR 03-14 09:26:53 [serving_chat.py:200] Error in preprocessing prompt inputs\n"
    "ERROR 03-14 09:26:53 [serving_chat.py:200] Traceback (most recent call last):\n"
    'ERROR 03-14 09:26:53 [serving_chat.py:200]   File "/a/vllm/entrypoints/chat.py", line 3, in render\n'
    "ERROR 03-14 09:26:53 [serving_chat.py:200] ValueError: no chat template\n"
)
KILLED = (
    "(EngineCore pid=6) ERROR 03-14 09:26:54 [executor.py:3] Worker proc VllmWorker-0 died unexpectedly "
    "(exit code: -9), shutting down executor.\n"
)
CANCELLED = (
    "(EngineCore pid=6) ERROR 03-14 09:26:54 [core.py:9] EngineCore encountered a fatal error.\n"
    "(EngineCore pid=6) ERROR 03-14 09:26:54 [core.py:9] Traceback (most recent call last):\n"
    '(EngineCore pid=6) ERROR 03-14 09:26:54 [core.py:9]   File "/a/vllm/shm_broadcast.py", line 9, in read\n'
    "(EngineCore pid=6) ERROR 03-14 09:26:54 [core.py:9] RuntimeError: {}\n"
)
ULIMIT = (
    "WARNING 03-14 09:26:50 [utils.py:2] Found ulimit of 20000. This can cause fd limit errors like "
    "`OSError: [Errno 24] Too many open files`.\n"
)
ANSWER = '{"error":{"message":"no audio package","type":"InternalServerError","param":null,"code":500}}\n'
OUT_OF_MEMORY = (
    "(Worker pid=7) ERROR 03-14 09:26:53 [worker.py:9] Traceback (most recent call last):\n"
    '(Worker pid=7) ERROR 03-14 09:26:53 [worker.py:9]   File "/a/vllm/v1/worker.py", line 9, in run\n'
    "(Worker pid=7) ERROR 03-14 09:26:53 [worker.py:9] ValueError: the shapes differ\n"
)


@pytest.mark.parametrize(
    ("log", "outcome", "message"),
    [
        (ULIMIT + UP + ASKED.format("200 OK"), "none", ""),
        (UP + TRACE + ASKED.format("400 Bad Request"), "refused", "no chat template"),
        (UP + ASKED.format("404 Not Found"), "refused", '"POST /v1/completions HTTP/1.1" 404 Not Found'),
        (
            UP + KILLED + CANCELLED.format("cancelled"),
            "stopped",
            "Worker proc VllmWorker-0 died unexpectedly",
        ),
        (UP + OUT_OF_MEMORY + KILLED + CANCELLED.format("no peer"), "stopped", "the shapes differ"),
        (UP + "INFO:     Shutting down\n" + KILLED, "none", ""),
        (TRACE, "refused", "no chat template"),
        (TRACE + UP + ASKED.format("200 OK") + ANSWER, "refused", "no audio package"),
        (UP + ASKED.format("500 Internal Server Error") + ANSWER, "refused", "no audio package"),
        (TRACE + CANCELLED.format("cancelled"), "stopped", "no chat template"),
        ("INFO 1 failed\n" + TRACE + UP, "none", ""),
        (TRACE + ASKED.format("200 OK"), "refused", "no chat template"),
        (TRACE + UP + ASKED.format("200 OK"), "none", ""),
    ],
    ids=[
        "a mention",
        "a request's error",
        "a refused request",
        "a death before its consequence",
        "an error before the death",
        "a death at shutdown",
        "a request's error alone",
        "an answer behind a good status",
        "an answer behind a bad status",
        "a request's error of an engine that ends",
        "survived at start",
        "a request's error before another's answer",
        "survived before any request",
    ],
)
def test_an_error_is_read_by_what_follows_it(log: str, outcome: Outcome, message: str) -> None:
    found = read_log(log)
    assert found.outcome == outcome
    assert (found.errors.cause.message if found.errors.cause else "").startswith(message)
    assert message or found.errors.cause is None


@pytest.mark.parametrize(
    "log",
    [
        "Out of memory: Killed process 4711 (VLLM::Worker) total-vm:98304kB",
        "ERROR 03-14 09:26:53 [x.py:1] Worker VllmWorkerProcess pid 29 died, exit code: -11",
        "TimeoutError: RPC call to execute_model timed out.",
        "WARNING 03-14 09:26:53 [core_client.py:8] [shutdown] MPClient: engine core exited unexpectedly",
        (
            "vllm.engine.multiprocessing.MQEngineDeadError: Engine loop is not running. Inspect the stacktrace to find "
            "the original error: RuntimeError('Engine process (pid 29) died.')."
        ),
    ],
)
def test_a_death_alone_is_the_cause(log: str) -> None:
    found = read_log(log)
    assert found.errors.cause
    assert found.signatures == ()


def test_a_death_that_a_wrapper_quotes_is_told_in_its_own_words() -> None:
    quoted = "RuntimeError('Engine process (pid 29) died.')"
    log = f"MQEngineDeadError: Engine loop is not running. Inspect the stacktrace to find the original error: {quoted}."
    cause = read_log(log).errors.cause
    assert cause
    assert (cause.type, cause.message) == ("RuntimeError", "Engine process (pid 29) died.")


def test_an_error_that_ended_the_program_is_no_part_of_its_shutdown() -> None:
    log = (
        "(MainProcess pid=3) INFO 03-14 09:26:54 [client.py:7] [shutdown] API server: shutdown triggered\n"
        'Traceback (most recent call last):\n  File "/a/aiohttp/resolver.py", line 4, in resolve\n'
        "socket.gaierror: [Errno -2] Name or service not known\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        'Traceback (most recent call last):\n  File "/a/bin/vllm", line 5, in <module>\n'
        '  File "/a/aiohttp/connector.py", line 8, in connect\n'
        "aiohttp.ClientConnectorDNSError: Cannot connect to host files.example:443\n"
    )
    reading = read_log(log)

    assert reading.outcome == "stopped"
    assert reading.errors.cause is not None
    assert reading.errors.cause.message == "[Errno -2] Name or service not known"
