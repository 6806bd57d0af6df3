"""What processes take of the machine, as Linux tells it in /proc: CPU, memory, and which server keeps a base."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import text

from app.store.session import Store

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def family(pid: int) -> list[int]:
    """A process and what it started."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return [pid]
    return [pid, *(found for child in children for found in family(int(child)))]


def memory_of(pid: int) -> int:
    """Bytes that a process holds for itself; what it maps, or shares with others, is not counted."""
    try:
        resident, shared = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1:3]
        return (int(resident) - int(shared)) * PAGE_BYTES
    except OSError:
        return 0


def cpu_s(pid: int) -> float:
    """Seconds of CPU of a process and of those it started that ended since; to the hundredth."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(ticks) for ticks in fields[11:15]) / TICKS_PER_S


def family_cpu_s(pid: int | None) -> float:
    """Seconds of CPU of a process and all it started; 0 of none."""
    return sum(map(cpu_s, family(pid))) if pid is not None else 0.0


def backend_of(store: Store) -> int | None:
    """PostgreSQL's process behind a store's next connection; None on SQLite, or if it is another machine's."""
    if store.engine.name == "sqlite":
        return None
    with store.reading() as session:
        pid = int(session.connection().execute(text("SELECT pg_backend_pid()")).scalar_one())
    name = Path(f"/proc/{pid}/comm")
    return pid if name.exists() and name.read_text(encoding="ascii").startswith("postgres") else None


def database_server_of(store: Store) -> int | None:
    """The process from which all of PostgreSQL's are started; None as of `backend_of`."""
    pid = backend_of(store)
    if pid is None:
        return None
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[1])


def size_mb(store: Store) -> float:
    """What a base takes on the disk, in MB."""
    if store.engine.name == "sqlite":
        return Path(store.engine.url.database or "").stat().st_size / 1e6
    with store.reading() as session:
        asked = text("SELECT pg_database_size(current_database())")
        return int(session.connection().execute(asked).scalar_one()) / 1e6


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds of one call: on the clock, of CPU here, and of CPU in PostgreSQL's process."""

    wall_ms: float
    own_ms: float
    database_ms: float

    @property
    def cpu_ms(self) -> float:
        return self.own_ms + self.database_ms


class Meter:
    """Measures calls that one thread makes to a store, one at a time."""

    def __init__(self, store: Store) -> None:
        self._backend = backend_of(store)
        self._began = self._now()

    def begin(self) -> None:
        self._began = self._now()

    def end(self) -> Cost:
        wall, own, database = (
            1000 * (now - then) for now, then in zip(self._now(), self._began, strict=True)
        )
        return Cost(wall, own, database)

    def _now(self) -> tuple[float, float, float]:
        return time.perf_counter(), time.process_time(), self._backend_s()

    def _backend_s(self) -> float:
        if self._backend is None:
            return 0.0
        found = Path(f"/proc/{self._backend}/schedstat").read_text(encoding="ascii")  # in nanoseconds
        return int(found.split()[0]) / 1e9
