"""Logs as platforms export them read like what the program printed."""

from __future__ import annotations

import json

import pytest

from app.extract.log.containers import plain_log

LINES = [
    "INFO 03-14 09:26:53 [api_server.py:1] vLLM API server version 0.8.5",
    "Traceback (most recent call last):",
    '  File "/opt/vllm/engine.py", line 3, in load',
    "ValueError: 'x' is no \"model\"",
]
PLAIN = "\n".join(LINES)
TIMES = [f"2026-03-14T09:26:5{at}.123Z" for at in range(len(LINES))]
NANOS = [str(1772359200000000000 + at) for at in range(len(LINES))]
DOCKER = "\n".join(
    json.dumps({"log": f"{line}\n", "stream": "stderr", "time": time})
    for line, time in zip(LINES, TIMES, strict=True)
)
JOURNAL = "\n".join(
    json.dumps({"MESSAGE": line, "__REALTIME_TIMESTAMP": time})
    for line, time in zip(LINES, NANOS, strict=True)
)
ROWS = [{"line": line, "timestamp": time} for line, time in zip(LINES, NANOS, strict=True)]
LOKI = {"data": {"result": [{"stream": {"app": "a"}, "values": [[r["timestamp"], r["line"]] for r in ROWS]}]}}
ELASTIC = {
    "hits": {
        "hits": [
            {"_source": {"message": r["line"], "@timestamp": t}} for r, t in zip(ROWS, TIMES, strict=True)
        ]
    }
}


@pytest.mark.parametrize(
    "export",
    [
        DOCKER,
        JOURNAL,
        json.dumps(ROWS, indent=1),
        json.dumps(ROWS[::-1]),
        json.dumps(LOKI),
        json.dumps(ELASTIC),
        json.dumps(ROWS, indent=1)[:-2],
    ],
    ids=["docker", "journald", "grafana", "newest first", "loki", "elasticsearch", "cut off"],
)
def test_an_export_is_read_as_its_lines(export: str) -> None:
    assert plain_log(export).strip() == PLAIN


def test_a_line_that_docker_cut_in_two_is_one() -> None:
    half = "x" * 16_000
    rows = [{"log": half, "stream": "stdout"}, {"log": "y\n", "stream": "stdout"}]
    assert plain_log("\n".join(map(json.dumps, rows))) == f"{half}y\n"


def test_a_program_s_own_json_keeps_level_and_traceback() -> None:
    row = {"message": "it failed", "levelname": "error", "asctime": "2026-01-01", "exc_info": "ValueError: x"}
    assert plain_log(json.dumps(row)) == "ERROR it failed\nValueError: x\n"


def test_stamped_lines_stand_oldest_first() -> None:
    stamped = [f"{time}\t{line}" for time, line in zip(TIMES, LINES, strict=True)]
    assert plain_log("\n".join(stamped[::-1])) == "\n".join(stamped)


@pytest.mark.parametrize(
    "text",
    [
        "",
        PLAIN,
        "[1, 2]",
        '{"error": {"message": "no such model", "code": 404}}',
        '{"object":"error","message":"too long","type":"BadRequestError","code":400}',
        "{" * 5_000,
        "[rank0]: ValueError: x",
        '{"a": 1}\nValueError: x',
    ],
)
def test_any_other_text_stays_as_it_is(text: str) -> None:
    assert plain_log(text) == text
