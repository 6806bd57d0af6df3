"""GitHub's two kinds of limit: what is left, how long a refusal asks to wait, and when that is too long.

Primary: so many requests in an hour; `x-ratelimit-remaining: 0` and `x-ratelimit-reset` (epoch seconds).
Secondary: too much at once; `retry-after` (seconds), or the message alone.
Both answer 403 or 429. Source: docs.github.com, "Rate limits for the REST API".
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal

from app.errors import GitHubError

SECONDARY_FIRST_WAIT_S = 60.0
"""GitHub asks for at least a minute when it names no time, doubled each time it refuses again."""
RESET_MARGIN_S = 1.0
"""The reset is given in whole seconds."""
SHORT_WAIT_S = 60.0
"""Without a token no longer wait for the primary limit is made."""
MAX_REFUSALS = 30

Kind = Literal["primary", "secondary"]


class SystemClock:
    """Where waiting goes, so that a test need not wait."""

    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Wait:
    """A limit's refusal: how long to wait from now, and when that is over by this machine's clock."""

    kind: Kind
    seconds: float
    until: datetime


@dataclass(slots=True)
class RequestBudget:
    """What the last answer said of the primary limit, and how long a client waits for both.

    Attributes:
        max_wait_s: longest wait for limits in one request.
        has_token: whether the client has one.
        kept: requests of an anonymous hour's budget that are not to be spent.
        limit, remaining, resets_at: of the hour's budget; None where GitHub said nothing.
    """

    max_wait_s: float
    has_token: bool
    kept: int = 0
    limit: int | None = None
    remaining: int | None = None
    resets_at: datetime | None = None

    def take_in(self, headers: Mapping[str, str], now: float) -> None:
        """Read an answer's headers; `now` is this machine's time in epoch seconds."""
        remaining = _number(headers.get("x-ratelimit-remaining"))
        if remaining is None or remaining > 1e9:
            return
        limit, reset = (_number(headers.get(f"x-ratelimit-{name}")) for name in ("limit", "reset"))
        self.remaining = int(remaining)
        self.limit = int(limit) if limit is not None and limit < 1e9 else None
        self.resets_at = None if reset is None else _moment(now + _left(reset, headers, now))

    def keep_some(self, now: float) -> None:
        """Refuse a request where only those to be kept are left until a reset that is still to come.

        Raises:
            GitHubError: says when the reset is.
        """
        if self.has_token or not self.kept or self.remaining is None or self.resets_at is None:
            return
        if self.remaining <= self.kept and self.resets_at.timestamp() > now:
            raise self._used_up("primary", self.resets_at)

    def check(self, wait: Wait, waited_s: float, refused: int) -> None:
        """Give up a request that was refused `refused` times; `waited_s` counts this wait, too.

        Raises:
            GitHubError: the wait is too long; says which limit it is, when it is over, and what helps.
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
    """What a refusal asks to wait, or None if the answer is no limit's refusal.

    `headers` go by lower-case name; `now` is this machine's time in epoch seconds, used where the answer has
    no `date`; `refused` is how often a limit refused this request before.
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
    """Seconds until a reset. Both times are GitHub's, so a wrong clock here does no harm."""
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
