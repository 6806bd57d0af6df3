"""The first release that holds each pull request of vLLM, and what was taken back, as known on one day.

In: `app/starter/releases.toml`. It lets a fix name its release before GitHub was asked for anything.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Reverted:
    """A pull request that another one took back."""

    number: int
    by: int
    at: datetime


@dataclass(frozen=True, slots=True)
class ReleaseTable:
    """What is known of the repository's history up to `as_of`: the release's tag by pull request."""

    as_of: datetime
    first_release: dict[int, str]
    reverted: tuple[Reverted, ...]


def read_release_table(path: Path) -> ReleaseTable:
    """The table out of its file."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    return ReleaseTable(
        as_of=_end(content["as_of"]),
        first_release={number: tag for tag, numbers in content["releases"].items() for number in numbers},
        reverted=tuple(
            Reverted(number, int(by), _end(revert["merged"]))
            for by, revert in content["reverts"].items()
            for number in revert["of"]
        ),
    )


def _end(day: date) -> datetime:
    """The end of a day: a revert follows what was merged on the same one."""
    return datetime.combine(day, time.max, UTC)
