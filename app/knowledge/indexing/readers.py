"""Read issues ahead in worker processes: one process writes, all cores read for it.

A reading depends only on the issue's texts and the rules. It is used if the texts are still the same when the
issue is written, and dropped otherwise, so that nothing is read while holding the write lock. Issues of a
worker that died are read in this process.
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
"""With fewer issues, starting workers takes longer than reading."""
READERS_MAX = 4
"""More workers would only wait for the writing process."""
NICENESS = 10
"""Gives priority to a server on the same machine."""
PART = 10
"""Issues sent to a worker at once."""

_LOG = structlog.get_logger(__name__)


class Readers:
    """Reads issues in the worker processes connected by `idle`, or in this process if there are none."""

    def __init__(self, idle: SimpleQueue[Connection], threads: ThreadPoolExecutor | None = None) -> None:
        self._idle = idle
        self._threads = threads
        self._begun: dict[int, tuple[Source, Future[list[StoredReading]], int]] = {}
        self.outdated: list[int] = []

    def begin(self, session: Session, repo_id: int, repo: str, numbers: Sequence[int]) -> None:
        """Start reading these issues and forget all others; without workers, read them here at once."""
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
            return self._threads.submit(self._read_in_worker, part)
        done: Future[list[StoredReading]] = Future()
        done.set_result(read_sources(part))
        return done

    def finish(self, numbers: Sequence[int]) -> None:
        """Wait until these issues are read, so that the writer does not wait while holding the lock."""
        wait({self._begun[number][1] for number in numbers if number in self._begun})

    def read(self, sources: Sequence[Source]) -> list[StoredReading]:
        """Return the readings of these issues; those whose texts changed go to `outdated` instead."""
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

    def _read_in_worker(self, sources: Sequence[Source]) -> list[StoredReading]:
        connection = self._idle.get()
        try:
            connection.send(sources)
            found: list[StoredReading] = connection.recv()
            return found
        finally:
            self._idle.put(connection)


@contextmanager
def reading_apart(amount: int) -> Iterator[Readers]:
    """Open readers for this many issues. Workers end with the `with` block, or when this process ends."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count = min(cores, READERS_MAX) if amount >= READ_APART_FROM and cores > 1 else 0
    idle: SimpleQueue[Connection] = SimpleQueue()
    with ExitStack() as stack:
        with suppress(OSError):  # the process limit is reached
            for _ in range(count):
                idle.put(stack.enter_context(_worker()))
        if idle.empty():
            yield Readers(idle)
            return
        threads = ThreadPoolExecutor(idle.qsize())
        stack.callback(threads.shutdown, cancel_futures=True)
        yield Readers(idle, threads)


@contextmanager
def _worker() -> Iterator[Connection]:
    """Start a worker that reads until the yielded connection is closed."""
    # Spawned, not forked: this process may have threads, and holds database connections.
    spawn = get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_run_worker, args=(theirs,), daemon=True)
    # Ctrl-C reaches the whole process group, but only the writer may handle it: workers inherit the mask.
    resource_tracker.ensure_running()  # started later, it would unblock SIGINT again
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


def _run_worker(connection: Connection) -> None:
    os.nice(NICENESS)
    with suppress(EOFError, OSError):
        while True:
            connection.send(read_sources(connection.recv()))
