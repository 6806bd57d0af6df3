"""How often a client may ask: counted in this process, told in headers, refused with 429.

In: who asks (`visitor`), and the API key it may send. Out: the answer with `RateLimit-Policy` and `RateLimit`
(draft-ietf-httpapi-ratelimit-headers), or 429 with `Retry-After`.
Counted are the JSON routes, MCP and forms that are sent; pages, health and webhooks are not. Each process
counts alone: with N workers a client has up to N times as much; one limit for all belongs into the proxy.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from limits import RateLimitItem, parse
from limits.storage import Storage
from limits.strategies import FixedWindowRateLimiter
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.config import NO_LIMIT, ApiKey
from app.web.answers.problems import answer_problem
from app.web.middleware.client import visitor_of
from app.web.middleware.headers import at_start

CLIENTS_MAX = 50_000
"""Clients counted at a time, a few hundred bytes each; beyond it the oldest counts are forgotten."""
_SWEPT_AT_ONCE = 4
_ANONYMOUS, _KEYED = "anonymous", "api-key"


class Counts(Storage):
    """Counters in memory with an end each, not more than `clients_max`.

    The library's own memory starts a thread for its sweeps and has no bound.
    """

    STORAGE_SCHEME = None

    def __init__(self, clients_max: int = CLIENTS_MAX, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._counts: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._clients_max = clients_max
        self._clock = clock

    @property
    def base_exceptions(self) -> type[Exception]:
        return ValueError

    def incr(self, key: str, expiry: float, amount: int = 1) -> int:
        """Count `amount` more; the first count of a key begins its window of `expiry` seconds."""
        now = self._clock()
        count, ends = self._counts.get(key, (0, 0.0))
        if ends <= now:
            self._counts.pop(key, None)
            self._sweep(now)
            count, ends = 0, now + expiry
        self._counts[key] = (count + amount, ends)
        return count + amount

    def get(self, key: str) -> int:
        """What is counted of a key in its window."""
        count, ends = self._counts.get(key, (0, 0.0))
        return count if ends > self._clock() else 0

    def get_expiry(self, key: str) -> float:
        """When the key's window ends, in seconds since the epoch."""
        return max(self._counts.get(key, (0, 0.0))[1], self._clock())

    def check(self) -> bool:
        return True

    def reset(self) -> int:
        count = len(self._counts)
        self._counts.clear()
        return count

    def clear(self, key: str) -> None:
        self._counts.pop(key, None)

    def _sweep(self, now: float) -> None:
        """Forget counts that ended: a few of the oldest each time a new one comes, all that are too many."""
        for _ in range(_SWEPT_AT_ONCE):
            oldest = next(iter(self._counts), None)
            if oldest is None or self._counts[oldest][1] > now:
                break
            del self._counts[oldest]
        while len(self._counts) >= self._clients_max:
            self._counts.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Holder:
    """A client with an API key, known by the key's hash."""

    name: str
    digest: bytes
    rate: RateLimitItem | None


class RateLimits:
    """ASGI middleware that counts requests and refuses those that are too many.

    Args:
        app: what follows.
        anonymous: the rate of clients without a key, such as `120/minute`, or `off`.
        keys: keys with rates of their own.
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        app: ASGIApp,
        anonymous: str,
        keys: Sequence[ApiKey] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._app = app
        self._clock = clock
        self._anonymous = _rate(anonymous)
        self._holders = tuple(
            Holder(key.name, _digest(key.key.get_secret_value().encode()), _rate(key.rate)) for key in keys
        )
        self._limiter = FixedWindowRateLimiter(Counts(clock=clock))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on with the state of its client's budget, or refuse it."""
        asker = self._asker(scope) if _is_counted(scope) else None
        if asker is None:
            await self._app(scope, receive, send)
            return
        policy, key, rate = asker
        allowed = self._limiter.hit(rate, policy, key)
        stats = self._limiter.get_window_stats(rate, policy, key)
        wait_s = max(1, math.ceil(stats.reset_time - self._clock()))
        headers = {
            "RateLimit-Policy": f'"{policy}";q={rate.amount};w={rate.get_expiry()}',
            "RateLimit": f'"{policy}";r={stats.remaining};t={wait_s}',
        }
        if not allowed:
            headers["Retry-After"] = str(wait_s)
            detail = (
                f"A client may ask {rate.amount:,} times in {rate.get_expiry()} seconds here. Try again in "
                f"{wait_s} seconds; the operator can hand out API keys for more."
            )
            refusal = answer_problem(Request(scope), 429, detail, kind=_TYPE, headers=headers)
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, at_start(send, lambda told: told.update(headers)))

    def _asker(self, scope: Scope) -> tuple[str, str, RateLimitItem] | None:
        """The policy, the client's key in it and its rate; None for who has no limit."""
        holder = self._holder(scope) if self._holders else None
        if holder:
            return (_KEYED, holder.name, holder.rate) if holder.rate else None
        visitor = visitor_of(scope)
        if visitor.is_local or self._anonymous is None:
            return None
        return _ANONYMOUS, visitor.key, self._anonymous

    def _holder(self, scope: Scope) -> Holder | None:
        """Who holds the key that is sent; all are compared, so that the time tells nothing."""
        sent = b""
        for name, value in scope["headers"]:
            if name == b"x-api-key":
                sent = value.strip()
            elif name == b"authorization" and value[:7].lower() == b"bearer " and not sent:
                sent = value[7:].strip()
        if not sent:
            return None
        digest = _digest(sent)
        found = [holder for holder in self._holders if hmac.compare_digest(digest, holder.digest)]
        return found[0] if found else None


_TYPE = "urn:vllm-triage:problem:rate-limit"


def _rate(text: str) -> RateLimitItem | None:
    return None if text == NO_LIMIT else parse(text)


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()


def _is_counted(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] == "OPTIONS":
        return False
    path = scope["path"]
    if path == "/mcp" or path.startswith(("/api/", "/mcp/")):
        return True
    return scope["method"] not in {"GET", "HEAD"} and not path.startswith("/webhooks/")
