"""What is stored of the repositories that are asked about: their keys, how many issues, how fresh.

Every answer tells it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session

from app.store.tally import find_tallies


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
    by_name = {tally.repo: tally for tally in find_tallies(session)}
    found = [by_name[repo] for repo in dict.fromkeys(repos) if repo in by_name]
    return Stock(
        {tally.repo_id: tally.repo for tally in found},
        sum(tally.counts.issues for tally in found),
        min((tally.as_of for tally in found if tally.as_of is not None), default=None),
    )
