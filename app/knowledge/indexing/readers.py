"""Reads issues ahead of their turn in processes of their own: one process writes, all cores read for it.

A reading depends on the issue's texts and the rules only. What was read ahead is taken if the texts are still
the same when the issue's turn comes, and is left otherwise: nobody reads while all other writers wait. What a
process that died had to read is read here.
"""

import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from queue import SimpleQueue

import structlog
from sqlalchemy.orm import Session

from app.knowledge.indexing.derive import Source, StoredReading, find_sources, read_sources

READ_APART_FROM = 300
"""Fewer issues are read here sooner than processes are started."""
READERS_MAX = 4
"""More would wait for the process that writes."""
NICENESS = 10
"""A server on the same machine goes first."""
PART = 10
"""Issues that a process is given at once."""

_LOG = structlog.get_logger(__name__)


class Readers:
    """Reads issues, with the processes at the other ends of `idle`, if there are any."""

    def __init__(self, idle: SimpleQueue[Connection], threads: ThreadPoolExecutor | None = None) -> None:
        self._idle = idle
        self._threads = threads
        self._begun: dict[int, tuple[Source, Future[list[StoredReading]], int]] = {}
        self.outdated: list[int] = []

    def begin(self, session: Session, repo_id: int, repo: str, numbers: Sequence[int]) -> None:
        """Have these issues read from now on, and no others; without processes they are read here at once."""
        self.outdated = []
        self._begun = {number: self._begun[number] for number in numbers if number in self._begun}
        new = [number for number in numbers if number not in self._begun]
        sources = find_sources(session, repo_id, repo, new)
        for start in range(0, len(sources), PART):
            part = sources[start : start + PART]
            future = self._submit(part)
            self._begun |= {source.issue.number: (source, future, at) for at, source in enumerate(part)}

    def _submit(self, part: Sequence[Source]) -> Future[list[StoredReading]]:
        if self._threads is not None:
            return self._threads.submit(self._read_apart, part)
        done: Future[list[StoredReading]] = Future()
        done.set_result(read_sources(part))
        return done

    def finish(self, numbers: Sequence[int]) -> None:
        """Wait until these are read, so that who writes then need not, while all others wait for it."""
        wait({self._begun[number][1] for number in numbers if number in self._begun})

    def read(self, sources: Sequence[Source]) -> list[StoredReading]:
        """What was read of these issues; those whose texts are others by now are `outdated` and left out."""
        begun = {source.issue.number: self._begun.pop(source.issue.number, None) for source in sources}
        kept = [(source, found) for source in sources if (found := begun[source.issue.number])]
        kept = [(source, found) for source, found in kept if found[0] == source]
        self.outdated = sorted(begun.keys() - {source.issue.number for source, _found in kept})
        return [self._result(source, future, at) for source, (_text, future, at) in kept]

    def _result(self, source: Source, future: Future[list[StoredReading]], at: int) -> StoredReading:
        try:
            return future.result()[at]
        except (EOFError, OSError):
            if self._threads:
                _LOG.warning("a process that reads issues died: from now on they are read in this one")
            self._threads = None
            return read_sources([source])[0]

    def _read_apart(self, sources: Sequence[Source]) -> list[StoredReading]:
        connection = self._idle.get()
        try:
            connection.send(sources)
            found: list[StoredReading] = connection.recv()
            return found
        finally:
            self._idle.put(connection)


@contextmanager
def reading_apart(amount: int) -> Iterator[Readers]:
    """Readers for so many issues. Their processes end with the `with`, and with this one, however it ends."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count = min(cores, READERS_MAX) if amount >= READ_APART_FROM and cores > 1 else 0
    idle: SimpleQueue[Connection] = SimpleQueue()
    with ExitStack() as stack:
        with suppress(OSError):  # no more processes are allowed
            for _ in range(count):
                idle.put(stack.enter_context(_process()))
        if idle.empty():
            yield Readers(idle)
            return
        threads = ThreadPoolExecutor(idle.qsize())
        stack.callback(threads.shutdown, cancel_futures=True)
        yield Readers(idle, threads)


@contextmanager
def _process() -> Iterator[Connection]:
    """The connection to a new process that reads until this end of it is closed."""
    # Not forked: this process may have threads, and holds connections to the base.
    spawn = get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(theirs,), daemon=True)
    # Ctrl-C reaches the whole group, and is for the process that writes.
    resource_tracker.ensure_running()  # which would let it through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
    try:
        yield ours
    finally:
        ours.close()
        process.join()


def _serve(connection: Connection) -> None:
    os.nice(NICENESS)
    with suppress(EOFError, OSError):
        while True:
            connection.send(read_sources(connection.recv()))
