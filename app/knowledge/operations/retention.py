"""What is not to be kept for ever goes in time: kept logs, noted webhook deliveries, old sync runs.

Each row carries its own end, so it does not matter which process forgets it, or how many try.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from app.errors import StoreError
from app.store.github.sync_state import purge_deliveries, purge_runs
from app.store.people.kept_logs import purge_kept_logs
from app.store.session import Store

EVERY_S = 3600.0
SURE_AFTER_S = 86_400.0

_LOG = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How many rows went."""

    kept_logs: int
    deliveries: int
    sync_runs: int


def forget_old(store: Store, *, is_sure: bool = False) -> Forgotten:
    """Delete what is past its time; kept logs that are long past it only where the clock `is_sure`."""
    with store.unit_of_work(changes=None) as session:
        forgotten = Forgotten(
            kept_logs=purge_kept_logs(session, datetime.now(UTC), is_sure=is_sure),
            deliveries=purge_deliveries(session),
            sync_runs=purge_runs(session),
        )
    store.leave_no_trace()
    return forgotten


def forget_regularly(store: Store, stop: threading.Event, every_s: float = EVERY_S) -> None:
    """Forget in rounds until stopped, the first at the end of the first pause; a failed one is logged.

    A clock that was wrong when the server began has been set by the end of the first day.
    """
    began = time.monotonic()
    while not stop.wait(every_s):
        try:
            forgotten = forget_old(store, is_sure=time.monotonic() - began > SURE_AFTER_S)
        except StoreError as error:
            _LOG.warning("nothing_forgotten", reason=error.message)
        else:
            if forgotten != Forgotten(0, 0, 0):
                _LOG.info("forgotten", kept_logs=forgotten.kept_logs, sync_runs=forgotten.sync_runs)
