"""GitHub's two kinds of limit, read out of a refusal.

Primary: so many requests in an hour; told by `x-ratelimit-remaining: 0` and `x-ratelimit-reset` (epoch
seconds). Secondary: too much at once; told by `retry-after` (seconds), or by the message alone.
Both answer 403 or 429. Source: docs.github.com, "Rate limits for the REST API".
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal, Protocol

SECONDARY_FIRST_WAIT_S = 60.0
"""GitHub asks for at least a minute when it names no time, doubled each time it refuses again."""
RESET_MARGIN_S = 1.0
"""The reset is told in whole seconds."""


class Clock(Protocol):
    """Where waiting goes, so that a test need not wait."""

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's own."""

    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Wait:
    """A limit's refusal: how long to wait from now, and when that is over by this machine's clock."""

    kind: Literal["primary", "secondary"]
    seconds: float
    until: datetime


def read_wait(
    status: int, headers: Mapping[str, str], body: bytes, *, now: float, refused: int
) -> Wait | None:
    """What a refusal asks to wait, or None if the answer is no limit's refusal.

    `headers` go by lower-case name; `now` is this machine's time in epoch seconds, used where the answer has
    no `date`; `refused` is how often a limit refused this request before.
    """
    if status not in {403, 429}:
        return None
    asked = _retry_after(headers.get("retry-after"), _answer_time(headers, now))
    if asked is not None:
        return _wait("secondary", max(asked, 1.0), now)
    reset = _number(headers.get("x-ratelimit-reset"))
    if headers.get("x-ratelimit-remaining") == "0" and reset is not None:
        # Both times are GitHub's, so a wrong clock here does no harm.
        left = reset - _answer_time(headers, now)
        return _wait("primary", max(left, 0.0) + RESET_MARGIN_S, now)
    if status == 429 or b"secondary rate limit" in body or b"abuse detection" in body:
        return _wait("secondary", SECONDARY_FIRST_WAIT_S * 2 ** min(refused, 10), now)
    return None


def _wait(kind: Literal["primary", "secondary"], seconds: float, now: float) -> Wait:
    until = datetime.fromtimestamp(min(now + seconds, 32_503_680_000.0), UTC)
    return Wait(kind, seconds, until)


def _retry_after(value: str | None, answered: float) -> float | None:
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    moment = _http_date(value)
    return max(moment - answered, 0.0) if moment is not None else None


def _answer_time(headers: Mapping[str, str], now: float) -> float:
    moment = _http_date(headers.get("date", ""))
    return now if moment is None else moment


def _http_date(value: str) -> float | None:
    try:
        return parsedate_to_datetime(value).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None


def _number(value: str | None) -> float | None:
    if value is None or not value.isascii() or not value.isdigit() or len(value) > 15:
        return None
    return float(value)
