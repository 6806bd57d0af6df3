"""`triage run` and `triage watch`: pass output through unchanged, and diagnose a failure after it.

The diagnosis runs in a separate process, so that this one stays small and does not block the output.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from app.commands.ask import ReportOption, UrlOption
from app.errors import TriageError
from app.terminal import say
from app.terminal.passing import CHECK_S, Tail, exit_like_command, pass_on, run_command

HANG_S = 20.0
"""A command that is still running this long after a fatal error is assumed to hang."""
NEAR_BYTES = 256 * 1024
"""Size of the tail searched for a fatal error: a hanging command prints little after it."""
ANSWER_TIMEOUT_S = 120.0

OnCrash = Annotated[
    str | None,
    typer.Option(metavar="CMD", help="shell command to run, with the log on stdin and the exit code as $1"),
]


def run(
    command: Annotated[
        list[str], typer.Argument(metavar="CMD…", help="command to run, such as vllm serve MODEL")
    ],
    url: UrlOption = None,
    report: ReportOption = None,
    on_crash: OnCrash = None,
) -> None:
    """Run a command; if it fails or hangs, the diagnosis follows its output. Exit code: the command's."""
    tail = _tail()
    answer = _OneDiagnosis(tail, url, report)
    try:
        end = run_command(command, tail, answer.if_it_hangs)
    except TriageError as error:
        say(f"triage: {error.message}")
        raise typer.Exit(error.exit_code) from None
    if end.is_failure:
        how = f"signal {-end.code}" if end.code < 0 else f"exit code {end.code}"
        answer.once(f"the command ended with {how}")
        if on_crash:
            hook = ["/bin/sh", "-c", on_crash, "sh", str(end.code)]
            subprocess.run(hook, input=tail.read(), stdout=sys.stderr.fileno(), check=False)
    raise typer.Exit(exit_like_command(end.code))


def watch(url: UrlOption = None, report: ReportOption = None) -> None:
    """Copy stdin to stdout; at its end, or if it hangs, print the diagnosis to stderr. Exit code: 0."""
    tail = _tail()
    answer = _OneDiagnosis(tail, url, report)
    stream = (sys.stdin.fileno(), sys.stdout.fileno(), tail, threading.Event())
    passing = threading.Thread(target=pass_on, args=stream, daemon=True)
    passing.start()
    while passing.is_alive():
        passing.join(CHECK_S)
        answer.if_it_hangs()
    answer.once("the stream has ended")


def _tail() -> Tail:
    from app.config import LOG_LIMIT_BYTES

    return Tail(LOG_LIMIT_BYTES)


class _OneDiagnosis:
    """Diagnoses the output at most once."""

    def __init__(self, tail: Tail, url: str | None, report: Path | None) -> None:
        self._tail = tail
        given = {"--url": url, "--report": str(report) if report else None}
        self._options = [part for name, value in given.items() if value for part in (name, value)]
        self._seen = 0
        self._fatal_at: float | None = None
        self._is_given = False

    def if_it_hangs(self) -> None:
        """Diagnose if a fatal error appeared in the output at least `HANG_S` ago."""
        from app.extract.rules.rules import load_rules

        if self._fatal_at is None and self._seen != self._tail.total:
            self._seen = self._tail.total
            near = self._tail.read(NEAR_BYTES).decode("utf-8", errors="replace")
            ends = (rule for rule in load_rules("course") if rule["role"] == "end")
            if any(rule.pattern.search(near) for rule in ends):
                self._fatal_at = time.monotonic()
        if self._fatal_at is not None and time.monotonic() - self._fatal_at >= HANG_S:
            self.once("a fatal error, and no end")

    def once(self, why: str) -> None:
        """Diagnose unless already done; the diagnosing process reports its own errors."""
        if self._is_given or not self._tail.total:
            return
        self._is_given = True
        say(f"\ntriage: {why}; looking for the cause")
        _ask(self._tail.read(), self._options)


def _ask(log: bytes, options: Sequence[str]) -> None:
    from app.config import isolate_children

    isolate_children()
    command = [sys.executable, "-m", "app.cli", "diagnose", "-", "--format", "text", *options]
    try:
        subprocess.run(command, input=log, stdout=sys.stderr.fileno(), timeout=ANSWER_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        say(f"triage: no answer within {ANSWER_TIMEOUT_S:.0f} s")
