"""What the commands print: data to stdout, everything else to stderr; progress on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import structlog
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

LINE_EVERY = 2_000
"""Rows between two plain progress lines."""


class Step(Protocol):
    """One report of a long run, as `ingest.pipeline.Progress` is."""

    @property
    def stage(self) -> str: ...
    @property
    def done(self) -> int: ...
    @property
    def total(self) -> int | None: ...
    @property
    def note(self) -> str: ...


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


@contextmanager
def progress() -> Iterator[Callable[[Step], None]]:
    """A report function: a bar on a terminal, plain lines otherwise."""
    if not sys.stderr.isatty():
        yield _plain_lines()
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks = {}

        def report(step: Step) -> None:
            if step.note:
                bars.console.print(step.note, markup=False)
            if step.stage not in tasks:
                tasks[step.stage] = bars.add_task(step.stage, total=step.total)
            bars.update(tasks[step.stage], completed=step.done, total=step.total)

        yield report


def _plain_lines() -> Callable[[Step], None]:
    said: dict[str, int] = {}

    def report(step: Step) -> None:
        if step.note:
            say(step.note)
        if step.done - said.get(step.stage, 0) >= LINE_EVERY:
            said[step.stage] = step.done
            say(f"{step.stage}: {step.done}" + (f" of {step.total}" if step.total else ""))

    return report
