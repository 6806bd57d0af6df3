"""Progress of long runs on stderr: a bar on a terminal, elsewhere a plain line every few seconds.

Shows rows, rate, remaining rate limit and remaining time where known.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from app.terminal import say

if TYPE_CHECKING:
    from app.store.records import Progress as Stage

LINE_EVERY_S = 5.0
WAITING = "waiting"
"""A stage that only announces a wait, by its note."""


@contextmanager
def progress(
    budget: Callable[[], int | None] = lambda: None,
    *,
    now: Callable[[], float] = time.monotonic,
    console: Console | None = None,
    on_line: Callable[[str], None] | None = None,
    every_s: float = LINE_EVERY_S,
) -> Iterator[Callable[[Stage], None]]:
    """Yield a report function; it prints each note once, immediately.

    Args:
        budget: returns the remaining GitHub requests, or None if unknown.
        console: where bars are drawn; by default stderr, if it is a terminal.
    """
    console = console or Console(stderr=True, force_terminal=sys.stderr.isatty())
    words = TextColumn("{task.description}"), TextColumn("{task.fields[budget]}")
    columns = words[0], BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), words[1]
    tasks: dict[str, TaskID] = {}
    notes: set[str] = set()
    last = now()
    with Progress(
        *columns,
        console=console,
        transient=True,
        disable=on_line is not None or not console.is_terminal,
        get_time=now,
    ) as bars:

        def report(step: Stage) -> None:
            nonlocal last
            if step.note and step.note not in notes:
                notes.add(step.note)
                (on_line or say)(step.note)
            if step.stage == WAITING:
                return
            if step.stage not in tasks:
                tasks[step.stage] = bars.add_task(step.stage, total=None, budget="")
            left = budget()
            known = f"{left:,} requests left" if left is not None else ""
            bars.update(tasks[step.stage], completed=step.done, total=step.total, budget=known)
            if bars.disable and now() - last >= every_s:
                last = now()
                (on_line or say)(_line(next(task for task in bars.tasks if task.id == tasks[step.stage])))

        yield report


def _line(task: Task) -> str:
    total = f" of {task.total:,.0f}" if task.total else ""
    parts = [f"{task.description}: {task.completed:,.0f}{total}"]
    if task.speed:
        parts.append(f"{task.speed:,.0f}/s" if task.speed >= 10 else f"{task.speed:.1f}/s")
    if task.fields["budget"]:
        parts.append(task.fields["budget"])
    if task.time_remaining:
        parts.append(f"about {timedelta(seconds=round(task.time_remaining))} to go")
    return ", ".join(parts)
