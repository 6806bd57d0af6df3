"""What `triage status` tells: what is stored, how fresh it is, where each stream stands, the newest runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from app.extract.facts import Frozen
from app.knowledge.freshness import Freshness, freshness
from app.knowledge.overview import Overview, overview
from app.store.session import Store
from app.store.sync_lock import sync_holder
from app.store.sync_state import last_runs

RUNS = 5


class Run(Frozen):
    repo: str
    started_at: datetime
    ended_at: datetime | None
    outcome: str
    requests: int
    not_modified: int
    remaining: int | None
    stored: int
    fault: str | None


class Counts(Frozen):
    issues: int
    pulls: int
    from_cards: int
    newest_release: str | None


class RepositoryStatus(Frozen):
    stored: Counts
    freshness: Freshness


class Status(Frozen):
    """The whole. `syncing` names the process that syncs now, in the background or by hand."""

    syncing: str | None
    repositories: dict[str, RepositoryStatus]
    runs: tuple[Run, ...]


def status(store: Store, repos: Sequence[str]) -> Status:
    """The state of these repositories' copies.

    Raises:
        StoreError: the database cannot be read.
    """
    with store.reading() as session:
        runs = last_runs(session, RUNS)
    return Status(
        syncing=sync_holder(store),
        repositories={
            repo: RepositoryStatus(
                stored=_counts(overview(store, repo)), freshness=freshness(store, repo)
            )
            for repo in repos
        },
        runs=tuple(
            Run(
                repo=run.repo, started_at=run.started_at, ended_at=run.ended_at, outcome=run.outcome,
                requests=run.requests, not_modified=run.not_modified, remaining=run.remaining,
                stored=run.stored, fault=run.fault,
            )
            for run in runs
        ),
    )  # fmt: skip


def _counts(view: Overview) -> Counts:
    return Counts(
        issues=view.issues, pulls=view.pulls, from_cards=view.from_cards, newest_release=view.newest_release
    )
