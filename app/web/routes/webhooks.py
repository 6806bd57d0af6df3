"""`POST /webhooks/github`: receive GitHub's webhook deliveries.

The signature is checked over the raw body, in constant time, before the body is parsed. One thread stores the
deliveries in order of arrival. GitHub expects an answer within seconds, but the database may be busy with a
sync: a delivery not stored within `ANSWER_S` is answered as accepted and stored later. GitHub does not retry
failed deliveries; the next sync fetches missed changes.
"""

import asyncio
import hmac
import json
import re
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Annotated, Literal

import structlog
from fastapi import Depends, Header, Request

from app.errors import NotFoundError, NotTextError, TriageError
from app.web.answers.openapi import api_router, json_body, problems
from app.web.answers.schemas import Taken
from app.web.body import JSON_TYPE, MalformedError, check_structure, media_type_of, read_limited

WAITING_MAX_BYTES = 100 * 1024 * 1024
"""Total size of queued deliveries; room for thousands of the usual size."""

Outcome = Literal["stored", "seen", "ignored"]

_LOG = structlog.get_logger(__name__)


TakeDelivery = Callable[..., Outcome]
"""Stores the content of a delivery: `ingest.webhook.process_delivery`."""


class BusyError(TriageError):
    """Too many deliveries are queued."""

    status = 503


class Intake:
    """Queue that processes deliveries one by one in a background thread."""

    def __init__(self, take: Callable[..., Outcome], *, waiting_max: int = WAITING_MAX_BYTES) -> None:
        self._take = take
        self._waiting_max = waiting_max
        self._free = waiting_max
        self._guard = threading.Lock()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="deliveries")

    def hand_in(self, delivery_id: str, event: str, body: bytes) -> Future[Outcome]:
        """Queue a delivery with a verified signature; return a future of its outcome. Failures are logged.

        Raises:
            BusyError: the queue is full or closing; the delivery can be redelivered from GitHub.
        """
        with self._guard:
            if self._free < len(body):
                raise BusyError("Too many deliveries wait for the database. Send this one again later.")
            self._free -= len(body)
        try:
            future = self._thread.submit(self._process, delivery_id, event, body)
        except RuntimeError:
            raise BusyError("The server is about to stop. Send this delivery again later.") from None
        future.add_done_callback(partial(self._on_done, delivery_id, event, len(body)))
        return future

    def waiting_bytes(self) -> int:
        """Return the total size of queued deliveries, in bytes."""
        return self._waiting_max - self._free

    def close(self) -> None:
        """Process the queued deliveries, then stop the thread."""
        self._thread.shutdown(wait=True)

    def _process(self, delivery_id: str, event: str, body: bytes) -> Outcome:
        try:
            text = body.decode()
            check_structure(text)
            payload = json.loads(text)
        except (ValueError, RecursionError):
            raise MalformedError("The delivery is not valid JSON.") from None
        return self._take(event, payload, delivery_id=delivery_id)

    def _on_done(self, delivery_id: str, event: str, size: int, done: Future[Outcome]) -> None:
        with self._guard:
            self._free += size
        error = done.exception()
        if error is not None:
            reason = error.message if isinstance(error, TriageError) else type(error).__name__
            _LOG.error("delivery_failed", id=delivery_id, event_name=event, reason=reason)


BODY_LIMIT_BYTES = 25 * 1024 * 1024
"""GitHub's maximum delivery size."""
ANSWER_S = 0.7
"""Seconds that an answer waits for the delivery to be stored."""

_SIGNATURE = re.compile(r"sha256=[0-9a-f]{64}")

router = api_router("service", prefix="/webhooks")


class SignatureError(TriageError):
    """A delivery with a missing or wrong signature."""

    status = 401


async def read_signed(request: Request) -> bytes:
    """Return the raw body after verifying its signature."""
    secret = request.app.state.settings.webhook_secret
    if secret is None:
        raise NotFoundError("Webhooks are not set up here: the operator sets TRIAGE_WEBHOOK_SECRET.")
    signature = request.headers.get("x-hub-signature-256", "")
    if not _SIGNATURE.fullmatch(signature):
        raise SignatureError("X-Hub-Signature-256 is missing or is no signature. Set the webhook's secret.")
    refusal = f"The delivery is over the limit of {BODY_LIMIT_BYTES >> 20} MiB."
    body = await read_limited(request, BODY_LIMIT_BYTES, refusal)
    proof = hmac.digest(secret.get_secret_value().encode(), body, "sha256").hex()
    if not hmac.compare_digest(signature, f"sha256={proof}"):
        raise SignatureError("X-Hub-Signature-256 is not this body's. Compare the secrets.")
    if media_type_of(request) != JSON_TYPE:
        raise NotTextError(f"Set the webhook's content type to {JSON_TYPE}.")
    return body


@router.post(
    "/github",
    status_code=202,
    operation_id="take_delivery",
    summary="Receive a GitHub webhook delivery",
    responses=problems(400, 401, 404, 413, 415),
    openapi_extra=json_body({"type": "object"}),
)
async def post_delivery(
    request: Request,
    body: Annotated[bytes, Depends(read_signed)],
    event: Annotated[str, Header(alias="x-github-event", pattern=r"^[a-z_]+$", max_length=60)],
    delivery_id: Annotated[str, Header(alias="x-github-delivery", pattern=r"^[\x21-\x7e]+$", max_length=64)],
) -> Taken:
    """Store issues, comments, pull requests and releases of the configured repositories.

    Other events, other repositories and repeated deliveries are accepted and ignored.
    """
    intake: Intake = request.app.state.intake
    taking = asyncio.wrap_future(intake.hand_in(delivery_id, event, body))
    taking.add_done_callback(lambda done: done.cancelled() or done.exception())  # logged by `Intake`
    done, _ = await asyncio.wait({taking}, timeout=ANSWER_S)
    return Taken(status=taking.result() if done else "accepted")
