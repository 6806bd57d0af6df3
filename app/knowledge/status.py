"""What `triage status` tells: what is stored, how fresh it is, where each stream stands, the newest runs."""

from __future__ import annotations

from collections.abc import Sequence

from app.extract.facts import Frozen
from app.knowledge.freshness import Freshness, freshness
from app.knowledge.overview import Overview, overview
from app.store.records import SyncRunRecord
from app.store.session import Store
from app.store.sync_lock import sync_holder
from app.store.sync_state import last_runs

RUNS = 5


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
    runs: tuple[SyncRunRecord, ...]


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
        runs=tuple(runs),
    )  # fmt: skip


def _counts(view: Overview) -> Counts:
    return Counts(
        issues=view.issues, pulls=view.pulls, from_cards=view.from_cards, newest_release=view.newest_release
    )
