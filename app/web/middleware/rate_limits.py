"""How often a client may ask: counted in this process, stated in headers, refused with 429.

In: who asks (`visitor_of`), and the API key it may send. Out: the answer with `RateLimit-Policy` and
`RateLimit` (draft-ietf-httpapi-ratelimit-headers), or 429 with `Retry-After`.
Counted are the JSON routes, MCP and forms that are sent; pages, health and webhooks are not. Each process
counts alone: with N workers a client has up to N times as much; one limit for all belongs in the proxy.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from limits import RateLimitItem, parse
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.config import NO_LIMIT, ApiKey
from app.web.answers.problems import answer_problem
from app.web.headers import at_start
from app.web.middleware.client import visitor_of

CLIENTS_MAX = 50_000
"""Clients counted at a time, a few hundred bytes each; beyond it all counts begin anew."""
_TYPE = "urn:vllm-triage:problem:rate-limit"
_ANONYMOUS, _KEYED = "anonymous", "api-key"


@dataclass(frozen=True, slots=True)
class Holder:
    """A client with an API key, known by the key's hash."""

    name: str
    digest: bytes
    rate: RateLimitItem | None


class LimitRequests:
    """ASGI middleware that counts requests and refuses those that are too many.

    Args:
        app: what follows.
        anonymous: the rate of clients without a key, such as `120/minute`, or `off`.
        keys: keys with rates of their own.
    """

    def __init__(self, app: ASGIApp, anonymous: str, keys: Sequence[ApiKey] = ()) -> None:
        self._app = app
        self._anonymous = _rate(anonymous)
        self._holders = tuple(
            Holder(key.name, _digest(key.key.get_secret_value().encode()), _rate(key.rate)) for key in keys
        )
        self._counts = MemoryStorage()
        self._limiter = FixedWindowRateLimiter(self._counts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on with the state of its client's budget, or refuse it."""
        asker = self._asker(scope) if _is_counted(scope) else None
        if asker is None:
            await self._app(scope, receive, send)
            return
        policy, key, rate = asker
        if len(self._counts.storage) >= CLIENTS_MAX:
            self._counts.reset()
        allowed = self._limiter.hit(rate, policy, key)
        stats = self._limiter.get_window_stats(rate, policy, key)
        wait_s = max(1, math.ceil(stats.reset_time - time.time()))
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
        await self._app(scope, receive, at_start(send, lambda own: own.update(headers)))

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
        """Who holds the key that is sent; all are compared, so that the time reveals nothing."""
        headers = Headers(scope=scope)
        kind, _, token = headers.get("authorization", "").partition(" ")
        sent = headers.get("x-api-key") or (token if kind.lower() == "bearer" else "")
        digest = _digest(sent.strip().encode("latin-1"))
        found = [holder for holder in self._holders if hmac.compare_digest(digest, holder.digest)]
        return found[0] if found else None


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
