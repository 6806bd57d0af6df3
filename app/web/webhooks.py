"""`POST /webhooks/github`: GitHub tells of a change as it happens.

The signature is checked over the raw body, in constant time, before a byte of it is read as anything.
A delivery is answered within a second: when the archive is busy with a sync it is accepted, and stored as
soon as the archive is free. GitHub never sends one again by itself; the next sync brings what was missed.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Request

from app.errors import NotFoundError, NotTextError, TooLargeError, TriageError
from app.web.body import JSON_TYPE
from app.web.deps import settings as get_settings
from app.web.intake import Delivery, Intake
from app.web.openapi import problems
from app.web.schemas import Taken

BODY_LIMIT_BYTES = 25 * 1024 * 1024
"""GitHub sends no delivery that is larger."""
ANSWER_S = 0.7
"""How long an answer waits for the archive."""

_SIGNATURE = re.compile(r"sha256=[0-9a-f]{64}")

router = APIRouter(prefix="/webhooks")


class SignatureError(TriageError):
    """A delivery without a signature, or with that of another body or secret."""

    status = 401


async def read_signed(request: Request) -> bytes:
    """The raw body, once its signature is proved.

    Raises:
        NotFoundError: no secret is set, so nothing can be proved.
        SignatureError: no signature, or not this body's.
        TooLargeError: over the limit; told before the rest is read.
        NotTextError: signed, but sent as a form.
    """
    secret = (await get_settings(request)).webhook_secret
    if secret is None:
        raise NotFoundError("Webhooks are not set up here: the operator sets TRIAGE_WEBHOOK_SECRET.")
    signature = request.headers.get("x-hub-signature-256", "")
    if not _SIGNATURE.fullmatch(signature):
        raise SignatureError("X-Hub-Signature-256 is missing or is no signature. Set the webhook's secret.")
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and (len(declared) > 15 or int(declared) > BODY_LIMIT_BYTES):
        raise _too_large()
    proof = hmac.new(secret.get_secret_value().encode(), digestmod=hashlib.sha256)
    body = bytearray()
    async for chunk in request.stream():
        if len(body) + len(chunk) > BODY_LIMIT_BYTES:
            raise _too_large()
        body += chunk
        proof.update(chunk)
    if not hmac.compare_digest(signature, f"sha256={proof.hexdigest()}"):
        raise SignatureError("X-Hub-Signature-256 is not this body's. Compare the secrets.")
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON_TYPE:
        raise NotTextError(f"Set the webhook's content type to {JSON_TYPE}.")
    return bytes(body)


def _too_large() -> TooLargeError:
    return TooLargeError(f"The delivery is over the limit of {BODY_LIMIT_BYTES >> 20} MiB.")


@router.post(
    "/github",
    status_code=202,
    operation_id="take_delivery",
    summary="A signed delivery of a GitHub webhook",
    responses=problems(400, 401, 404, 413, 415, 422, 503),
    openapi_extra={"requestBody": {"required": True, "content": {JSON_TYPE: {"schema": {"type": "object"}}}}},
)
async def post_delivery(
    request: Request,
    body: Annotated[bytes, Depends(read_signed)],
    event: Annotated[str, Header(alias="x-github-event", pattern=r"^[a-z_]+$", max_length=60)],
    delivery_id: Annotated[str, Header(alias="x-github-delivery", pattern=r"^[\x21-\x7e]+$", max_length=64)],
) -> Taken:
    """Store issues, comments, pull requests and releases of the configured repositories.

    Other events, other repositories and deliveries that came before are accepted, and nothing is done.
    """
    intake: Intake = request.app.state.intake
    taking = asyncio.wrap_future(intake.hand_in(Delivery(delivery_id, event, body)))
    taking.add_done_callback(lambda done: done.cancelled() or done.exception())  # it is logged already
    done, _ = await asyncio.wait({taking}, timeout=ANSWER_S)
    return Taken(status=taking.result() if done else "accepted")
