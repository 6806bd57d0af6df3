"""A general plugin of vLLM: what to type for a diagnosis stands under the end of a server that failed.

vLLM loads it from the entry point `vllm.general_plugins`. It does nothing unless TRIAGE_URL names a server,
and sends nothing then either: it prints one line. Only the standard library is used.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import re
import shlex
import sys
from types import TracebackType

VARIABLE = "TRIAGE_URL"
_LOST = re.compile(
    r"EngineDeadError|[Ee]ngine ?[Cc]ore\b.{0,40} died|output_handler failed"
    r"|[Ee]ngine core initialization failed"
)


class EngineWatch(logging.Handler):
    """Notes that the server lost its engine, and says once what to type."""

    def __init__(self, url: str) -> None:
        super().__init__(logging.ERROR)
        self._url = url
        self._is_printed = False

    def emit(self, record: logging.LogRecord) -> None:
        """Look at an error that vLLM logs."""
        fault = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
        if _LOST.search(f"{fault} {record.getMessage()[:500]}"):
            self.say()

    def say(self) -> None:
        """One line on stderr."""
        if not self._is_printed:
            self._is_printed = True
            asked = f"curl -sS --data-binary @LOGFILE {shlex.quote(self._url)}"
            sys.stderr.write(f"triage: to learn whether this failure is known, and what helps: {asked}\n")
            sys.stderr.flush()


def register() -> None:
    """Called by vLLM in each of its processes; the first one answers for all."""
    url = "".join(filter(str.isprintable, os.environ.get(VARIABLE, ""))).strip()
    logger = logging.getLogger("vllm")
    is_there = any(isinstance(handler, EngineWatch) for handler in logger.handlers)
    if not url or is_there or multiprocessing.parent_process() is not None:
        return
    watch = EngineWatch(f"{url.rstrip('/')}/")
    logger.addHandler(watch)
    former = sys.excepthook

    def print_hint(kind: type[BaseException], fault: BaseException, trace: TracebackType | None) -> None:
        former(kind, fault, trace)
        if issubclass(kind, Exception):
            watch.say()

    sys.excepthook = print_hint
