"""Output on its way to where it was going: passed on byte by byte, with the last of it kept.

A command keeps what it had: its streams are pseudo-terminals where ours are terminals and pipes elsewhere,
its input is ours, it stays in our process group, and signals sent to us reach it. Nothing here reads a log; a
thread for each stream sleeps a little after a short read, so that many small writes cost few wake-ups.
"""

from __future__ import annotations

import fcntl
import os
import resource
import select
import signal
import subprocess
import sys
import termios
import threading
import time
import tty
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType

from app.errors import InputError

CHUNK_BYTES = 256 * 1024
PIPE_BYTES = 1 << 20
"""Room for what a command prints while its reader sleeps, where the system grants it."""
SHORT_PIPE_BYTES, SHORT_TERMINAL_BYTES = 64 * 1024, 4000
"""A read of less found no backlog; a terminal hands over 4,095 bytes at a time."""
PAUSE_S = 0.05
LOOK_S = 0.5
"""How often a silent stream is asked whether its command has ended meanwhile."""
CHECK_S = 5.0
FROM_TERMINAL = frozenset({signal.SIGINT, signal.SIGHUP, signal.SIGQUIT})
"""What a terminal sends to its whole foreground group, and so to the command itself."""
ENDING = FROM_TERMINAL | {signal.SIGTERM}
FORWARDED = ENDING | {signal.SIGUSR1, signal.SIGUSR2}
NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""Exit codes, as shells give them."""


class Tail:
    """The last `limit` bytes of what passed, from the start of a line on where more did."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._chunks: deque[bytes] = deque()
        self._lock = threading.Lock()
        self._kept = self.total = 0

    def add(self, chunk: bytes) -> None:
        """Keep a chunk; the oldest ones go."""
        with self._lock:
            self._chunks.append(chunk)
            self._kept += len(chunk)
            self.total += len(chunk)
            while self._kept - len(self._chunks[0]) >= self._limit:
                self._kept -= len(self._chunks.popleft())

    def read(self, size: int | None = None) -> bytes:
        """The last bytes, at most `size` of them."""
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
    """Pass a stream on until its end, or until nothing is left of it once the command has ended.

    Where nobody takes it any more the stream is closed, so that the command learns of it as without us.
    """
    short = SHORT_TERMINAL_BYTES if os.isatty(source) else SHORT_PIPE_BYTES
    with suppress(OSError):  # the end of a terminal, or of who reads ours
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
            if len(chunk) < short:
                time.sleep(PAUSE_S)
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
    """How a command ended: its exit code, or minus the signal that killed it; whether it was asked to."""

    code: int
    was_asked: bool

    @property
    def is_failure(self) -> bool:
        """Whether it ended by itself, and not well."""
        return bool(self.code) and not self.was_asked


def run_command(command: Sequence[str], tail: Tail, check: Callable[[], None]) -> End:
    """Run a command to its end with its output passed on.

    Args:
        check: called every `CHECK_S` while the command runs; the output passes meanwhile.

    Raises:
        InputError: there is no such command; its exit code is a shell's.
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
    }  # by `nohup`, say
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
        # The command ignores these too, as it does without us, but may listen to them later.
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
    """The ends of a command's output: `theirs` for stdout and stderr, `ours` with where each goes on to."""

    def __init__(self) -> None:
        self.ours: list[tuple[int, int]] = []
        self.theirs: list[int] = []
        self._terminals: list[tuple[int, int]] = []
        for target in (sys.stdout.fileno(), sys.stderr.fileno()):
            if os.isatty(target) and self._terminals:
                self.theirs.append(self.theirs[0])  # one terminal, or what is written to both loses its order
                continue
            ours, theirs = os.openpty() if os.isatty(target) else os.pipe()
            if os.isatty(target):
                tty.setraw(theirs)  # the real terminal does what is to be done about line ends
                self._terminals.append((ours, target))
            elif sys.platform == "linux":
                with suppress(OSError):
                    fcntl.fcntl(ours, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
            self.ours.append((ours, target))
            self.theirs.append(theirs)
        self.resize()

    def resize(self) -> None:
        """Give each pseudo-terminal the size of the terminal behind it."""
        for ours, target in self._terminals:
            with suppress(OSError, termios.error):
                termios.tcsetwinsize(ours, termios.tcgetwinsize(target))

    def close_theirs(self) -> None:
        """Leave the command's ends to the command, so that its end is the end of them."""
        for end in set(self.theirs):
            os.close(end)


def _in_foreground() -> bool:
    with suppress(OSError):
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    return False


def end_alike(code: int) -> int:
    """End this process by the signal that ended the command, if one did; otherwise its exit code."""
    if code >= 0:
        return code
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the core is the command's
    with suppress(OSError, ValueError):  # SIGKILL has no handler
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    return 128 - code  # the first process of a container outlives its own signals
