"""How far a run is, each note once and with figures that are known."""

from __future__ import annotations

import io
from dataclasses import dataclass

import pytest
from rich.console import Console

from app.store.records import Progress
from app.terminal.progress import LINE_EVERY_S, progress

NOTE = "GitHub's primary rate limit: going on at 12:00:00 UTC"


@dataclass
class Clock:
    time: float = 0.0

    def now(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_plain_line_comes_every_few_seconds_and_not_before(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress(lambda: 4321, now=clock.now) as report:
        for page in range(1, 101):
            clock.time = page * 0.25
            report(Progress("issues", page * 100, 50_000))
    lines = capsys.readouterr().err.splitlines()

    assert len(lines) == 25 / LINE_EVERY_S
    assert lines[0] == "issues: 2,000 of 50,000, 400/s, 4,321 requests left, about 0:02:00 to go"


def test_what_is_not_known_is_left_out(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with progress(now=clock.now) as report:
        report(Progress("issues", 100))
        clock.time = LINE_EVERY_S
        report(Progress("comments", 100))

    assert capsys.readouterr().err == "comments: 100\n"


def test_a_wait_is_announced_once_and_counts_nothing(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress(now=clock.now) as report:
        for seconds in (3600, 3600):
            clock.time += 60
            report(Progress("waiting", seconds, note=NOTE))

    assert capsys.readouterr().err == f"{NOTE}\n"


def test_a_terminal_gets_a_bar_with_the_same_figures(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=150)
    with progress(lambda: 4321, now=clock.now, console=console) as report:
        report(Progress("issues", 100, 50_000))
        clock.time = 10
        report(Progress("waiting", 3600, note=NOTE))
        report(Progress("waiting", 3600, note=NOTE))
        report(Progress("issues", 2100, 50_000))
    page = screen.getvalue() + capsys.readouterr().err

    assert "2100/50000" in page
    assert "4,321 requests left" in page
    assert page.count(NOTE) == 1
