"""What is logged of an exception: where it was raised, not its words or variables."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator

import pytest
import structlog

from app.terminal.console import set_up_logging

SECRET = "hf_a_token_of_a_caller"


class Terminal(io.StringIO):
    """A stream that says whether it is a terminal."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@pytest.fixture(params=[True, False])
def stderr(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    written = Terminal(is_terminal=request.param)
    before, filters = structlog.get_config(), logging.getLogger("uvicorn.error").filters
    monkeypatch.setattr(sys, "stderr", written)
    set_up_logging()
    yield written
    structlog.configure(**before)
    logging.getLogger("uvicorn.error").filters = filters


def fail() -> None:
    log = SECRET
    raise KeyError(log)


def test_an_exception_is_logged_without_its_words(stderr: Terminal) -> None:
    server, handler = logging.getLogger("uvicorn.error"), logging.StreamHandler(stderr)
    server.addHandler(handler)
    try:
        fail()
    except KeyError:
        structlog.get_logger().exception("round_failed")
        server.exception("Exception in ASGI application")
    finally:
        server.removeHandler(handler)

    text = stderr.getvalue()
    assert SECRET not in text
    assert text.count("in fail") == 2
