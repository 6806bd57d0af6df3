"""Whether it is a failure, and of what kind."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.extract.kind import find_failure
from tests.extract.saying import an_issue


def told(
    title: str, error: str | None = None, message: str = "", body: str = "", labels: tuple[str, ...] = ()
) -> str:
    is_failure, kind, _ = find_failure(an_issue(body, title=title, labels=labels), error, message)
    assert is_failure == (kind != "none")
    return kind


@pytest.mark.parametrize(
    ("title", "error", "message", "kind"),
    [
        ("[Bug]: server dies", "CUDA error", "an illegal memory access was encountered", "crash"),
        ("[Bug]: server dies", "Segmentation fault", "", "crash"),
        ("[Bug]: crash at startup", "KeyError", "'layers.0.mlp'", "exception"),
        ("[Bug]: cannot start", "CUDA error", "invalid device ordinal", "exception"),
        ("[Bug]: cannot start", "ValueError", "No available memory for the cache blocks.", "oom"),
        ("[Bug]: OOM with two cards", "RuntimeError", "Engine process failed to start", "oom"),
        ("[Bug]: stuck at the P2P check", "RuntimeError", "invalid argument", "hang"),
        ("[Installation]: no wheel", "ModuleNotFoundError", "No module named 'vllm._C'", "install"),
        ("[Performance]: throughput drops at 8k", "CUDA error", "an illegal memory access", "slowdown"),
        ("[Bug]: bad JSON", "ValidationError", "Invalid JSON: expected ident", "wrong_output"),
    ],
)
def test_the_error_and_the_title_decide(title: str, error: str, message: str, kind: str) -> None:
    assert told(title, error, message) == kind


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("[Bug]: EngineCore segfaults with AITER", "crash"),
        ("[Bug]: the answer is garbled on B200", "wrong_output"),
        ("Decode is 20% slower on H100", "slowdown"),
        ("[Bug]: the server hangs after a while", "hang"),
        ("[Bug]: something odd", "other"),
    ],
)
def test_without_an_error_the_title_decides(title: str, kind: str) -> None:
    assert told(title, labels=("bug",)) == kind


def test_without_a_telling_title_the_text_decides() -> None:
    assert told("Question on serving", body="After an hour the server hangs without a log line.") == "hang"


@pytest.mark.parametrize(
    "title", ["[Feature]: crash reports", "[RFC]: slow paths", "[New Model]: M", "[Doc]: broken link"]
)
def test_a_request_is_no_failure(title: str) -> None:
    assert told(title, "ValueError", "x") == "none"


def test_a_plain_question_is_no_failure() -> None:
    assert told("[Performance]: does it take tensors?", labels=("performance",)) == "none"


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=80), st.text(max_size=200), st.none() | st.text(max_size=20), st.text(max_size=30))
def test_the_kind_has_a_quote_whatever_the_text(
    title: str, body: str, error: str | None, message: str
) -> None:
    document = an_issue(body, title=title)
    _, _, evidence = find_failure(document, error, message)
    if evidence is not None:
        assert document.sources[evidence.source][evidence.start : evidence.end] == evidence.quote
