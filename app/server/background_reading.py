"""Reading by the team's own language model, beside a server: in rounds, in a process of its own.

However many hosts share a database, one reads at a time: whoever holds its reading lock. A sync never waits
for it, nor it for a sync; what was answered is kept at once, so a round may be ended at any time.
"""

from __future__ import annotations

import sys
import threading
from contextlib import closing

from app.config import Settings, load_settings
from app.errors import TriageError
from app.knowledge.operations.model_reading import read_issues
from app.model_reader.client import ReaderClient
from app.server.background_sync import run_until_end_of_input
from app.store.engine.sync_lock import READING, sync_lock
from app.store.schema import check_current
from app.store.session import Store, open_store
from app.terminal.events import announce, set_up_logging
from app.terminal.progress import progress

PROGRESS_EVERY_S = 60.0


def reader_client(settings: Settings) -> ReaderClient:
    """A client for the configured server; there must be one."""
    key = settings.reader_key.get_secret_value() if settings.reader_key else None
    return ReaderClient(
        settings.reader_url or "", settings.reader_model, key, parallel=settings.reader_parallel
    )


def reading_round(settings: Settings, store: Store, stop: threading.Event) -> None:
    """Read what is new in every repository, unless another process does just now."""
    with sync_lock(store.engine, READING) as held:
        if not held:
            return
        for repo in settings.repo:
            if stop.is_set():
                return
            try:
                with (
                    reader_client(settings) as client,
                    progress(tell=announce, every_s=PROGRESS_EVERY_S) as report,
                ):
                    result = read_issues(
                        store,
                        repo,
                        client,
                        tokens_per_day=settings.reader_tokens_per_day,
                        parallel=settings.reader_parallel,
                        stop=stop,
                        report=report,
                    )
                if result.asked or result.stopped:
                    announce(f"{repo}: {result.words}")
            except TriageError as error:
                announce(f"{repo} was not read by the model: {error.message}")


def main() -> None:
    """What the server starts: one round with the settings of the environment."""

    def one_round() -> None:
        settings = load_settings()
        set_up_logging(settings.log_level, settings.log_format)
        with closing(open_store(settings.database_url)) as store:
            check_current(store)
            reading_round(settings, store, threading.Event())

    try:
        run_until_end_of_input(one_round)
    except TriageError as error:
        announce(f"reading by the model could not begin: {error.message}")
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
