"""The rounds of background work, each run by a process of its own: the sync, and the operator's models.

Each kind of round has a lock of its own: among all processes and hosts that share a database one syncs and
one reads and embeds. A sync on demand waits a little for the lock and then runs without it, which is safe.
Rows and replies are stored at once, so a round may be killed at any time.

    python -m app.server.rounds sync|reading
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import structlog

from app.config import Settings, load_settings
from app.errors import TriageError, UnreachableError
from app.knowledge.freshness import overview
from app.knowledge.operations.embedding import Embedded, embed_issues
from app.knowledge.operations.model_reading import ReadResult, read_issues
from app.knowledge.operations.retention import forget_old
from app.model_reader.client import reader_client
from app.model_reader.embeddings import embedder
from app.store.engine.sync_lock import READING, sync_holder, sync_lock
from app.store.records import Report
from app.store.schema import check_current
from app.store.session import Store, open_store
from app.terminal import say
from app.terminal.events import announce, set_up_logging
from app.terminal.progress import progress
from ingest.github.client import MAX_WAIT_S, GitHubClient, quiet_retries
from ingest.sync.run import SyncResult
from ingest.sync.sync import sync

BACKGROUND_WAIT_S = 60.0
"""A background sync does not wait for an exhausted rate limit to reset; the next round continues."""
TURN_WAIT_S = 60.0
"""How long a sync on demand waits for another: most end within a minute, a first one within the hour."""

PROGRESS_EVERY_S, READING_PROGRESS_EVERY_S = 15.0, 60.0
"""Interval of progress lines, of a sync and of the models."""
NICENESS = 10

LOG = structlog.get_logger(__name__)


def github_client(settings: Settings, *, patient: bool = True, url: str | None = None) -> GitHubClient:
    """Return a client for the configured GitHub; if not `patient`, with a short wait for rate limits."""
    token = settings.github_token.get_secret_value() if settings.github_token else None
    wait_s = MAX_WAIT_S if patient else BACKGROUND_WAIT_S
    quiet_retries()
    return GitHubClient(url or settings.github_api_url, token, max_wait_s=wait_s)


@contextmanager
def turn_to_sync(store: Store, wait_s: float = TURN_WAIT_S) -> Iterator[None]:
    """Run the `with` block once no other sync is running, or after `wait_s` at the latest."""

    def announce(holder: str) -> None:
        say(f"another sync is running ({holder}): waiting up to {wait_s:.0f} s for its end")

    with sync_lock(store.engine, wait_s=wait_s, on_wait=announce) as held:
        if not held:
            say("it is still running: going on beside it; nothing is lost, but GitHub is asked twice")
        yield


def sync_round(settings: Settings, store: Store) -> None:
    """Sync every repository, unless another process is doing so; GitHub's errors are recorded in the runs."""
    with sync_lock(store.engine) as held:
        if not held:
            holder = sync_holder(store.engine) or "just ended"
            announce(f"this round is left to the sync that is running ({holder})")
            return
        for repo in settings.repo:
            sync_quietly(settings, store, repo)
        forget_old(store)


def sync_quietly(settings: Settings, store: Store, repo: str) -> None:
    """Sync a repository and print the outcome; a failure never stops the server."""
    try:
        announce(f"syncing {repo}: newest issues first, every page is stored at once")
        with (
            github_client(settings, patient=False) as client,
            progress(lambda: client.limits.remaining, on_line=announce, every_s=PROGRESS_EVERY_S) as report,
        ):
            result = sync(store, client, repo, report=report)
        announce(outcome_line(result, store, serving=True))
    except TriageError as error:
        announce(f"sync of {repo} failed: {error.message}")


def outcome_line(result: SyncResult, store: Store, *, serving: bool = False) -> str:
    """Describe a sync's result in one line; with `serving`, for the operator of a running server."""
    figures = f"requests {result.requests}, not modified {result.not_modified}"
    if result.remaining is not None:
        figures += f", remaining {result.remaining}"
    if result.error is None:
        stored = f"{result.issues} issues and pull requests, {result.comments} comments"
        return f"synced {result.repo}: {stored}, {result.releases} releases; {figures}"
    view = overview(store, result.repo)
    if isinstance(result.error, UnreachableError):
        if not serving:
            return f"{result.error.message}; {view.issues:,} issues were stored before"
        what = "the starter set" if view.is_starter_only else "what was stored before"
        return f"GitHub could not be reached: serving {what} ({view.issues} issues) until the next sync."
    return f"sync of {result.repo} stopped: {result.error.message}. What was fetched is stored; {figures}"


def reading_round(settings: Settings, store: Store) -> None:
    """Embed and read the new issues of every repository, unless another process is doing so."""
    with sync_lock(store.engine, READING) as held:
        for repo in settings.repo if held else ():
            for work in (embed_repository, read_repository):
                try:
                    with progress(on_line=announce, every_s=READING_PROGRESS_EVERY_S) as report:
                        done = work(settings, store, repo, report)
                    if done is not None and done.is_news:
                        announce(f"{repo}: {done.words}")
                except TriageError as error:
                    announce(f"{repo} waits for the next round: {error.message}")


def embed_repository(
    settings: Settings, store: Store, repo: str, report: Report, **options: Any
) -> Embedded | None:
    """Have vectors made by the configured model; None without one. Options are those of `embed_issues`."""
    if settings.embeddings_url is None:
        return None
    with embedder(settings) as client:
        return embed_issues(store, repo, client, report=report, **options)


def read_repository(
    settings: Settings, store: Store, repo: str, report: Report, **options: Any
) -> ReadResult | None:
    """Have issues read by the configured model; None if there is none. Options are those of `read_issues`."""
    if settings.reader_url is None:
        return None
    with reader_client(settings, parallel=settings.reader_parallel) as client:
        return read_issues(
            store,
            repo,
            client,
            tokens_per_day=settings.reader_tokens_per_day,
            parallel=settings.reader_parallel,
            report=report,
            **options,
        )


def run_round(work: Callable[[Settings, Store], None], name: str) -> None:
    """Run one round and exit; the main function of the separate low-priority process.

    The round is interrupted when stdin closes. Exit code 0: every repository's run says how it ended.
    """
    os.nice(NICENESS)
    threading.Thread(target=_interrupt_at_end_of_input, name="input", daemon=True).start()
    try:
        settings = load_settings()
        set_up_logging(settings.log_level, settings.log_format)
        with closing(open_store(settings.database_url)) as store:
            check_current(store)  # a newer program may have migrated it since the server began
            work(settings, store)
    except TriageError as error:
        announce(f"{name} failed: {error.message}")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        LOG.info("round_stopped")
    except Exception:
        LOG.exception("round_failed")
        sys.exit(1)


def _interrupt_at_end_of_input() -> None:
    """Interrupt the main thread when stdin closes."""
    with suppress(OSError):
        while os.read(0, 1):
            pass
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    if sys.argv[1:] == ["reading"]:
        run_round(reading_round, "reading by the model")
    else:
        run_round(sync_round, "the sync")
