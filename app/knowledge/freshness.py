"""Counts and age of the stored data, for page footers and `triage status`."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import Field
from sqlalchemy.orm import Session

from app.extract.facts import Frozen
from app.model_reader.reply import prompt_version
from app.store.derived.links import find_repositories
from app.store.derived.model_outputs import count_replies, last_model, tokens_today, unread_numbers
from app.store.engine.sync_lock import sync_holder
from app.store.github.issues import count_issues, find_repository
from app.store.github.releases import newest_release, tags_of
from app.store.github.sync_state import KILLED, RUNNING, cursors_of, fresh_as_of, last_run_of, last_runs
from app.store.records import SyncRunRecord
from app.store.session import Store

STALE_AFTER = timedelta(hours=24)
RUNS = 5
"""Sync runs shown in a status."""


class RunView(Frozen):
    """A sync run. Outcomes: complete, partial (stopped early; fetched data is stored), failed, killed."""

    outcome: str
    started_at: datetime
    ended_at: datetime | None
    was_cut_short: bool


class CursorView(Frozen):
    position: dict[str, Any]
    moved_at: datetime


class Freshness(Frozen):
    """Age of a repository's data. `is_stale`: no complete sync within `STALE_AFTER`."""

    repo: str
    as_of: datetime | None = None
    age_s: int | None = None
    is_stale: bool = True
    last_run: RunView | None = None
    cursors: dict[str, CursorView] = Field(default_factory=dict)


def freshness(store: Store, repo: str) -> Freshness:
    """Return the age of a repository's data; empty if nothing of it is stored."""
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        as_of, run = fresh_as_of(session, repo_id), last_run_of(session, repo_id)
        cursors = cursors_of(session, repo_id)
    age = datetime.now(UTC) - as_of if as_of else None
    return Freshness(
        repo=repo,
        as_of=as_of,
        age_s=max(0, int(age.total_seconds())) if age else None,
        is_stale=age is None or age > STALE_AFTER,
        last_run=run
        and RunView.based_on(run, was_cut_short=run.outcome != "complete" and run.fault is not None),
        cursors={name: CursorView(position=at, moved_at=moved) for name, (at, moved) in cursors.items()},
    )


def stored_repositories(store: Store) -> tuple[str, ...]:
    """Return the names of all repositories with stored data."""
    with store.reading() as session:
        return tuple(find_repositories(session).values())


def release_names(store: Store, repo: str) -> tuple[str, ...]:
    """Return a repository's release names, without leading v, sorted as text."""
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        tags = tags_of(session, repo_id)
        return tuple(sorted(tag.removeprefix("v") for tag in tags))


class StoredCounts(Frozen):
    """Number of stored rows of a repository; `newest_release` has no leading v."""

    issues: int = 0
    pulls: int = 0
    from_cards: int = 0
    newest_release: str | None = None


class Overview(StoredCounts):
    """Counts and freshness of one repository, as shown in page footers."""

    as_of: datetime | None = None
    is_starter_only: bool = False
    is_stale: bool = False
    last_run: RunView | None = None


def overview(store: Store, repo: str, fresh: Freshness | None = None) -> Overview:
    """Return counts and freshness, zeros if nothing of `repo` is stored. `fresh`: if already loaded."""
    fresh = fresh or freshness(store, repo)
    counts = _stored_counts(store, repo)
    is_starter_only = counts.issues == counts.from_cards and counts.issues > 0
    return Overview.based_on(fresh, **dict(counts), is_starter_only=is_starter_only)


def _stored_counts(store: Store, repo: str) -> StoredCounts:
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        release = (newest_release(session, repo_id) or "").removeprefix("v") or None
        return StoredCounts(**count_issues(session, repo_id), newest_release=release)


class RepositoryStatus(Frozen):
    stored: StoredCounts
    freshness: Freshness


class Status(Frozen):
    """The answer of `triage status`; `syncing` names the process that is syncing now."""

    syncing: str | None
    repositories: dict[str, RepositoryStatus]
    runs: tuple[SyncRunRecord, ...]


def status(store: Store, repos: Sequence[str]) -> Status:
    """Return the sync runs, and counts and freshness of these repositories."""
    syncing = sync_holder(store.engine)
    with store.reading() as session:
        runs = latest_runs(session, syncing)
    return Status(
        syncing=syncing,
        repositories={
            repo: RepositoryStatus(stored=_stored_counts(store, repo), freshness=freshness(store, repo))
            for repo in repos
        },
        runs=tuple(runs),
    )


def latest_runs(session: Session, syncing: str | None, repo_id: int | None = None) -> list[SyncRunRecord]:
    """Return the newest sync runs, newest first, of one or all repositories.

    A run without an end is `running` only if it is the newest and a process is `syncing`; else it was killed.
    """
    return [
        replace(run, outcome=KILLED) if run.outcome == RUNNING and (at or syncing is None) else run
        for at, run in enumerate(last_runs(session, RUNS, repo_id))
    ]


class ReaderStatus(Frozen):
    """Model readings of a repository. `waiting`: issues whose current text the last model has not read."""

    model: str | None
    outcomes: dict[str, int]
    waiting: int
    values_kept: int
    values_dropped: int
    tokens: int


class ReaderOverview(Frozen):
    """The state of the model reader, without asking its server."""

    tokens_today: int
    tokens_per_day: int
    repositories: dict[str, ReaderStatus]


def reader_overview(store: Store, repos: Sequence[str], tokens_per_day: int) -> ReaderOverview:
    """Return the model reader's progress on these repositories."""
    found: dict[str, ReaderStatus] = {}
    with store.reading() as session:
        used = tokens_today(session)
        for repo in repos:
            repo_id = find_repository(session, repo)
            if not repo_id:
                continue
            counts, model = count_replies(session, repo_id), last_model(session, repo_id)
            found[repo] = ReaderStatus(
                model=model,
                outcomes=dict(counts.outcomes),
                waiting=len(unread_numbers(session, repo_id, model or "", prompt_version())),
                values_kept=counts.kept,
                values_dropped=counts.dropped,
                tokens=counts.tokens,
            )
    return ReaderOverview(tokens_today=used, tokens_per_day=tokens_per_day, repositories=found)
