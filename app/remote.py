"""The client behind `triage diagnose --url`."""

from __future__ import annotations

import httpx
from pydantic import ValidationError

from app import __version__
from app.errors import ConfigError, ServerError
from app.knowledge.answers import Diagnosis

TIMEOUT_S = 60.0


def diagnose_remotely(
    url: str, log: str, *, vllm_version: str | None = None, transport: httpx.BaseTransport | None = None
) -> Diagnosis:
    """Ask a running server.

    Raises:
        ConfigError: the address is no http(s) address.
        ServerError: it does not answer, refuses, or answers something else.
    """
    if not url.startswith(("http://", "https://")):
        raise ConfigError("--url must be an http:// or https:// address")
    question = {"log": log, **({"vllm_version": vllm_version} if vllm_version else {})}
    try:
        with httpx.Client(timeout=TIMEOUT_S, transport=transport) as client:
            reply = client.post(
                f"{url.rstrip('/')}/api/v1/diagnose", json=question,
                headers={"User-Agent": f"vllm-triage/{__version__}", "Accept": "application/json"},
            )  # fmt: skip
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ServerError(f"{url} does not answer: {type(error).__name__}") from None
    if reply.status_code != httpx.codes.OK:
        raise ServerError(f"{url} refused with {reply.status_code}: {_detail(reply)}")
    try:
        return Diagnosis.model_validate_json(reply.content)
    except ValidationError:
        raise ServerError(f"{url} answered no diagnosis; is it a triage server of this version?") from None


def _detail(reply: httpx.Response) -> str:
    try:
        return str(reply.json()["detail"])[:200]
    except (ValueError, KeyError, TypeError):
        return reply.reason_phrase
