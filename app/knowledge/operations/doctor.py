"""What is wrong with an installation, and what to do: engine, schema, damage, index, freshness, settings.

In: the settings. Out: findings; the base is read, never written. A *fault* makes answers wrong or puts data
at risk, and `triage doctor` leaves with 1; an *advice* tells what would be better otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Literal

from app.config import Settings
from app.errors import SchemaError, StoreError
from app.extract.facts import Frozen
from app.extract.reader import RULES_VERSION
from app.knowledge.freshness import STALE_AFTER, freshness
from app.store.backup.consistency import (
    count_lost_members,
    count_overdue_logs,
    count_without_cluster,
    count_without_view,
    look_at_index,
)
from app.store.derived.readings import stale_numbers
from app.store.engine.health import (
    engine_version,
    find_damage,
    find_engine_advice,
    find_engine_faults,
    find_file_condition,
)
from app.store.engine.sqlite_file import sqlite_file
from app.store.github.counts import count_anew, find_tallies
from app.store.github.issues import find_repository
from app.store.github.sync_state import last_run_of
from app.store.people.kept_logs import count_kept_logs
from app.store.schema import check_current, current_revision
from app.store.session import Store, open_store

ROOM_LEAST = 200 << 20
"""Bytes free on the disk below which the next sync may fail."""
WAL_LARGE = 512 << 20
"""Bytes; a log this long means that some reader never ends."""
OVERDUE = timedelta(hours=3)
"""A server forgets every hour."""
MIB = 1 << 20

Level = Literal["fault", "advice"]


class Finding(Frozen):
    """A thing, what is wrong with it, and what to do."""

    level: Level
    thing: str
    fault: str
    do: str


class Examination(Frozen):
    """The whole. `is_sound`: no finding is a fault; `looked_at`: what was examined, with figures."""

    is_sound: bool
    looked_at: tuple[str, ...]
    findings: tuple[Finding, ...]


def examine(settings: Settings) -> Examination:
    """Look at everything; what cannot be looked at is a finding itself."""
    looked: list[str] = []
    findings = tuple(_findings(settings, looked))
    is_sound = all(finding.level != "fault" for finding in findings)
    return Examination(is_sound=is_sound, looked_at=tuple(looked), findings=findings)


def _findings(settings: Settings, looked: list[str]) -> Iterator[Finding]:
    yield from _about_settings(settings)
    file = sqlite_file(settings.database_url)
    if file is not None and not file.exists():
        do = "`triage up` makes it; TRIAGE_DATABASE_URL names another"
        yield _fault("database", f"there is no file {file}", do)
        return
    try:
        store = open_store(settings.database_url)
    except StoreError as error:
        yield _fault("database", error.message, "until then nothing can be read")
        return
    try:
        yield from _about_store(settings, store, looked)
    except StoreError as error:
        yield _fault("database", error.message, "until then nothing can be read")
    finally:
        store.close()


def _about_settings(settings: Settings) -> Iterator[Finding]:
    if settings.github_token is None:
        yield _advice(
            "TRIAGE_GITHUB_TOKEN",
            "there is none: GitHub allows 60 requests an hour",
            "set one, without any scope: it allows 5,000",
        )


def _about_store(settings: Settings, store: Store, looked: list[str]) -> Iterator[Finding]:
    with store.reading() as session:
        connection = session.connection()
        looked.append(engine_version(connection))
        for found in find_engine_faults(connection):
            yield _fault(found.thing, found.fault, found.do)
        for found in find_engine_advice(connection):
            yield _advice(found.thing, found.fault, found.do)
        damage = find_damage(connection)
    if damage is not None:
        yield _fault(damage.thing, damage.fault, damage.do)
        return
    try:
        check_current(store)
    except SchemaError as error:
        yield _fault("schema", error.message, "nothing is written until then")
        return
    looked.append(f"schema {current_revision(store)}")
    yield from _about_file(store, looked)
    yield from _about_index(store, looked)
    for repo in settings.repo:
        yield from _about_repository(store, repo, looked)
    yield from _about_retention(store)


def _about_file(store: Store, looked: list[str]) -> Iterator[Finding]:
    with store.reading() as session:
        file, keeps_logs = find_file_condition(session.connection()), count_kept_logs(session) > 0
    if file is None:
        return
    looked.append(f"{file.path}, {file.size / MIB:,.0f} MiB, {file.free / MIB:,.0f} MiB free on its disk")
    if file.free < max(ROOM_LEAST, file.size // 5):
        yield _fault(
            "disk",
            f"{file.free / MIB:,.0f} MiB are free beside a base of {file.size / MIB:,.0f} MiB",
            "free some, or move the base: `triage copy`",
        )
    if file.wal_size > max(WAL_LARGE, file.size):
        yield _advice(
            "write-ahead log",
            f"it has grown to {file.wal_size / MIB:,.0f} MiB: some reader does not end",
            "restart the processes that use the base",
        )
    if file.others_may_write:
        yield _fault("database file", "every user of this machine may write it", f"chmod o-rwx {file.path}")
    elif file.others_may_read and keeps_logs:
        fault = "every user of this machine may read the logs that people kept in it"
        yield _advice("database file", fault, f"chmod o-rwx {file.path}")


def _about_index(store: Store, looked: list[str]) -> Iterator[Finding]:
    with store.reading() as session:
        found = look_at_index(session)
        lost = count_lost_members(session)
        tallies = find_tallies(session)
        miscounted = [tally for tally in tallies if count_anew(session, tally.repo_id) != tally.counts]
    looked.append(f"index: {found.terms} terms and {found.issues} issues of a sample")
    again = "`triage reextract` derives it again"
    if found.wrong_counts:
        yield _fault("search index", f"{found.wrong_counts} of {found.terms} terms count other issues", again)
    if found.orphan_postings:
        yield _fault("search index", f"{found.orphan_postings} entries lead to no issue", again)
    if found.torn_profiles:
        fault = f"{found.torn_profiles} of {found.issues} issues are not found by their own terms"
        yield _fault("search index", fault, again)
    for tally in miscounted:
        told = f"{tally.counts.issues:,} issues, {tally.counts.pulls:,} pull requests"
        fault = f"other than {told} and {tally.counts.indexed:,} of both in the search index are there"
        yield _fault(tally.repo, fault, "`triage reextract` counts them again")
    if lost:
        yield _fault("clusters", f"{lost} issues are in a cluster that is not there", again)


def _about_repository(store: Store, repo: str, looked: list[str]) -> Iterator[Finding]:
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        if repo_id is None:
            yield _advice(repo, "nothing of it is stored", "`triage sync` brings it")
            return
        stale = len(stale_numbers(session, repo_id, RULES_VERSION))
        views, clusters = count_without_view(session, repo_id), count_without_cluster(session, repo_id)
        run = last_run_of(session, repo_id)
    looked.append(f"{repo}: readings, views, clusters, syncs")
    again = "the next `triage sync` does it, or `triage reextract` now"
    for count, what in (
        (stale, "are not read, or were read by older rules"),
        (views, "cannot be compared with others"),
        (clusters, "report a failure and are in no cluster"),
    ):
        if count:
            yield _advice(repo, f"{count:,} issues {what}", again)
    if run is not None and run.outcome == "failed":
        fault = f"the last sync failed: {run.fault or 'no reason was noted'}"
        yield _fault(repo, fault, "`triage sync` tries again, and says why it cannot")
    elif run is not None and run.outcome != "complete":
        fault = f"the last sync is {run.outcome}" + (f": {run.fault}" if run.fault else "")
        yield _advice(repo, fault, "the next one goes on where it stopped")
    fresh = freshness(store, repo)
    if fresh.is_stale:
        fault = f"no sync was complete for {STALE_AFTER.total_seconds() / 3600:.0f} hours"
        yield _advice(repo, fault, "serve with `--sync-every 15m`, or let `triage sync` run by a timer")


def _about_retention(store: Store) -> Iterator[Finding]:
    with store.reading() as session:
        overdue = count_overdue_logs(session, datetime.now(UTC) - OVERDUE)
    if overdue:
        yield _advice("kept logs", f"{overdue} are past their time", "a running server forgets them hourly")


def _fault(thing: str, fault: str, do: str) -> Finding:
    return Finding(level="fault", thing=thing, fault=fault, do=do)


def _advice(thing: str, fault: str, do: str) -> Finding:
    return Finding(level="advice", thing=thing, fault=fault, do=do)
