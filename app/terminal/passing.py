"""Run a command transparently: pass its output through unchanged, and keep the tail of it.

The command runs as it would without us: its output streams are pseudo-terminals if ours are terminals, or
else pipes; it has our stdin and process group; signals sent to us are forwarded. One thread per stream copies
the output.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import subprocess
import sys
import termios
import threading
import tty
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType

from app.errors import InputError

CHUNK_BYTES = 256 * 1024
LOOK_S = 0.5
"""While a stream is silent, interval of checks whether its command has exited."""
CHECK_S = 5.0
FROM_TERMINAL = frozenset({signal.SIGINT, signal.SIGHUP, signal.SIGQUIT})
"""Signals that a terminal sends to its whole foreground group, including the command."""
ENDING = FROM_TERMINAL | {signal.SIGTERM}
FORWARDED = ENDING | {signal.SIGUSR1, signal.SIGUSR2}
NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""Exit codes by shell convention."""


class Tail:
    """Ring buffer of the last `limit` bytes; once bytes were dropped, reads start at a line's start."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._chunks: deque[bytes] = deque()
        self._lock = threading.Lock()
        self._kept = self.total = 0

    def add(self, chunk: bytes) -> None:
        """Append a chunk, dropping the oldest ones."""
        with self._lock:
            self._chunks.append(chunk)
            self._kept += len(chunk)
            self.total += len(chunk)
            while self._kept - len(self._chunks[0]) >= self._limit:
                self._kept -= len(self._chunks.popleft())

    def read(self, size: int | None = None) -> bytes:
        with self._lock:
            found, left = deque[bytes](), min(size or self._limit, self._limit)
            for chunk in reversed(self._chunks):
                found.appendleft(chunk[-left:])
                left -= len(found[0])
                if not left:
                    break
            text = b"".join(found)
            return text if len(text) == self.total else text[text.find(b"\n") + 1 :]


def pass_on(source: int, target: int, tail: Tail, ended: threading.Event) -> None:
    """Copy a stream until its end, or until it is empty after the command has exited.

    If the target is closed, the source is closed too, so that the command notices it as it would without us.
    """
    with suppress(OSError):  # the terminal or the reader of our output is gone
        while True:
            if not select.select([source], [], [], LOOK_S)[0]:
                if ended.is_set():
                    break
                continue
            chunk = os.read(source, CHUNK_BYTES)
            if not chunk:
                break
            tail.add(chunk)
            _write(target, chunk)
    with suppress(OSError):
        os.close(source)


def _write(target: int, chunk: bytes) -> None:
    left = memoryview(chunk)
    while left:
        try:
            left = left[os.write(target, left) :]
        except BlockingIOError:
            select.select([], [target], [])


@dataclass(frozen=True, slots=True)
class End:
    """How a command ended: exit code, or minus the signal that killed it; whether we were asked to end it."""

    code: int
    was_asked: bool

    @property
    def is_failure(self) -> bool:
        """True if it failed without having been asked to end."""
        return bool(self.code) and not self.was_asked


def run_command(command: Sequence[str], tail: Tail, check: Callable[[], None]) -> End:
    """Run a command until it exits, passing its output through.

    Args:
        check: called every `CHECK_S` while the command runs, without blocking its output.

    Raises:
        InputError: the command cannot be run; its exit code follows shell convention.
    """
    streams = _Streams()
    received: list[int] = []
    child: list[subprocess.Popen[bytes]] = []

    def forward(number: int, _frame: FrameType | None = None) -> None:
        received.append(number)
        if child and not (number in FROM_TERMINAL and _in_foreground()):
            child[0].send_signal(number)

    def resize(number: int, _frame: FrameType | None) -> None:
        streams.resize()
        if child:
            child[0].send_signal(number)

    ignored = {
        number for number in FORWARDED if signal.getsignal(number) is signal.SIG_IGN
    }  # such as by `nohup`
    former = {number: signal.signal(number, forward) for number in FORWARDED - ignored}
    former[signal.SIGWINCH] = signal.signal(signal.SIGWINCH, resize)
    try:
        try:
            child.append(subprocess.Popen(command, stdout=streams.theirs[0], stderr=streams.theirs[1]))
        except OSError as error:
            refused = InputError(f"{command[0]} cannot be run: {error.strerror}")
            refused.exit_code = NOT_EXECUTABLE if isinstance(error, PermissionError) else NOT_FOUND
            raise refused from None
        finally:
            streams.close_theirs()
        # The command inherits these as ignored, as it would without us, but may handle them later.
        former |= {number: signal.signal(number, forward) for number in ignored}
        for number in received:
            child[0].send_signal(number)
        return _wait(child[0], streams, tail, check, received)
    finally:
        for each, handler in former.items():
            signal.signal(each, handler)


def _wait(
    child: subprocess.Popen[bytes],
    streams: _Streams,
    tail: Tail,
    check: Callable[[], None],
    received: list[int],
) -> End:
    ended = threading.Event()

    def wait() -> None:
        child.wait()
        ended.set()

    runs = [
        threading.Thread(target=pass_on, args=(ours, target, tail, ended), daemon=True)
        for ours, target in streams.ours
    ]
    for thread in (threading.Thread(target=wait, daemon=True), *runs):
        thread.start()
    while not ended.wait(CHECK_S):
        check()
    for thread in runs:
        thread.join()
    return End(child.returncode, not ENDING.isdisjoint(received))


class _Streams:
    """Output streams of a command: `theirs` are its stdout and stderr, `ours` pairs of (source, target)."""

    def __init__(self) -> None:
        self.ours: list[tuple[int, int]] = []
        self.theirs: list[int] = []
        self._terminals: list[tuple[int, int]] = []
        for target in (sys.stdout.fileno(), sys.stderr.fileno()):
            if os.isatty(target) and self._terminals:
                self.theirs.append(self.theirs[0])  # one pseudo-terminal, to keep the order of writes to both
                continue
            ours, theirs = os.openpty() if os.isatty(target) else os.pipe()
            if os.isatty(target):
                tty.setraw(theirs)  # the real terminal translates line ends
                self._terminals.append((ours, target))
            self.ours.append((ours, target))
            self.theirs.append(theirs)
        self.resize()

    def resize(self) -> None:
        """Set each pseudo-terminal to the size of the real terminal."""
        for ours, target in self._terminals:
            with suppress(OSError, termios.error):
                termios.tcsetwinsize(ours, termios.tcgetwinsize(target))

    def close_theirs(self) -> None:
        """Close our copies of the command's ends, so that reads end when the command exits."""
        for end in set(self.theirs):
            os.close(end)


def _in_foreground() -> bool:
    with suppress(OSError):
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    return False


def exit_like_command(code: int) -> int:
    """Kill this process by the signal that killed the command, or return the command's exit code."""
    if code >= 0:
        return code
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # no core dump of ours; the command has its own
    with suppress(OSError, ValueError):  # SIGKILL has no handler
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    return 128 - code  # PID 1 of a container ignores its own signals
