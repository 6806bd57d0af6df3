"""What the commands print: data to stdout, everything else to stderr."""

from __future__ import annotations

import logging
import sys
import traceback

import structlog


def say(message: str) -> None:
    """One line to the person, on stderr."""
    print(message, file=sys.stderr, flush=True)


def emit(text: str) -> None:
    """Data, on stdout, ended by a line end."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    sys.stdout.flush()


def where_raised(exc_info: structlog.typing.ExcInfo) -> str:
    """The frames and the kind of an exception: its words and its variables may hold a caller's text."""
    return f"{''.join(traceback.format_tb(exc_info[2]))}{exc_info[0].__name__}"


class WithoutWords(logging.Filter):
    """Has a library's record of an exception written so; formatters keep what stands there already."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass."""
        if record.exc_info and record.exc_info[0] is not None:
            record.exc_text = where_raised(record.exc_info)
        return True


def _form() -> structlog.typing.Processor:
    if sys.stderr.isatty():
        return structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    return structlog.processors.JSONRenderer(ensure_ascii=False)


def set_up_logging() -> None:
    """Events of the program as lines on stderr: readable on a terminal, JSON elsewhere."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.ExceptionRenderer(where_raised),
            _form(),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    server = logging.getLogger("uvicorn.error")  # whose own set-up leaves filters alone
    server.filters = [WithoutWords()]
