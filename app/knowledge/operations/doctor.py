"""What is wrong with an installation, and what to do: engine, schema, damage, index, freshness, settings.

In: the settings. Out: findings; the base is read, never written. With a fault `triage doctor` exits with 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

from sqlmodel import Session

from app.config import Settings
from app.errors import SchemaError, StoreError
from app.extract.facts import Frozen
from app.extract.reader import RULES_VERSION
from app.knowledge.freshness import STALE_AFTER, freshness
from app.store.backup.consistency import BASE_CHECKS, LATER, REPOSITORY_CHECKS, find_torn_profiles, run_checks
from app.store.derived.readings import stale_numbers
from app.store.engine.health import (
    Finding,
    a_fault,
    an_advice,
    engine_version,
    examine_engine,
    find_damage,
    find_file_condition,
)
from app.store.engine.sqlite_file import sqlite_file
from app.store.github.counts import count_anew, find_tallies
from app.store.github.issues import find_repository
from app.store.github.sync_state import last_run_of
from app.store.people.kept_logs import count_kept_logs
from app.store.schema import check_current, current_revision
from app.store.session import Store, open_store

FREE_BYTES_MIN = 200 << 20
"""With less on the disk the next sync may fail."""
WAL_BYTES_MAX = 512 << 20
"""A longer log means that some reader never ends."""
OVERDUE = timedelta(hours=3)
"""A server forgets every hour."""
MIB = 1 << 20


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
    if settings.github_token is None:
        fault = "there is none: GitHub allows 60 requests an hour"
        yield an_advice("TRIAGE_GITHUB_TOKEN", fault, "set one, without any scope: it allows 5,000")
    file = sqlite_file(settings.database_url)
    if file is not None and not file.exists():
        do = "`triage up` makes it; TRIAGE_DATABASE_URL names another"
        yield a_fault("database", f"there is no file {file}", do)
        return
    try:
        with closing(open_store(settings.database_url)) as store:
            yield from _about_store(settings, store, looked)
    except StoreError as error:
        yield a_fault("database", error.message, "until then nothing can be read")


def _about_store(settings: Settings, store: Store, looked: list[str]) -> Iterator[Finding]:
    with store.reading() as session:
        connection = session.connection()
        looked.append(engine_version(connection))
        yield from examine_engine(connection)
        damage = find_damage(connection)
    if damage is not None:
        yield damage
        return
    try:
        check_current(store)
    except SchemaError as error:
        yield a_fault("schema", error.message, "nothing is written until then")
        return
    looked.append(f"schema {current_revision(store)}")
    with store.reading() as session:
        yield from _about_file(session, looked)
        yield from _about_index(session, looked)
        for repo in settings.repo:
            yield from _about_repository(session, store, repo, looked)
        overdue = count_kept_logs(session, expired_before=datetime.now(UTC) - OVERDUE)
    if overdue:
        yield an_advice("kept logs", f"{overdue} are past their time", "a running server forgets them hourly")


def _about_file(session: Session, looked: list[str]) -> Iterator[Finding]:
    file = find_file_condition(session.connection())
    if file is None:
        return
    size, free, wal = (f"{size / MIB:,.0f} MiB" for size in (file.size, file.free, file.wal_size))
    looked.append(f"{file.path}, {size}, {free} free on its disk")
    if file.free < max(FREE_BYTES_MIN, file.size // 5):
        do = "free some, or move the base: `triage copy`"
        yield a_fault("disk", f"{free} are free beside a base of {size}", do)
    if file.wal_size > max(WAL_BYTES_MAX, file.size):
        fault = f"it has grown to {wal}: some reader does not end"
        yield an_advice("write-ahead log", fault, "restart the processes that use the base")
    if file.others_may_write:
        yield a_fault("database file", "every user of this machine may write it", f"chmod o-rwx {file.path}")
    elif file.others_may_read and count_kept_logs(session) > 0:
        fault = "every user of this machine may read the logs that people kept in it"
        yield an_advice("database file", fault, f"chmod o-rwx {file.path}")


def _about_index(session: Session, looked: list[str]) -> Iterator[Finding]:
    looked.append("index: a sample of terms and issues")
    yield from run_checks(session, BASE_CHECKS)
    yield from find_torn_profiles(session)
    for kept in find_tallies(session):
        if count_anew(session, kept.repo_id) != kept.counts:
            stated = f"{kept.counts.issues:,} issues, {kept.counts.pulls:,} pull requests"
            fault = f"other than {stated} and {kept.counts.indexed:,} of both in the search index are there"
            yield a_fault(kept.repo, fault, "`triage reextract` counts them again")


def _about_repository(session: Session, store: Store, repo: str, looked: list[str]) -> Iterator[Finding]:
    repo_id = find_repository(session, repo)
    if repo_id is None:
        yield an_advice(repo, "nothing of it is stored", "`triage sync` brings it")
        return
    looked.append(f"{repo}: readings, pair features, clusters, syncs")
    if stale := len(stale_numbers(session, repo_id, RULES_VERSION)):
        yield an_advice(repo, f"{stale:,} issues are not read, or were read by older rules", LATER)
    yield from run_checks(session, REPOSITORY_CHECKS, repo_id, repo)
    run = last_run_of(session, repo_id)
    if run is not None and run.outcome == "failed":
        fault = f"the last sync failed: {run.fault or 'no reason was noted'}"
        yield a_fault(repo, fault, "`triage sync` tries again, and says why it cannot")
    elif run is not None and run.outcome != "complete":
        fault = f"the last sync is {run.outcome}" + (f": {run.fault}" if run.fault else "")
        yield an_advice(repo, fault, "the next one goes on where it stopped")
    if freshness(store, repo).is_stale:
        fault = f"no sync was complete for {STALE_AFTER.total_seconds() / 3600:.0f} hours"
        yield an_advice(repo, fault, "serve with `--sync-every 15m`, or let `triage sync` run by a timer")
