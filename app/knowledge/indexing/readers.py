"""Read issues ahead in worker processes: one process writes, all cores read for it.

A reading depends only on the issue's texts and the rules. It is used if the texts are still the same when the
issue is written, and dropped otherwise, so that nothing is read while holding the write lock. Issues of a
worker that died are read in this process.
"""

import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from threading import Thread

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
    """Reads issues in the worker processes of a pool, or in this process if there is none."""

    def __init__(self, pool: ProcessPoolExecutor | None = None) -> None:
        self._pool = pool
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
        try:
            if self._pool is not None:
                with _holding_back_ctrl_c():
                    return self._pool.submit(_read_in_worker, part)
        except (OSError, BrokenExecutor):  # the process limit is reached, or a worker died
            self._read_here()
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
        except BrokenExecutor:
            self._read_here()
            return read_sources([source])[0]

    def _read_here(self) -> None:
        if self._pool is not None:
            _LOG.warning("a process that reads issues died: from now on they are read in this one")
        self._pool = None


@contextmanager
def reading_apart(amount: int) -> Iterator[Readers]:
    """Open readers for this many issues. Workers end with the `with` block, or when this process ends."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if amount < READ_APART_FROM or cores == 1:
        yield Readers()
        return
    # Spawned, not forked: this process may have threads, and holds database connections.
    pool = ProcessPoolExecutor(min(cores, READERS_MAX), get_context("spawn"), initializer=_begin_worker)
    try:
        yield Readers(pool)
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _holding_back_ctrl_c() -> Iterator[None]:
    """Hold back SIGINT, which reaches the whole group; a worker inherits this until it ignores the signal."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _begin_worker() -> None:
    os.nice(NICENESS)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the writer handles it
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process with the one that started it, even if that was killed."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _read_in_worker(sources: Sequence[Source]) -> list[StoredReading]:
    return read_sources(sources)
