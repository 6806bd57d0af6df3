"""Deliveries on their way into the archive: one thread takes them in the order they came.

GitHub wants an answer soon, and the archive may be busy with a sync. So a delivery is handed in here,
and whoever handed it in need not wait for its end.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import structlog

from app.errors import TriageError
from app.store.session import Store
from app.web.body import MalformedError

WAITING_MAX_BYTES = 100 * 1024 * 1024
"""Deliveries that wait for the archive; thousands of the usual size."""

Outcome = Literal["stored", "seen", "ignored"]

_LOG = structlog.get_logger(__name__)


class TakeDelivery(Protocol):
    """Stores what a delivery brings, as `ingest.webhook.take_delivery` does."""

    def __call__(
        self, store: Store, repos: Sequence[str], event: str, payload: Any, /, *, delivery_id: str
    ) -> Outcome: ...


@dataclass(frozen=True, slots=True)
class Delivery:
    """A delivery whose signature is checked; its body is not read yet."""

    id: str
    event: str
    body: bytes


class BusyError(TriageError):
    """Too many deliveries wait already."""

    status = 503


class Intake:
    """Takes deliveries one after the other, in a thread of its own.

    Args:
        take: stores one; given the event, the payload and `delivery_id`.
        waiting_max: bytes of deliveries that may wait.
    """

    def __init__(self, take: Callable[..., Outcome], *, waiting_max: int = WAITING_MAX_BYTES) -> None:
        self._take = take
        self._waiting_max = waiting_max
        self._free = waiting_max
        self._guard = threading.Lock()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="deliveries")

    def hand_in(self, delivery: Delivery) -> Future[Outcome]:
        """What will have become of the delivery; its failure is logged, too.

        Raises:
            BusyError: too many wait; GitHub shows it as failed, and it can be sent again from there.
        """
        with self._guard:
            if self._free < len(delivery.body):
                raise BusyError("Too many deliveries wait for the database. Send this one again later.")
            self._free -= len(delivery.body)
        try:
            future = self._thread.submit(self._work, delivery)
        except RuntimeError:
            raise BusyError("The server is about to stop. Send this delivery again later.") from None
        future.add_done_callback(lambda done: self._note(delivery, done))
        return future

    def waiting_bytes(self) -> int:
        """How much waits now."""
        return self._waiting_max - self._free

    def close(self) -> None:
        """Take what was handed in, then end the thread."""
        self._thread.shutdown(wait=True)

    def _work(self, delivery: Delivery) -> Outcome:
        try:
            payload = json.loads(delivery.body)
        except (ValueError, RecursionError):
            raise MalformedError("The delivery is not valid JSON.") from None
        return self._take(delivery.event, payload, delivery_id=delivery.id)

    def _note(self, delivery: Delivery, done: Future[Outcome]) -> None:
        with self._guard:
            self._free += len(delivery.body)
        error = done.exception()
        if error is not None:
            reason = error.message if isinstance(error, TriageError) else type(error).__name__
            _LOG.error("delivery_failed", id=delivery.id, event_name=delivery.event, reason=reason)
