"""Rate limits per client or API key, announced in headers and enforced with 429.

Input: the client (`client_of`) and its API key, if any. Output: the response with `RateLimit-Policy` and
`RateLimit` (draft-ietf-httpapi-ratelimit-headers), or 429 with `Retry-After`.
JSON routes, MCP, submitted forms and pages with a query count, as their answers are specific to the caller;
other pages, health checks and webhooks do not. Each process counts separately, so that with N workers a
client gets up to N times the limit, unless all processes and hosts share a Redis.
"""

import hashlib
import hmac
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import structlog
from limits import RateLimitItemPerSecond
from limits.aio.storage import RedisStorage, Storage
from limits.aio.strategies import FixedWindowRateLimiter
from limits.errors import ConfigurationError, StorageError
from pydantic import SecretStr
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.config import NO_LIMIT, RATE, ApiKey
from app.errors import ConfigError, TriageError
from app.web.answers.problems import answer_problem
from app.web.headers import at_start
from app.web.middleware.client import client_of

CLIENTS_MAX = 50_000
"""Open windows, a few hundred bytes each; beyond it all counts are reset."""
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
_TYPE = "urn:vllm-triage:problem:rate-limit"
STORAGE_RETRY_S = 10.0
"""How long a process counts locally after the shared storage failed."""
STORAGE_WAIT_S = 1.0
"""Timeout of the shared storage."""
_HIT = "rate_limit_hit"
_KEY_NAME = "api_key_name"
_ADMIN = "/api/v1/judgements"
_LOG = structlog.get_logger(__name__)
_ANONYMOUS, _KEYED = "anonymous", "api-key"


@dataclass(frozen=True, slots=True)
class Rate:
    """A number of requests per time span."""

    amount: int
    span_s: int

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Parse a setting such as `120/minute`; None means no limit."""
        found = RATE.fullmatch(text)
        return None if text == NO_LIMIT or found is None else cls(int(found[1]), _SECONDS[found[2]])


class RateWindows:
    """Fixed-window counters by key, each window opened by its first hit; based on the monotonic clock.

    Args:
        storage: shared by all processes; while it cannot be reached, this process counts for itself.
    """

    def __init__(self, storage: Storage | None = None) -> None:
        self._open: dict[tuple[str, ...], tuple[float, int]] = {}
        self._shared = FixedWindowRateLimiter(storage) if storage else None
        self._retry_at = 0.0

    async def hit(self, rate: Rate, *key: str) -> tuple[int, int]:
        """Count a request. Return how many remain (-1 if over the limit), and seconds until the reset."""
        if self._shared is None or time.monotonic() < self._retry_at:
            return self.count(rate, *key)
        item = RateLimitItemPerSecond(rate.amount, rate.span_s, namespace="triage")
        try:
            is_free = await self._shared.hit(item, *key)
            stats = await self._shared.get_window_stats(item, *key)
        except StorageError as error:
            self._retry_at = time.monotonic() + STORAGE_RETRY_S
            _LOG.warning(
                "limits_counted_alone", fault=type(error.storage_error).__name__, retry_s=STORAGE_RETRY_S
            )
            return self.count(rate, *key)
        return stats.remaining if is_free else -1, max(1, math.ceil(stats.reset_time - time.time()))

    def count(self, rate: Rate, *key: str) -> tuple[int, int]:
        """Like `hit`, in this process alone."""
        name, now = (str(rate.span_s), *key), time.monotonic()
        ends_at, hits = self._open.get(name, (now, 0))
        if ends_at <= now:
            if len(self._open) >= CLIENTS_MAX:
                self._open = {one: (end, count) for one, (end, count) in self._open.items() if end > now}
            if len(self._open) >= CLIENTS_MAX:
                self._open.clear()
            ends_at, hits = now + rate.span_s, 0
        self._open[name] = ends_at, min(hits + 1, rate.amount)
        return rate.amount - hits - 1, max(1, math.ceil(ends_at - now))


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of an API key, identified by the key's hash."""

    name: str
    digest: bytes
    rate: Rate | None


class LimitRequests:
    """ASGI middleware that counts requests and rejects those over the limit.

    Args:
        anonymous: the rate of clients without a key, such as `120/minute`, or `off`.
        shared: URL of a Redis shared by all processes.
    """

    def __init__(
        self, app: ASGIApp, anonymous: str, keys: Sequence[ApiKey] = (), shared: SecretStr | None = None
    ) -> None:
        self._app = app
        self._anonymous = Rate.parse(anonymous)
        self._holders = tuple(
            Holder(key.name, _digest(key.key.get_secret_value().encode()), Rate.parse(key.rate))
            for key in keys
        )
        self._windows = RateWindows(_storage_at(shared.get_secret_value()) if shared else None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the app with rate-limit headers on its response, or reject the request."""
        if not _is_counted(scope):
            await self._app(scope, receive, send)
            return
        sent = _sent_key(scope) if self._holders else ""
        holder = self._holder(sent)
        app = self._app if holder or not sent else _refuse_key
        if holder:
            scope.setdefault("state", {})[_KEY_NAME] = holder.name
        asker = self._asker(scope, holder)
        if asker is None:
            await app(scope, receive, send)
            return
        policy, key, rate = asker
        hit = partial(self._windows.hit, rate, policy, key)
        scope.setdefault("state", {})[_HIT] = hit
        left, wait_s = await hit()
        headers = {
            "RateLimit-Policy": f'"{policy}";q={rate.amount};w={rate.span_s}',
            "RateLimit": f'"{policy}";r={max(left, 0)};t={wait_s}',
        }
        if left < 0:
            headers["Retry-After"] = str(wait_s)
            detail = (
                f"A client may ask {rate.amount:,} times in {rate.span_s} seconds here. Try again in "
                f"{wait_s} seconds; the operator can hand out API keys for more."
            )
            refusal = answer_problem(Request(scope), 429, detail, kind=_TYPE, headers=headers)
            await refusal(scope, receive, send)
            return
        await app(scope, receive, at_start(send, lambda own: own.update(headers)))

    def _asker(self, scope: Scope, holder: Holder | None) -> tuple[str, str, Rate] | None:
        """Return the policy, the client's key in it, and its rate; None if unlimited."""
        if holder:
            return (_KEYED, holder.name, holder.rate) if holder.rate else None
        return (_ANONYMOUS, client_of(scope), self._anonymous) if self._anonymous else None

    def _holder(self, sent: str) -> Holder | None:
        """Return the holder of the sent key; compares with all keys, to leak no timing."""
        digest = _digest(sent.encode("latin-1"))
        found = [holder for holder in self._holders if hmac.compare_digest(digest, holder.digest)]
        return found[0] if found else None


class SpentError(TriageError):
    """A request costs more than is left of its client's budget."""

    status = 429


async def spend(scope: Scope, count: int) -> None:
    """Count a request as `count` more requests.

    Raises:
        SpentError: the client has fewer left.
    """
    hit = scope.get("state", {}).get(_HIT)
    for _ in range(count if hit else 0):
        left, wait_s = await hit()
        if left < 0:
            raise SpentError(
                f"Each log counts as one request; fewer are left. Try again in {wait_s} seconds."
            )


def key_name(scope: Scope) -> str:
    """Return the name of the request's API key, or an empty string."""
    return str(scope.get("state", {}).get(_KEY_NAME, ""))


def _sent_key(scope: Scope) -> str:
    """Return the request's API key, or an empty string; bearer tokens of admin routes are not API keys."""
    headers = Headers(scope=scope)
    kind, _, token = headers.get("authorization", "").partition(" ")
    is_bearer = kind.lower() == "bearer" and not scope["path"].startswith(_ADMIN)
    return (headers.get("x-api-key") or (token if is_bearer else "")).strip()


async def _refuse_key(scope: Scope, receive: Receive, send: Send) -> None:
    detail = "This API key is not known here: check it, or send none."
    headers = {"WWW-Authenticate": "Bearer"}
    await answer_problem(Request(scope), 401, detail, headers=headers)(scope, receive, send)


def _storage_at(address: str) -> Storage:
    try:
        return RedisStorage(
            f"async+{address}",
            wrap_exceptions=True,
            implementation="redispy",
            socket_connect_timeout=STORAGE_WAIT_S,
            socket_timeout=STORAGE_WAIT_S,
        )
    except ConfigurationError:
        raise ConfigError("TRIAGE_REDIS_URL needs the extra: pip install 'vllm-triage[redis]'") from None


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()


def _is_counted(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] == "OPTIONS":
        return False
    path = scope["path"]
    if path == "/mcp" or path.startswith(("/api/", "/mcp/")):
        return True
    is_read = scope["method"] in {"GET", "HEAD"}
    if path.startswith(("/static/", "/webhooks/")):
        return False
    return not is_read or bool(scope["query_string"])
