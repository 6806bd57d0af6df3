"""How far a long run is: a bar on a terminal, elsewhere a plain line every few seconds, same figures.

In: the run's reports (`Step`). Out: on stderr, items, how many there will be, rate, what is left of GitHub's
budget, and the time left; each of them only where it is known.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn

from app.terminal.console import say

LINE_EVERY_S = 5.0
SETTLE_S = 2.0
"""A rate over less time than this tells nothing."""
WAITING = "waiting"
"""The stage that only announces a wait, in its note."""


class Step(Protocol):
    """One report of a long run, as `app.knowledge.indexing.batches.Progress` is."""

    @property
    def stage(self) -> str: ...
    @property
    def done(self) -> int: ...
    @property
    def total(self) -> int | None: ...
    @property
    def note(self) -> str: ...


def _unknown() -> None:
    return None


@dataclass
class Meter:
    """Turns reports into figures.

    Args:
        budget: what is left of GitHub's hourly requests, if that is known.
        now: seconds that only grow.
    """

    budget: Callable[[], int | None] = _unknown
    now: Callable[[], float] = time.monotonic
    _began: dict[str, tuple[float, int]] = field(default_factory=dict, init=False)
    _told: set[str] = field(default_factory=set, init=False)

    def news(self, step: Step) -> str:
        """The report's note, if it was not told before; else nothing."""
        if not step.note or step.note in self._told:
            return ""
        self._told.add(step.note)
        return step.note

    def rate(self, step: Step) -> float | None:
        """Rows a second since the stage's first report."""
        now = self.now()
        began, before = self._began.setdefault(step.stage, (now, step.done))
        return (step.done - before) / (now - began) if now - began >= SETTLE_S else None

    def figures(self, step: Step) -> str:
        """Rate, budget and time left, in words."""
        rate, total, budget = self.rate(step), step.total, self.budget()
        parts = []
        if rate:
            parts.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s")
        if budget is not None:
            parts.append(f"{budget:,} requests left")
        if rate and total is not None and total > step.done:
            parts.append(f"about {duration((total - step.done) / rate)} to go")
        return ", ".join(parts)

    def line(self, step: Step) -> str:
        """The whole report, in words."""
        counted = f"{step.stage}: {step.done:,}" + (f" of {step.total:,}" if step.total else "")
        return ", ".join(part for part in (counted, self.figures(step)) if part)


def duration(seconds: float) -> str:
    """A time span in words: 40 s, 3 min, 1 h 20 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


@contextmanager
def progress(meter: Meter | None = None) -> Iterator[Callable[[Step], None]]:
    """A report function: a bar on a terminal, plain lines otherwise."""
    meter = meter or Meter()
    if not sys.stderr.isatty():
        yield plain_lines(meter)
        return
    name, figures = TextColumn("{task.description}"), TextColumn("{task.fields[figures]}")
    columns = (SpinnerColumn(), name, BarColumn(), figures)
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        yield _bars(meter, bars)


def _bars(meter: Meter, bars: Progress) -> Callable[[Step], None]:
    tasks: dict[str, TaskID] = {}

    def report(step: Step) -> None:
        if note := meter.news(step):
            bars.console.print(note, markup=False, highlight=False)
        if step.stage == WAITING:
            return
        if step.stage not in tasks:
            tasks[step.stage] = bars.add_task(step.stage, total=None, figures="")
        figures = meter.line(step).removeprefix(f"{step.stage}: ")
        bars.update(tasks[step.stage], completed=step.done, total=step.total, figures=figures)

    return report


def plain_lines(meter: Meter, tell: Callable[[str], None] = say) -> Callable[[Step], None]:
    """A report function that tells a note at once, and figures every few seconds."""
    last = meter.now()

    def report(step: Step) -> None:
        nonlocal last
        if note := meter.news(step):
            tell(note)
        if step.stage == WAITING:
            return
        meter.rate(step)
        if meter.now() - last >= LINE_EVERY_S:
            last = meter.now()
            tell(meter.line(step))

    return report
