"""Several worker processes on one port: uvicorn's supervisor, with reliable shutdown.

Terminals and some service managers signal the whole process group, so that workers may exit before their
parent gets the signal; closing a terminal sends SIGHUP; and the parent may be killed. In all these cases no
worker may be restarted, be left behind, keep the port open, or drop a request in progress.
"""

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import parent_process
from multiprocessing.connection import wait
from types import FrameType

from uvicorn import Config
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

from app.terminal.events import announce

END_TIMEOUT_S = 12.0
"""Time for a worker to exit; longer than the timeout for requests in progress."""


def bind(config: Config) -> socket.socket:
    """Open the socket that all workers listen on, with TCP_NODELAY, at the host and port of `config`.

    asyncio sets TCP_NODELAY only on sockets created with an explicit protocol, which uvicorn's are not.
    Without it the body of a response waits 40 ms for the client's delayed acknowledgement of the headers.
    """
    listening = config.bind_socket()
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections inherit it
    return listening


class Workers(Multiprocess):
    """The supervisor of the configured number of worker processes.

    `was_signalled` is True if a signal ended it; otherwise a worker could not start. Without a controlling
    terminal, SIGHUP restarts the workers one by one without losing requests; with one, it ends the server.
    """

    was_signalled = False

    def __init__(self, config: Config, sockets: list[socket.socket]) -> None:
        is_hangup_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        super().__init__(config, sockets)
        self._ends_on_hangup = has_terminal()
        if is_hangup_ignored:  # as under `nohup`
            signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def init_processes(self) -> None:
        super().init_processes()
        self._leave_pipes()

    def keep_subprocess_alive(self) -> None:
        """Restart dead workers, unless a signal is pending, which may have been why they exited."""
        if not self.signal_queue:
            super().keep_subprocess_alive()
            self._leave_pipes()

    def terminate_all(self) -> None:
        """Terminate all workers. Close the sockets first, so that new connections are refused at once."""
        for listening in self.sockets:
            listening.close()
        super().terminate_all()

    def join_all(self) -> None:
        """Wait for all workers to exit, and kill those that hang."""
        _join(self.processes)

    def restart_all(self) -> None:
        """Replace the workers one after the other, until another signal arrives."""
        for index, old in enumerate(self.processes):
            new = Process(self.config, self.sockets)
            new.start()
            if not new.wait_until_ready(self.config.timeout_worker_healthcheck, self.should_exit):
                new.kill()
                new.join()
                return
            self.processes[index] = new
            old.terminate()
            _join([old])
            if self.signal_queue:
                return
        announce("renewed: all workers run the code that is installed")

    def handle_int(self) -> None:
        """Shut down (Ctrl-C)."""
        self.was_signalled = True
        super().handle_int()

    def handle_term(self) -> None:
        """Shut down (service manager)."""
        self.was_signalled = True
        super().handle_term()

    def handle_quit(self) -> None:
        r"""Shut down (Ctrl-\); workers in the terminal's foreground group have already died of it."""
        self.handle_term()

    def handle_hup(self) -> None:
        """Shut down if the terminal was closed; without a terminal, restart the workers."""
        if self._ends_on_hangup:
            self.handle_term()
        else:
            announce("renewing the workers one by one")
            super().handle_hup()
            self._leave_pipes()

    def _leave_pipes(self) -> None:
        # If the parent kept the worker's pipe end open, it would not notice the worker's death.
        for process in self.processes:
            process.child_conn.close()


def _join(processes: Sequence[Process]) -> None:
    until = time.monotonic() + END_TIMEOUT_S
    for process in processes:
        process.process.join(max(0.0, until - time.monotonic()))
        if process.exitcode is None:
            process.kill()
            process.join()


def has_terminal() -> bool:
    """True if this process has a controlling terminal, whose closing would send SIGHUP."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def end_on_hangup() -> None:
    """Make SIGHUP shut down this process gracefully like SIGTERM, unless SIGHUP is ignored."""

    def end(_signal: int, _frame: FrameType | None) -> None:
        signal.raise_signal(signal.SIGTERM)

    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, end)


class _Ended(BaseException):
    """Raised by SIGTERM."""


@contextmanager
def finishing_on_sigterm() -> Iterator[None]:
    """Let SIGTERM end the `with` block, but not the process, which still prints its last message.

    uvicorn finishes the requests in progress, then raises the signal again for the previous handler.
    """

    def end(_signal: int, _frame: FrameType | None) -> None:
        raise _Ended

    before = signal.signal(signal.SIGTERM, end)
    try:
        with suppress(_Ended):
            yield
    finally:
        signal.signal(signal.SIGTERM, before)


def end_with_parent() -> None:
    """In a worker: ignore SIGHUP, which the parent handles, and send itself SIGTERM if the parent dies."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent", daemon=True).start()
