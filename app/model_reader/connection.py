"""Base client of model servers with an OpenAI-compatible API, such as vLLM: model listing, and retries.

Transient errors (no connection, 408, 429, 5xx, invalid JSON) are retried with growing delays; a server that
rejects all requests is an error at once. No redirect is followed, so texts go only to the operator's URL.
"""

import json
import threading
import time
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import httpx
import stamina

from app import __version__
from app.errors import ReaderError

BODY_LIMIT_BYTES = 4 << 20
CONNECT_S = 8.0
DEADLINE_S = 600.0
"""Timeout of a whole response, even if it trickles in."""
ATTEMPTS = 6
WAIT_MAX_S = 60.0
_PASSING = frozenset({408, 409, 425, 429})
_USELESS = frozenset({401, 403, 404, 405})


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A served model; `identity` also distinguishes different weights served under the same name."""

    name: str
    identity: str
    tokens_max: int | None


class _TransientError(Exception):
    """A transient error; `wait_s` is the delay requested by the server."""

    def __init__(self, fault: str, wait_s: float | None = None) -> None:
        super().__init__(fault)
        self.wait_s = wait_s


class ModelServer:
    """Thread-safe client of one server. Use it in a `with` block.

    Args:
        url: the server's URL, with or without `/v1`.
        model: name of the served model; None for the first one listed.
        wait_initial_s: delay before the second attempt; doubled after each further one.
    """

    name: ClassVar[str]
    """The server's name in messages."""
    variables: ClassVar[str]
    """The settings that configure it, for messages."""

    def __init__(
        self,
        url: str,
        model: str | None = None,
        key: str | None = None,
        *,
        parallel: int = 1,
        wait_initial_s: float = 1.0,
        attempts: int = ATTEMPTS,
        deadline_s: float = DEADLINE_S,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._model = model
        self._wait_initial_s = wait_initial_s
        self._attempts = attempts
        self._deadline_s = deadline_s
        self._was_lost = threading.Event()
        stamina.instrumentation.set_on_retry_hooks(())  # they would log the text that was sent
        headers = {"User-Agent": f"vllm-triage/{__version__}"}
        self._http = httpx.Client(
            base_url=url.removesuffix("/").removesuffix("/v1") + "/v1/",
            headers=headers | ({"Authorization": f"Bearer {key}"} if key else {}),
            timeout=httpx.Timeout(deadline_s, connect=min(CONNECT_S, deadline_s)),
            follow_redirects=False,
            limits=httpx.Limits(max_connections=parallel + 1),
            transport=transport,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def served_model(self) -> ServedModel:
        """Return the model that the server serves now.

        Raises:
            ReaderError: the server cannot be reached, or does not serve the model.
        """
        found = self._request("models", None, attempts=min(self._attempts, 3))[1].get("data")
        rows = [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
        names = [str(row.get("id")) for row in rows]
        if not names or (self._model is not None and self._model not in names):
            wanted = f"no model {self._model!r}" if self._model and names else "no model at all"
            listed = ", ".join(name[:60] for name in names[:5])
            raise ReaderError(f"{self.name} serves {wanted}" + (f"; it lists {listed}" if listed else ""))
        row = rows[names.index(self._model) if self._model else 0]
        name, root = str(row["id"]), row.get("root")
        limit = row.get("max_model_len")
        identity = f"{name} ({root})" if isinstance(root, str) and root != name else name
        return ServedModel(name, identity[:200], limit if isinstance(limit, int) and limit > 0 else None)

    def _is_other(self, model: ServedModel) -> bool:
        """True if the server came back after a lost connection with another model under the same name."""
        if not self._was_lost.is_set():
            return False
        is_other = self.served_model().identity != model.identity
        if not is_other:
            self._was_lost.clear()
        return is_other

    def _request(
        self, path: str, body: dict[str, Any] | None, *, attempts: int
    ) -> tuple[int, dict[str, Any]]:
        def is_transient(error: Exception) -> bool | float:
            if not isinstance(error, _TransientError):
                return False
            return True if error.wait_s is None else min(error.wait_s, WAIT_MAX_S)

        again = stamina.retry(
            on=is_transient,
            attempts=attempts,
            timeout=None,
            wait_initial=self._wait_initial_s,
            wait_max=WAIT_MAX_S,
            wait_jitter=self._wait_initial_s / 2,
        )
        try:
            return again(self._request_once)(path, body)
        except _TransientError as error:
            raise ReaderError(f"{self.name} does not answer: {error}") from None

    def _request_once(self, path: str, body: dict[str, Any] | None) -> tuple[int, dict[str, Any]]:
        """Make one request and return status and JSON; errors that a retry may solve are transient ones."""
        try:
            request = self._http.build_request("POST" if body else "GET", path, json=body)
            reply = self._http.send(request, stream=True)
            try:
                content = self._content(reply)
            finally:
                reply.close()
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            self._was_lost.set()
            raise _TransientError(type(error).__name__) from None
        status = reply.status_code
        if status in _PASSING or status >= 500:
            raise _TransientError(f"status {status}", _asked_wait_s(reply))
        if status in _USELESS or 300 <= status < 400:
            raise ReaderError(f"{self.name} refuses /v1/{path} with {status}: look at {self.variables}")
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise _TransientError("an answer that is no JSON object")
        return status, found

    def _content(self, reply: httpx.Response) -> bytes:
        pieces, size, until = [], 0, time.monotonic() + self._deadline_s
        for piece in reply.iter_bytes():
            size += len(piece)
            if size > BODY_LIMIT_BYTES:
                raise _TransientError(f"an answer of more than {BODY_LIMIT_BYTES >> 20} MiB")
            if time.monotonic() > until:
                raise _TransientError(f"an answer that takes more than {self._deadline_s:.1f} s")
            pieces.append(piece)
        return b"".join(pieces)


def _asked_wait_s(reply: httpx.Response) -> float | None:
    value = reply.headers.get("Retry-After", "")
    return float(value) if value.isdigit() else None


def fault_of(found: dict[str, Any]) -> str:
    """A server's own words on a refusal, short and on one line."""
    error = found.get("error", found)
    words = error.get("message", "") if isinstance(error, dict) else error
    return "".join(c for c in " ".join(str(words).split()) if c.isprintable())[:200]
