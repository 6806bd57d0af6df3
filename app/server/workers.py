"""Several worker processes behind one port: uvicorn's supervisor, made to leave nothing behind.

A terminal and some service managers signal the whole group, so that workers end on their own before their
parent gets the signal; a closed terminal hangs up; and a parent can be killed. In all of these no worker may
be started again or stay, hold the port, or lose what it is answering.
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
"""For a worker that was asked to end; longer than it takes to answer what it was asked."""


def bind(config: Config) -> socket.socket:
    """Open the socket that all workers listen on, at the host and port of `config`; answers leave it at once.

    asyncio sees to that only where the protocol is named when the socket is made, which uvicorn does not:
    the body of an answer then waits 40 ms for a client that delays to acknowledge its head.
    """
    listening = config.bind_socket()
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections inherit it
    return listening


class Workers(Multiprocess):
    """As many processes as `config` says, watched until a signal ends them.

    `was_signalled` says whether one did; if not, a worker could not start. Without a terminal SIGHUP renews
    the workers one by one, so that no request is lost; with one it means that the terminal is gone.
    """

    was_signalled = False

    def __init__(self, config: Config, sockets: list[socket.socket]) -> None:
        is_hangup_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        super().__init__(config, sockets)
        self._ends_on_hangup = has_terminal()
        if is_hangup_ignored:  # as `nohup` has it
            signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def init_processes(self) -> None:
        super().init_processes()
        self._leave_pipes()

    def keep_subprocess_alive(self) -> None:
        """Start again who died, unless a signal waits: whoever died then may have got it first."""
        if not self.signal_queue:
            super().keep_subprocess_alive()
            self._leave_pipes()

    def terminate_all(self) -> None:
        """Tell all to end. Who comes now is refused at once: nobody would take the connection any more."""
        for listening in self.sockets:
            listening.close()
        super().terminate_all()

    def join_all(self) -> None:
        """Wait for all to end; one that is frozen is killed."""
        _join(self.processes)

    def restart_all(self) -> None:
        """Replace each worker, the next one when the former has ended, unless another signal came."""
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
        """End (Ctrl-C)."""
        self.was_signalled = True
        super().handle_int()

    def handle_term(self) -> None:
        """End (a service manager)."""
        self.was_signalled = True
        super().handle_term()

    def handle_quit(self) -> None:
        """End (Ctrl-backslash); the workers of a terminal have died of it already."""
        self.handle_term()

    def handle_hup(self) -> None:
        """End with the terminal, or renew the workers."""
        if self._ends_on_hangup:
            self.handle_term()
        else:
            announce("renewing the workers one by one")
            super().handle_hup()
            self._leave_pipes()

    def _leave_pipes(self) -> None:
        # Held open here, a worker's end would hide its death from who waits for its answer.
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
    """Whether a terminal controls this process, whose closing would send SIGHUP."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def end_on_hangup() -> None:
    """Have SIGHUP end this process as SIGTERM does, what is being asked answered, unless it is ignored."""

    def end(_signal: int, _frame: FrameType | None) -> None:
        signal.raise_signal(signal.SIGTERM)

    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, end)


class _Ended(BaseException):
    """SIGTERM came."""


@contextmanager
def ending_in_peace() -> Iterator[None]:
    """Let SIGTERM end what is done inside, not the process, which has its last words to say.

    uvicorn answers what is being asked, then raises the signal once more for whoever handled it before.
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
    """In a worker: leave hang-ups to the parent, and end as on SIGTERM when the parent is dead."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent", daemon=True).start()
