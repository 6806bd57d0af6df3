"""Process webhook deliveries: store their rows as the sync does, without moving cursors.

Deliveries arrive once, in any order, and can be replayed under another id. So a row is stored only if it is
not older than the stored one, and a row marked as gone is restored only by a later update time.
Shapes: docs.github.com, "Webhook events and payloads".
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import structlog
from sqlalchemy.orm import Session

from app.errors import StoreError
from app.knowledge.cluster.update import withdraw
from app.knowledge.indexing.batches import derive_changed
from app.store.github.issues import add_repository, save_comments, save_issues
from app.store.github.presence import find_gone, mark_gone
from app.store.github.releases import save_releases
from app.store.github.sync_state import add_delivery, purge_deliveries
from app.store.records import CommentRecord, IssueRecord
from app.store.session import Store
from ingest.parse import GitHubDelivery, comment_record, issue_record, read_row, release_record

Outcome = Literal["stored", "seen", "ignored"]

log = structlog.get_logger(__name__)

_LOST = frozenset({"deleted", "transferred"})
_UNPUBLISHED = frozenset({"deleted", "unpublished"})


def process_delivery(
    store: Store, repos: Sequence[str], event: str, payload: Any, *, delivery_id: str
) -> Outcome:
    """Store a delivery's rows together with its id, then derive the issue's facts again.

    Args:
        event: `issues`, `issue_comment`, `pull_request` or `release`; any other is ignored.
        payload: the delivery's JSON, with its signature already verified.
        delivery_id: GitHub's id; if it was processed before, the outcome is "seen" and nothing is done.
    """
    save = _SAVERS.get(event)
    if save is None:
        return "ignored"
    delivery = read_row(GitHubDelivery, payload)
    name = str(delivery.repository.get("full_name")).lower()
    repo = next((repo for repo in repos if repo.lower() == name), None)
    is_unpublished = delivery.action in _UNPUBLISHED or delivery.release.get("draft")
    if repo is None or (event == "release" and is_unpublished):
        return "ignored"
    with store.unit_of_work() as session:
        if not add_delivery(session, delivery_id, event):
            return "seen"
        purge_deliveries(session)
        changed = save(session, add_repository(session, repo), repo, delivery)
    try:
        derive_changed(store, repo, changed)
    except StoreError as error:  # the rows are stored, and the next sync derives their facts
        log.warning("a delivered issue was not read yet", numbers=changed, reason=error.message)
    return "stored"


# ---- savers by event; each returns the numbers of the issues to derive again


def _save_issue(session: Session, repo_id: int, repo: str, delivery: GitHubDelivery) -> list[int]:
    issue = issue_record(delivery.issue, repo)
    if delivery.action in _LOST:
        withdraw(session, repo_id, issue.number, delivery.action)
        return []
    return _save_newer(session, repo_id, issue)


def _save_pull(session: Session, repo_id: int, repo: str, delivery: GitHubDelivery) -> list[int]:
    return _save_newer(session, repo_id, issue_record(delivery.pull_request, repo))


def _save_comment(session: Session, repo_id: int, repo: str, delivery: GitHubDelivery) -> list[int]:
    issue = issue_record(delivery.issue, repo)
    comment = comment_record({"issue_number": issue.number, **delivery.comment})
    changed = _save_newer(session, repo_id, issue)
    if delivery.action == "deleted":
        return [*changed, issue.number] if mark_gone(session, "comment", repo_id, comment.id) else changed
    if not _is_outdated(comment, find_gone(session, "comment", repo_id, [comment.id])):
        changed += save_comments(session, repo_id, [comment])
    return changed


def _save_release(session: Session, repo_id: int, repo: str, delivery: GitHubDelivery) -> list[int]:
    save_releases(session, repo_id, [release_record(delivery.release, repo)])
    return []


_SAVERS: Mapping[str, Callable[[Session, int, str, GitHubDelivery], list[int]]] = {
    "issues": _save_issue,
    "pull_request": _save_pull,
    "issue_comment": _save_comment,
    "release": _save_release,
}


def _save_newer(session: Session, repo_id: int, issue: IssueRecord) -> list[int]:
    if _is_outdated(issue, find_gone(session, "issue", repo_id, [issue.number])):
        return []
    return list(save_issues(session, repo_id, [issue]))


def _is_outdated(record: IssueRecord | CommentRecord, gone: Mapping[int, datetime]) -> bool:
    """True if the row was last updated before it was marked as gone."""
    gone_at = next(iter(gone.values()), None)
    return gone_at is not None and (record.updated_at is None or record.updated_at <= gone_at)
