"""Structured logging to stderr: readable lines on a terminal, JSON elsewhere."""

import logging
import sys
import time
import traceback

import structlog

from app.terminal import say

REPEAT_S = 60.0
KINDS_MAX = 1000
"""Maximum number of message kinds counted at a time."""


def where_raised(exc_info: structlog.typing.ExcInfo) -> str:
    """Format a traceback without the exception's message, which may contain a caller's text."""
    return f"{''.join(traceback.format_tb(exc_info[2]))}{exc_info[0].__name__}"


def announce(message: str) -> None:
    """Tell the operator what the server is doing: a plain line on a terminal, a log event elsewhere."""
    if isinstance(structlog.get_config()["processors"][-1], structlog.processors.JSONRenderer):
        structlog.get_logger("triage").info(message)
    else:
        say(message)


def _as_words(_log: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Make an event readable: format requests as one short line, and omit the level "info"."""
    if event["event"] == "request":
        for name in ("request_id", "key"):
            event.pop(name, None)
        words = (str(event.pop(name, "-")) for name in ("method", "route", "status"))
        event["event"] = f"{' '.join(words)} in {event.pop('took_ms', 0):.0f} ms"
    if event["level"] == "info":
        del event["level"]
    return event


def _form(form: str) -> list[structlog.typing.Processor]:
    if form == "text" or (form == "auto" and sys.stderr.isatty()):
        plain = structlog.dev.ConsoleRenderer(
            exception_formatter=structlog.dev.plain_traceback, pad_event_to=0, pad_level=False
        )
        return [structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False), _as_words, plain]
    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
    return [stamp, structlog.processors.JSONRenderer(ensure_ascii=False)]


def set_up_logging(level: str = "info", form: str = "auto") -> None:
    """Configure logging to stderr with a minimum level and a format (`TRIAGE_LOG_…`)."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(level),
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.ExceptionRenderer(where_raised),
            *_form(form),
        ],
        logger_factory=structlog.WriteLoggerFactory(
            sys.stderr
        ),  # one write per line, as workers share stderr
        cache_logger_on_first_use=False,
    )


class _Counted(logging.Handler):
    """Handler that turns libraries' log records into our events; repeated ones are counted, not repeated."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[object, tuple[float, int]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Log the first record of its kind, and the next one after `REPEAT_S`, with the count in between."""
        fault = record.exc_info[1] if record.exc_info else None
        place = traceback.extract_tb(fault.__traceback__, limit=-1) if fault else ()
        kind = record.name, str(record.msg), type(fault), *((frame.filename, frame.lineno) for frame in place)
        now = time.monotonic()
        since, count = self._seen.get(kind, (-REPEAT_S, 0))
        if now - since < REPEAT_S:
            self._seen[kind] = since, count + 1
            return
        if len(self._seen) >= KINDS_MAX:
            self._seen.clear()
        self._seen[kind] = now, 0
        more = {"repeated": count} if count else {}
        log = structlog.get_logger(record.name)
        log.log(record.levelno, record.getMessage(), logger=record.name, exc_info=record.exc_info, **more)


def log_libraries() -> None:
    """Route libraries' log records into the program's log."""
    logging.basicConfig(level=logging.WARNING, handlers=[_Counted()], force=True)
