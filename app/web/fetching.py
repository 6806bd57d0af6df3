"""`POST /report`: an issue that is not stored is fetched because somebody asked.

What fetches it is handed in from above. GitHub's budget is the operator's: one issue at a time, and so many
an hour, however many people ask.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from app.config import Settings
from app.errors import TriageError
from app.store.session import Store

PER_MINUTE = 6
PER_HOUR = 60


class FetchIssue(Protocol):
    """Fetches and stores an issue; False if GitHub does not have it."""

    def __call__(self, settings: Settings, store: Store, repo: str, number: int, /) -> bool: ...


class RateLimitError(TriageError):
    """Too many issues were asked for in a while."""

    status = 429


class Fetcher:
    """Fetches issues one after the other, not more often than allowed.

    Args:
        fetch: fetches one; given repository and number.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        fetch: Callable[[str, int], bool],
        *,
        per_minute: int = PER_MINUTE,
        per_hour: int = PER_HOUR,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fetch = fetch
        self._limits = ((60.0, per_minute, "minute"), (3600.0, per_hour, "hour"))
        self._clock = clock
        self._began: deque[float] = deque(maxlen=max(per_minute, per_hour))
        self._guard = threading.Lock()
        self._turn = threading.Lock()

    def fetch(self, repo: str, number: int) -> bool:
        """Fetch one issue; False if GitHub does not have it.

        Raises:
            RateLimitError: another one is being fetched, or too many were.
            GitHubError: GitHub refused or could not be reached.
        """
        if not self._turn.acquire(blocking=False):
            raise RateLimitError("Another issue is being fetched just now. Try again in a few seconds.")
        try:
            self._count()
            return self._fetch(repo, number)
        finally:
            self._turn.release()

    def _count(self) -> None:
        now = self._clock()
        with self._guard:
            for seconds, most, word in self._limits:
                if sum(now - began < seconds for began in self._began) >= most:
                    raise RateLimitError(
                        f"This server fetches at most {most} issues a {word}. Try again later, "
                        "or run `triage report` on your own machine."
                    )
            self._began.append(now)
