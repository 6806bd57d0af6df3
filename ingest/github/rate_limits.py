"""GitHub's two kinds of rate limits: remaining requests, requested waits, and when to give up.

Primary: requests per hour; signalled by `x-ratelimit-remaining: 0` and `x-ratelimit-reset` (epoch seconds).
Secondary: too many at once; signalled by `retry-after` (seconds), or only by the message.
Both use status 403 or 429. Source: docs.github.com, "Rate limits for the REST API".
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal

from app.errors import GitHubError

SECONDARY_FIRST_WAIT_S = 60.0
"""Wait if GitHub names no time, as its documentation asks; doubled after each further refusal."""
RESET_MARGIN_S = 1.0
"""Added to reset times, which are in whole seconds."""
SHORT_WAIT_S = 60.0
"""Longest wait for the primary limit without a token."""
MAX_REFUSALS = 30

Kind = Literal["primary", "secondary"]


class SystemClock:
    """Time and sleep, replaceable in tests."""

    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Wait:
    """The wait required by a rate limit, in seconds from now, and its end by the local clock."""

    kind: Kind
    seconds: float
    until: datetime


@dataclass(slots=True)
class RequestBudget:
    """State of the primary limit by the last response, and how long the client waits for either limit.

    Attributes:
        max_wait_s: longest total wait for rate limits in one request.
        has_token: whether the client has a token.
        kept: requests of an hour without a token that must not be used.
        limit, remaining, resets_at: of the primary limit; None if GitHub has not sent it.
    """

    max_wait_s: float
    has_token: bool
    kept: int = 0
    limit: int | None = None
    remaining: int | None = None
    resets_at: datetime | None = None

    def update_from(self, headers: Mapping[str, str], now: float) -> None:
        """Update the state from a response's headers; `now` is the local time in epoch seconds."""
        remaining = _number(headers.get("x-ratelimit-remaining"))
        if remaining is None or remaining > 1e9:
            return
        limit, reset = (_number(headers.get(f"x-ratelimit-{name}")) for name in ("limit", "reset"))
        self.remaining = int(remaining)
        self.limit = int(limit) if limit is not None and limit < 1e9 else None
        self.resets_at = None if reset is None else _moment(now + _left(reset, headers, now))

    def check_reserve(self, now: float) -> None:
        """Prevent a request if only the `kept` ones are left until the next reset.

        Raises:
            GitHubError: the request must not be made; the message has the time of the reset.
        """
        if self.has_token or not self.kept or self.remaining is None or self.resets_at is None:
            return
        if self.remaining <= self.kept and self.resets_at.timestamp() > now:
            raise self._used_up("primary", self.resets_at)

    def check(self, wait: Wait, waited_s: float, refused: int) -> None:
        """Check whether to give up a request refused `refused` times; `waited_s` includes this wait.

        Raises:
            GitHubError: the wait is too long; the message has the limit, its end, and what helps.
        """
        is_short = wait.kind == "primary" and not self.has_token
        longest_s = min(self.max_wait_s, SHORT_WAIT_S) if is_short else self.max_wait_s
        if waited_s > longest_s or refused > MAX_REFUSALS:
            raise self._used_up(wait.kind, wait.until)

    def _used_up(self, kind: Kind, until: datetime) -> GitHubError:
        when = f"used up until {until:%Y-%m-%d %H:%M:%S} UTC"
        if self.has_token or kind != "primary":
            return GitHubError(f"GitHub's {kind} rate limit is {when}")
        given = f"{self.limit} requests" if self.limit else "requests"
        return GitHubError(
            f"the {given} an hour that GitHub gives without a token are {when}; the next sync goes on from "
            "there. A token (TRIAGE_GITHUB_TOKEN) gives 5,000 an hour and the whole tracker"
        )


def read_wait(
    status: int, headers: Mapping[str, str], body: bytes, *, now: float, refused: int
) -> Wait | None:
    """Return the wait required by a response, or None if it is not a rate-limit response.

    `headers` have lowercase names; `now` is the local time in epoch seconds, used if the response has no
    `date`; `refused` is how often this request was rate-limited before.
    """
    if status not in {403, 429}:
        return None
    after, reset = headers.get("retry-after", ""), _number(headers.get("x-ratelimit-reset"))
    asked, moment = _number(after), _http_date(after)
    if moment is not None:
        asked = moment - _answer_time(headers, now)
    kind: Kind = "secondary"
    if asked is not None:
        seconds = max(asked, 1.0)
    elif headers.get("x-ratelimit-remaining") == "0" and reset is not None:
        kind, seconds = "primary", max(_left(reset, headers, now), RESET_MARGIN_S)
    elif status == 429 or b"secondary rate limit" in body or b"abuse detection" in body:
        seconds = SECONDARY_FIRST_WAIT_S * 2 ** min(refused, 10)
    else:
        return None
    return Wait(kind, seconds, _moment(now + seconds))


def _left(reset: float, headers: Mapping[str, str], now: float) -> float:
    """Return the seconds until a reset. Both times are GitHub's, so a wrong local clock does not matter."""
    return reset - _answer_time(headers, now) + RESET_MARGIN_S


def _moment(epoch_s: float) -> datetime:
    return datetime.fromtimestamp(min(max(epoch_s, 0.0), 32_503_680_000.0), UTC)


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
