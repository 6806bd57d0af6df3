"""How often a client may ask: counted in this process, stated in headers, refused with 429.

In: who asks (`client_of`), and the API key it may send. Out: the answer with `RateLimit-Policy` and
`RateLimit` (draft-ietf-httpapi-ratelimit-headers), or 429 with `Retry-After`.
Counted are the JSON routes, MCP, forms that are sent, and pages with a query, which are made for one caller;
other pages, health and webhooks are not. Each process counts alone: with N workers a client has up to N times
as much; one limit for all belongs in the proxy.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.config import NO_LIMIT, RATE, ApiKey
from app.web.answers.problems import answer_problem
from app.web.headers import at_start
from app.web.middleware.client import client_of

CLIENTS_MAX = 50_000
"""Windows open at a time, a few hundred bytes each; beyond it all counts begin anew."""
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
_TYPE = "urn:vllm-triage:problem:rate-limit"
_ANONYMOUS, _KEYED = "anonymous", "api-key"


@dataclass(frozen=True, slots=True)
class Rate:
    """So many requests in a span of time."""

    amount: int
    span_s: int

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """What a setting such as `120/minute` says; None for no limit."""
        found = RATE.fullmatch(text)
        return None if text == NO_LIMIT or found is None else cls(int(found[1]), _SECONDS[found[2]])


class RateWindows:
    """Counts by key, each in a window of time that its first hit opens; the machine's date plays no part."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, ...], tuple[float, int]] = {}

    def hit(self, rate: Rate, *key: str) -> tuple[int, int]:
        """Count one: how many are left after it, -1 for one too many; and seconds until all are again."""
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
    """A client with an API key, known by the key's hash."""

    name: str
    digest: bytes
    rate: Rate | None


class LimitRequests:
    """ASGI middleware that counts requests and refuses those that are too many.

    Args:
        app: what follows.
        anonymous: the rate of clients without a key, such as `120/minute`, or `off`.
        keys: keys with rates of their own.
    """

    def __init__(self, app: ASGIApp, anonymous: str, keys: Sequence[ApiKey] = ()) -> None:
        self._app = app
        self._anonymous = Rate.parse(anonymous)
        self._holders = tuple(
            Holder(key.name, _digest(key.key.get_secret_value().encode()), Rate.parse(key.rate))
            for key in keys
        )
        self._windows = RateWindows()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on with the state of its client's budget, or refuse it."""
        asker = self._asker(scope) if _is_counted(scope) else None
        if asker is None:
            await self._app(scope, receive, send)
            return
        policy, key, rate = asker
        left, wait_s = self._windows.hit(rate, policy, key)
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
        await self._app(scope, receive, at_start(send, lambda own: own.update(headers)))

    def _asker(self, scope: Scope) -> tuple[str, str, Rate] | None:
        """The policy, the client's key in it and its rate; None for who has no limit."""
        holder = self._holder(scope) if self._holders else None
        if holder:
            return (_KEYED, holder.name, holder.rate) if holder.rate else None
        return (_ANONYMOUS, client_of(scope), self._anonymous) if self._anonymous else None

    def _holder(self, scope: Scope) -> Holder | None:
        """Who holds the key that is sent; all are compared, so that the time reveals nothing."""
        headers = Headers(scope=scope)
        kind, _, token = headers.get("authorization", "").partition(" ")
        sent = headers.get("x-api-key") or (token if kind.lower() == "bearer" else "")
        digest = _digest(sent.strip().encode("latin-1"))
        found = [holder for holder in self._holders if hmac.compare_digest(digest, holder.digest)]
        return found[0] if found else None


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
