"""From stored raw rows to facts: batches of issues through the reading room, each in a unit of work.

Nothing here asks GitHub. What is still to be read is told by the archive (`app.store.derived.readings`),
so a run
that was killed between storing and reading is made good by the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlmodel import Session

from app.extract.reader import RULES_VERSION
from app.knowledge.indexing.derive import derive_issues
from app.store.derived.readings import stale_numbers
from app.store.engine.connect import take_turn
from app.store.github.issues import add_repository
from app.store.session import Store

BATCH = 100
"""Issues in one unit of work: long enough to spread its cost, short enough to let another writer in."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is.

    Attributes:
        stage: releases, issues, comments, facts, file or waiting.
        done: rows so far; seconds to wait when waiting.
        total: how many there will be, where that is known.
        note: what a person should know besides, or empty.
    """

    stage: str
    done: int
    total: int | None = None
    note: str = ""


Report = Callable[[Progress], None]


def quiet(_progress: Progress) -> None:
    """A report that tells nobody."""


class DeriveResult(Protocol):
    @property
    def read(self) -> int: ...

    @property
    def faults(self) -> int: ...


class Derive(Protocol):
    """Reads these issues and stores what it finds, in the archive's session that it is given."""

    def __call__(
        self, session: Session, repo_id: int, repo: str, numbers: Sequence[int], /
    ) -> DeriveResult: ...


@dataclass(frozen=True, slots=True)
class Derived:
    """How many issues were read, and in how many of them a rule threw."""

    read: int = 0
    faults: int = 0


def derive_changed(
    store: Store, repo: str, numbers: Sequence[int], report: Report = quiet, *, derive: Derive = derive_issues
) -> Derived:
    """Read these issues anew, in the order given.

    Raises:
        StoreError: the database refused; the batches before stay.
    """
    return _derive_batches(store, repo, numbers, report, derive, only_stale=False)


def derive_stale(
    store: Store, repo: str, report: Report = quiet, *, derive: Derive = derive_issues
) -> Derived:
    """Read all issues of a repository whose facts are missing or older than their text, comments or rules.

    Raises:
        StoreError: the database refused; the batches before stay.
    """
    with store.unit_of_work() as session:
        repo_id = add_repository(session, repo)
    with store.reading() as session:
        numbers = stale_numbers(session, repo_id, RULES_VERSION)
    return _derive_batches(store, repo, numbers, report, derive, only_stale=True)


def _derive_batches(
    store: Store, repo: str, numbers: Sequence[int], report: Report, derive: Derive, *, only_stale: bool
) -> Derived:
    wanted = list(dict.fromkeys(numbers))
    read = faults = 0
    for start in range(0, len(wanted), BATCH):
        batch: Sequence[int] = wanted[start : start + BATCH]
        with store.unit_of_work() as session:
            # Rows that another process is storing now must be seen, or be stored after `read_at`.
            take_turn(session)
            repo_id = add_repository(session, repo)
            if only_stale:
                batch = stale_numbers(session, repo_id, RULES_VERSION, among=batch)
            result: DeriveResult = derive(session, repo_id, repo, batch) if batch else Derived()
        read += result.read
        faults += result.faults
        report(Progress("facts", min(start + BATCH, len(wanted)), len(wanted)))
    return Derived(read, faults)
