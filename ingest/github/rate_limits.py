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

SHORT_WAIT_S = 60.0
"""Without a token a longer wait for the primary limit is only made if it was asked for."""
MAX_REFUSALS = 30


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


@dataclass(slots=True)
class Budget:
    """What the last answer said of the primary limit; None where it said nothing."""

    limit: int | None = None
    remaining: int | None = None
    resets_at: datetime | None = None

    def take_in(self, headers: Mapping[str, str], now: float) -> None:
        """Read an answer's headers; `now` is this machine's time in epoch seconds."""
        limit, remaining, reset = (
            _number(headers.get(f"x-ratelimit-{name}")) for name in ("limit", "remaining", "reset")
        )
        if remaining is None or remaining > 1e9:
            return
        self.remaining = int(remaining)
        self.limit = int(limit) if limit is not None and limit < 1e9 else None
        left = reset - _answer_time(headers, now) + RESET_MARGIN_S if reset is not None else None
        self.resets_at = _moment(now + left) if left is not None else None

    def is_down_to(self, kept: int, now: float) -> bool:
        """Whether no more than `kept` requests are left until a reset that is still to come."""
        if self.remaining is None or self.resets_at is None or self.resets_at.timestamp() <= now:
            return False
        return self.remaining <= kept


@dataclass(slots=True)
class Patience:
    """How long a client waits for limits, and what it says when that is too long.

    Attributes:
        max_wait_s: longest wait for limits in one request.
        has_token: whether the client has one.
        sits_out: without a token, too, wait until the hour's budget is renewed.
        kept: requests of an anonymous hour's budget that are not to be spent.
    """

    max_wait_s: float
    has_token: bool
    sits_out: bool
    kept: int = 0

    def wait_for_kept(self, budget: Budget, now: float) -> Wait | None:
        """Until when nothing is to be asked, because only the requests to be kept are left."""
        if self.has_token or self.sits_out or not self.kept or not budget.is_down_to(self.kept, now):
            return None
        return Wait("primary", 0.0, budget.resets_at) if budget.resets_at else None

    def is_over(self, wait: Wait, waited_s: float, refused: int) -> bool:
        """Whether a refused request is given up; `waited_s` counts this wait, too."""
        longest_s = self.max_wait_s
        if wait.kind == "primary" and not (self.has_token or self.sits_out):
            longest_s = min(longest_s, SHORT_WAIT_S)
        return waited_s > longest_s or refused > MAX_REFUSALS

    def message(self, wait: Wait, budget: Budget) -> str:
        """Which limit ended it, when it is over, and what helps."""
        until = f"{wait.until:%Y-%m-%d %H:%M:%S} UTC"
        if self.has_token or wait.kind != "primary":
            return f"GitHub's {wait.kind} rate limit is used up until {until}"
        given = f"{budget.limit} requests" if budget.limit else "requests"
        return (
            f"the {given} an hour that GitHub gives without a token are used up until {until}; the next sync "
            "goes on from there. A token (TRIAGE_GITHUB_TOKEN) gives 5,000 an hour and the whole tracker"
        )


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
    return Wait(kind, seconds, _moment(now + seconds))


def _moment(epoch_s: float) -> datetime:
    return datetime.fromtimestamp(min(max(epoch_s, 0.0), 32_503_680_000.0), UTC)


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
