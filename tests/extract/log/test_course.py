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


@pytest.mark.parametrize(
    ("log", "known"),
    [
        ('  File "/opt/venv/site-packages/vllm/v1/engine/core.py", line 3, in step\nValueError: x', True),
        ("ValueError: x", None),
        ("nginx: worker started\n" * 40, False),
    ],
)
def test_whether_vllm_printed_a_log(log: str, known: bool | None) -> None:
    assert read_log(log).is_vllm is known
