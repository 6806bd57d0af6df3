"""How far a run is, said once and with figures that are known."""

from __future__ import annotations

import io
from dataclasses import dataclass, field

import pytest
from rich.console import Console

from app.knowledge.indexing.batches import Progress
from app.terminal import progress as module
from app.terminal.progress import LINE_EVERY_S, Meter, duration, plain_lines, progress

NOTE = "GitHub's primary rate limit: going on at 12:00:00 UTC"


@dataclass
class Clock:
    time: float = 0.0
    told: list[str] = field(default_factory=list)

    def now(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_plain_line_comes_every_few_seconds_and_not_before(clock: Clock) -> None:
    report = plain_lines(Meter(lambda: 4321, clock.now), clock.told.append)
    for page in range(1, 101):
        clock.time = page * 0.25
        report(Progress("issues", page * 100, 50_000))

    assert len(clock.told) == 25 / LINE_EVERY_S
    assert clock.told[0] == "issues: 2,000 of 50,000, 400/s, 4,321 requests left, about 2 min to go"


def test_what_is_not_known_is_left_out(clock: Clock) -> None:
    report = plain_lines(Meter(now=clock.now), clock.told.append)
    report(Progress("issues", 100))
    clock.time = LINE_EVERY_S
    report(Progress("comments", 100))

    assert clock.told == ["comments: 100"]


def test_a_known_total_is_no_estimate(clock: Clock) -> None:
    report = plain_lines(Meter(now=clock.now), clock.told.append)
    report(Progress("facts", 0, 1000))
    clock.time = 10
    report(Progress("facts", 50, 1000))

    assert clock.told == ["facts: 50 of 1,000, 5.0/s, about 3 min to go"]


def test_a_wait_is_told_once_and_counts_nothing(clock: Clock) -> None:
    report = plain_lines(Meter(now=clock.now), clock.told.append)
    for seconds in (3600, 3600):
        clock.time += 60
        report(Progress("waiting", seconds, note=NOTE))

    assert clock.told == [NOTE]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (89, "89 s"), (90, "2 min"), (3599, "1 h 0 min"), (4800, "1 h 20 min")],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_a_terminal_gets_a_bar_with_the_same_figures(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    screen.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(module.sys, "stderr", screen)
    monkeypatch.setattr(module, "Console", lambda **_: Console(file=screen, force_terminal=True, width=150))
    with progress(Meter(lambda: 4321, clock.now)) as report:
        report(Progress("issues", 100, 50_000))
        clock.time = 10
        report(Progress("waiting", 3600, note=NOTE))
        report(Progress("waiting", 3600, note=NOTE))
        report(Progress("issues", 2100, 50_000))

    shown = screen.getvalue()
    assert "2,100 of 50,000, 200/s, 4,321 requests left, about 4 min to go" in shown
    assert shown.count(NOTE) == 1
