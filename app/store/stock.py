"""What is stored of the repositories that are asked about: their keys, how many issues, how fresh.

Every answer tells it, so it is remembered until the base changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session

from app.store.dialect_memory import remembered
from app.store.freshness import fresh_as_of
from app.store.issues import count_issues, find_repository


@dataclass(frozen=True, slots=True)
class Stock:
    """What of the asked repositories anything is stored of.

    Attributes:
        repositories: key to name.
        issues: without pull requests.
        as_of: when the newest complete sync ended; of several repositories the one that is furthest behind.
    """

    repositories: Mapping[int, str]
    issues: int
    as_of: datetime | None


def find_stock(session: Session, repos: Sequence[str]) -> Stock:
    """What is stored of these repositories."""
    return remembered(session, ("stock", tuple(repos)), lambda: _count(session, repos))


def _count(session: Session, repos: Sequence[str]) -> Stock:
    keys = {key: repo for repo in repos if (key := find_repository(session, repo)) is not None}
    ends = [end for key in keys if (end := fresh_as_of(session, key)) is not None]
    return Stock(keys, sum(count_issues(session, key)["issues"] for key in keys), min(ends, default=None))
