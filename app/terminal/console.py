"""What the commands print: data to stdout, everything else to stderr."""

from __future__ import annotations

import sys

import structlog


def say(message: str) -> None:
    """One line to the person, on stderr."""
    print(message, file=sys.stderr, flush=True)


def emit(text: str) -> None:
    """Data, on stdout, ended by a line end."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    sys.stdout.flush()


def _form() -> list[structlog.typing.Processor]:
    if sys.stderr.isatty():
        return [structlog.dev.ConsoleRenderer()]
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(ensure_ascii=False)]


def set_up_logging() -> None:
    """Events of the program as lines on stderr: readable on a terminal, JSON elsewhere."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *_form(),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
