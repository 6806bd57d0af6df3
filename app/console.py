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


def set_up_logging() -> None:
    """Events of the program as lines on stderr: colours on a terminal, key=value elsewhere."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
