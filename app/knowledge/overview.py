"""What the base holds and how fresh it is: the foot of every page."""

from __future__ import annotations

from datetime import datetime

from app.extract.facts import Frozen
from app.knowledge.freshness import Freshness, RunView, freshness
from app.store.issues import count_issues, find_repository
from app.store.releases import newest_release
from app.store.session import Store


class Overview(Frozen):
    """Counts and freshness of one repository."""

    issues: int
    pulls: int
    from_cards: int
    as_of: datetime | None
    newest_release: str | None
    is_starter_only: bool
    is_stale: bool = False
    last_run: RunView | None = None


def overview(store: Store, repo: str, fresh: Freshness | None = None) -> Overview:
    """The state of the base; zeros where nothing is stored of `repo`.

    Args:
        fresh: how fresh it is, where that was read already.
    """
    fresh = fresh or freshness(store, repo)
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        if repo_id is None:
            return Overview(
                issues=0, pulls=0, from_cards=0, as_of=None, newest_release=None, is_starter_only=False
            )  # fmt: skip
        counts = count_issues(session, repo_id)
        release = newest_release(session, repo_id)
        return Overview(
            issues=counts["issues"], pulls=counts["pulls"], from_cards=counts["from_cards"],
            as_of=fresh.as_of, newest_release=release.removeprefix("v") if release else None,
            is_starter_only=counts["issues"] == counts["from_cards"] and counts["issues"] > 0,
            is_stale=fresh.is_stale, last_run=fresh.last_run,
        )  # fmt: skip
