"""What the base holds and how fresh it is; the newest failures."""

from __future__ import annotations

from datetime import datetime

from app.extract.facts import Frozen
from app.extract.redact import mask_secrets
from app.knowledge.freshness import RunView, freshness
from app.store.issues import count_issues, find_repository, newest_failures
from app.store.releases import newest_release
from app.store.session import Store

RECENT = 6


class RecentIssue(Frozen):
    number: int
    title: str
    error: str
    created_at: datetime | None
    state: str
    has_remedy: bool


class Overview(Frozen):
    """Counts, freshness and the newest failures of one repository."""

    issues: int
    pulls: int
    from_cards: int
    as_of: datetime | None
    newest_release: str | None
    is_starter_only: bool
    recent: tuple[RecentIssue, ...]
    is_stale: bool = False
    last_run: RunView | None = None


def overview(store: Store, repo: str) -> Overview:
    """The state of the base; zeros where nothing is stored of `repo`."""
    fresh = freshness(store, repo)
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        if repo_id is None:
            return Overview(
                issues=0, pulls=0, from_cards=0, as_of=None, newest_release=None,
                is_starter_only=False, recent=(),
            )  # fmt: skip
        counts = count_issues(session, repo_id)
        recent = [
            RecentIssue(
                number=issue.number, title=mask_secrets(issue.title), created_at=issue.created_at,
                state=issue.state, error=_error(facts.error.type, facts.error.message) if facts.error else "",
                has_remedy=any(item.outcome == "works" for item in facts.workarounds),
            )
            for issue, facts in newest_failures(session, repo_id, RECENT)
        ]  # fmt: skip
        release = newest_release(session, repo_id)
        return Overview(
            issues=counts["issues"], pulls=counts["pulls"], from_cards=counts["from_cards"],
            as_of=fresh.as_of, newest_release=release.removeprefix("v") if release else None,
            is_starter_only=counts["issues"] == counts["from_cards"] and counts["issues"] > 0,
            recent=tuple(recent), is_stale=fresh.is_stale, last_run=fresh.last_run,
        )  # fmt: skip


def _error(kind: str | None, message: str) -> str:
    return mask_secrets(": ".join(part for part in (kind, message) if part))[:160]
