"""The client behind `triage diagnose --url` and `triage comment --url`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import httpx
from pydantic import ValidationError

from app import __version__
from app.errors import ConfigError, ServerError
from app.knowledge.diagnosis.shapes import Diagnosis

if TYPE_CHECKING:
    from app.knowledge.diagnosis.diagnose import LogQuestion

CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 60.0
_TIMEOUT = httpx.Timeout(ANSWER_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)


def diagnose_remotely(
    url: str,
    log: str,
    *,
    transport: httpx.BaseTransport | None = None,
    read_by_model: bool = False,
    **question: Unpack[LogQuestion],
) -> Diagnosis:
    """Diagnose a log on a running server, which searches its own repositories; `repos` is not sent.

    Raises:
        ConfigError: not an http(s) URL.
        ServerError: no response, an error status, or an invalid response.
    """
    if not url.startswith(("http://", "https://")):
        raise ConfigError("the server (--url, or TRIAGE_URL) must be an http:// or https:// address")
    hints = {**question, "exclude": sorted(question.get("exclude", ())), "read_by_model": read_by_model}
    sent = {name: value for name, value in hints.items() if value and name != "repos"}
    try:
        with httpx.Client(timeout=_TIMEOUT, transport=transport) as client:
            reply = client.post(
                f"{url.rstrip('/')}/api/v1/diagnose",
                json={"log": log, **sent},
                headers={"User-Agent": f"vllm-triage/{__version__}", "Accept": "application/json"},
            )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ServerError(f"{url} does not answer: {_silence(error)}") from None
    if reply.is_redirect:
        raise ServerError(f"{url} has moved: ask {reply.headers.get('location', 'its new address')[:200]}")
    if reply.status_code != httpx.codes.OK:
        raise ServerError(f"{url} refused with {reply.status_code}: {_detail(reply)}")
    try:
        return Diagnosis.model_validate_json(reply.content)
    except ValidationError:
        raise ServerError(f"{url} answered no diagnosis; is it a triage server of this version?") from None


def _silence(error: Exception) -> str:
    """Describe why there was no response, and what may help."""
    if isinstance(error, httpx.ConnectTimeout):
        return (
            f"no connection within {CONNECT_TIMEOUT_S:.0f} s; is the address right, and reachable from here?"
        )
    if isinstance(error, httpx.TimeoutException):
        return f"nothing within {ANSWER_TIMEOUT_S:.0f} s; try again, or cut the start of the log"
    if isinstance(error, httpx.ConnectError):
        return "no connection; is the server running there?"
    return type(error).__name__


def _detail(reply: httpx.Response) -> str:
    try:
        detail = str(reply.json()["detail"])[:200]
    except (ValueError, KeyError, TypeError):
        detail = reply.reason_phrase
    wait = reply.headers.get("retry-after", "")
    is_missing = reply.status_code == 429 and wait.isdigit() and "Try again" not in detail
    return f"{detail} Try again in {wait} s." if is_missing else detail
