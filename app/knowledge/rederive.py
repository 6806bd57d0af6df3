"""Derives everything again from the stored raw data, offline, in batches that each stand alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.errors import NotFoundError
from app.knowledge.derive import DeriveResult, derive_issues
from app.store.issues import count_issues, find_repository, numbers_of
from app.store.session import Store

BATCH = 100


@dataclass(frozen=True, slots=True)
class Rederived:
    """How far it is."""

    stage: str
    done: int
    total: int | None
    note: str = ""


def rederive_all(store: Store, repo: str, report: Callable[[Rederived], None]) -> DeriveResult:
    """Read all stored issues of a repository again.

    Raises:
        NotFoundError: nothing of it is stored.
    """
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        if repo_id is None:
            raise NotFoundError(f"nothing of {repo} is stored")
        counts = count_issues(session, repo_id)
    total = counts["issues"] + counts["pulls"]
    after = read = faults = 0
    while True:
        with store.unit_of_work() as session:
            numbers = numbers_of(session, repo_id, after=after, limit=BATCH)
            if not numbers:
                return DeriveResult(read, faults)
            result = derive_issues(session, repo_id, repo, numbers)
        after, read, faults = numbers[-1], read + result.read, faults + result.faults
        report(Rederived("facts", read, total))
