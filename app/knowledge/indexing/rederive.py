"""Derives everything again from the stored raw data, offline, in batches that each stand alone.

Or only tells what that would alter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from app.errors import NotFoundError
from app.extract.reader import RULES_VERSION
from app.knowledge.indexing.derive import DeriveResult, derive_issues, read_stored
from app.knowledge.indexing.diff import ReadingDiff, Tally, Values, values_of
from app.store.derived.readings import Reading, find_kept_readings
from app.store.github.counts import correct_tally
from app.store.github.issues import count_issues, find_repository, numbers_of
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
    repo_id, total = _stored(store, repo)
    after = read = faults = 0
    while True:
        with store.unit_of_work() as session:
            numbers = numbers_of(session, repo_id, after=after, limit=BATCH)
            if not numbers:
                correct_tally(session, repo_id)
                return DeriveResult(read, faults)
            result = derive_issues(session, repo_id, repo, numbers)
        after, read, faults = numbers[-1], read + result.read, faults + result.faults
        report(Rederived("facts", read, total))


def diff_all(
    store: Store, repo: str, report: Callable[[Rederived], None], *, examples: int = 3
) -> ReadingDiff:
    """What reading all stored issues of a repository again would alter; nothing is written.

    An issue that was never read is not compared, only counted. One whose text came after its reading shows
    what the text altered, too: `triage sync` reads those.

    Args:
        store: the open archive.
        repo: its name as `owner/name`.
        report: told how far it is.
        examples: how many issues to name of each kind of change of each field.

    Raises:
        NotFoundError: nothing of it is stored.
    """
    repo_id, total = _stored(store, repo)
    tally = Tally(examples)
    stored_rules: Counter[str] = Counter()
    after = done = 0
    while True:
        with store.reading() as session:
            numbers = numbers_of(session, repo_id, after=after, limit=BATCH)
            kept = find_kept_readings(session, repo_id, numbers)
            fresh = [item.reading for item in read_stored(session, repo_id, repo, list(kept))]
        if not numbers:
            rules = dict(sorted(stored_rules.items()))
            return tally.result(RULES_VERSION, rules, never_read=done - tally.compared)
        for reading in fresh:
            old = kept[reading.number]
            stored_rules[old.rules_version] += 1
            before = values_of(old.facts, old.evidence, old.links, old.fault)
            tally.add(reading.number, before, _values(reading))
        after, done = numbers[-1], done + len(numbers)
        report(Rederived("comparing", done, total))


def _stored(store: Store, repo: str) -> tuple[int, int]:
    """The repository's key, and how many issues and pull requests of it are stored."""
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        if repo_id is None:
            raise NotFoundError(f"nothing of {repo} is stored")
        counts = count_issues(session, repo_id)
    return repo_id, counts["issues"] + counts["pulls"]


def _values(reading: Reading) -> Values:
    facts = reading.facts
    told = facts.model_dump(mode="json", exclude={"evidence"}) if facts else None
    return values_of(told, facts.evidence if facts else (), reading.links, reading.fault)
