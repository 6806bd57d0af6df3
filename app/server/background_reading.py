"""Background rounds of the operator's models, reading and embeddings, in a separate process.

Among all hosts that share a database one reads at a time, guarded by a reading lock. It is independent of the
sync. Each reply is stored at once, so a round may be killed at any time.
"""

import threading
from collections.abc import Callable
from typing import Any

from app.config import Settings
from app.errors import TriageError
from app.knowledge.indexing.batches import Report
from app.knowledge.operations.embedding import embed_issues
from app.knowledge.operations.model_reading import ReadResult, read_issues
from app.model_reader.client import reader_client
from app.model_reader.embeddings import embedder
from app.server.background_sync import run_round
from app.store.engine.sync_lock import READING, sync_lock
from app.store.session import Store
from app.terminal.events import announce
from app.terminal.progress import progress

PROGRESS_EVERY_S = 60.0


def read_repository(
    settings: Settings, store: Store, repo: str, report: Report, **options: Any
) -> ReadResult:
    """Have issues of a repository read by the configured model. Options are those of `read_issues`."""
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


def reading_round(settings: Settings, store: Store, stop: threading.Event) -> None:
    """Embed and read the new issues of every repository, unless another process is doing so."""
    with sync_lock(store.engine, READING) as held:
        for repo in settings.repo if held else ():
            if settings.embeddings_url is not None and not stop.is_set():
                _quietly(_embed, settings, store, repo, stop)
            if settings.reader_url is not None and not stop.is_set():
                _quietly(_read, settings, store, repo, stop)


_Work = Callable[[Settings, Store, str, threading.Event, Report], str]


def _quietly(work: _Work, settings: Settings, store: Store, repo: str, stop: threading.Event) -> None:
    try:
        with progress(on_line=announce, every_s=PROGRESS_EVERY_S) as report:
            done = work(settings, store, repo, stop, report)
        if done:
            announce(f"{repo}: {done}")
    except TriageError as error:
        announce(f"{repo} waits for the next round: {error.message}")


def _read(settings: Settings, store: Store, repo: str, stop: threading.Event, report: Report) -> str:
    result = read_repository(settings, store, repo, report, stop=stop)
    return result.words if result.asked or result.stopped else ""


def _embed(settings: Settings, store: Store, repo: str, stop: threading.Event, report: Report) -> str:
    with embedder(settings) as client:
        result = embed_issues(store, repo, client, stop=stop, report=report)
    return result.words if result.made else ""


if __name__ == "__main__":
    run_round(reading_round, "reading by the model")
