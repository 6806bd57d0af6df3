"""What is logged of an exception: where it was raised, not its words or variables."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
from collections.abc import Iterator

import pytest
import structlog

from app.terminal import events
from app.terminal.events import log_libraries, set_up_logging

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
    for name in ("uvicorn", "uvicorn.error"):  # as a server in this process may have left them
        library = logging.getLogger(name)
        monkeypatch.setattr(library, "handlers", [])
        monkeypatch.setattr(library, "propagate", True)
        monkeypatch.setattr(library, "disabled", False)
        monkeypatch.setattr(library, "level", logging.NOTSET)
    before, handlers = structlog.get_config(), logging.root.handlers[:]
    monkeypatch.setattr(sys, "stderr", written)
    set_up_logging()
    logging.root.handlers.clear()  # not closed, as pytest's are
    log_libraries()
    yield written
    structlog.configure(**before)
    logging.root.handlers[:] = handlers


def fail() -> None:
    log = SECRET
    raise KeyError(log)


def test_an_exception_is_logged_without_its_words(stderr: Terminal) -> None:
    try:
        fail()
    except KeyError:
        structlog.get_logger().exception("round_failed")
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application")

    text = stderr.getvalue()
    assert SECRET not in text
    assert text.count("in fail") == 2


def test_a_request_is_a_short_line_on_a_terminal_and_an_event_elsewhere(stderr: Terminal) -> None:
    line = {"method": "GET", "route": "/issues", "status": 200, "took_ms": 91.6, "request_id": "41b601f1"}
    structlog.get_logger().info("request", **line)
    written = re.sub(r"\x1b\[\d*m", "", stderr.getvalue())

    if stderr.isatty():
        assert re.fullmatch(r"\d\d:\d\d:\d\d GET /issues 200 in 92 ms\n", written)
    else:
        assert line.items() <= json.loads(written).items()


def test_what_a_library_logs_again_and_again_is_counted(
    stderr: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logging.getLogger("asyncio")
    for number in range(100):
        log.error("no file for connection %d", number)
    assert stderr.getvalue().count("no file for connection") == 1

    monkeypatch.setattr(events, "REPEAT_S", 0.0)
    log.error("no file for connection %d", 100)
    last = stderr.getvalue().strip().splitlines()[-1]
    assert "connection 100" in last
    assert "repeated" in last
    assert "99" in last
