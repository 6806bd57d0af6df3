"""One webhook delivery: the rows it brings go the way of the sync's rows; no cursor moves.

GitHub sends a delivery once, in any order, and anybody who saw one can send it again under another id.
So a row is stored only if it is not older than the stored one, and one that is gone comes back only with
an update time after that. Whatever was missed here, the next sync brings.
Shapes: docs.github.com, "Webhook events and payloads".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import structlog
from sqlmodel import Session

from app.errors import InputError, StoreError
from app.knowledge.cluster.update import withdraw
from app.knowledge.indexing.batches import derive_changed
from app.store.github.comments import save_comments
from app.store.github.deliveries import add_delivery, purge_deliveries
from app.store.github.issues import add_repository, save_issues
from app.store.github.presence import gone_comments, gone_issues, mark_comment_gone
from app.store.github.releases import save_releases
from app.store.records import CommentRecord, IssueRecord, ReleaseRecord
from app.store.session import Store
from ingest.parse.fields import Row, flag_of, id_of, part_of, text_of
from ingest.parse.records import comment_record, issue_record, release_record

Outcome = Literal["stored", "seen", "ignored"]

log = structlog.get_logger(__name__)

_LOST = frozenset({"deleted", "transferred"})
_UNPUBLISHED = frozenset({"deleted", "unpublished"})


@dataclass(frozen=True, slots=True)
class _News:
    """What a delivery says; `gone` is a number and why, `gone_comment` a comment's id."""

    issue: IssueRecord | None = None
    comment: CommentRecord | None = None
    release: ReleaseRecord | None = None
    gone: tuple[int, str] | None = None
    gone_comment: int | None = None


def take_delivery(
    store: Store,
    repos: Sequence[str],
    event: str,
    payload: Any,
    *,
    delivery_id: str,
) -> Outcome:
    """Store what a delivery brings, and its id with it; then read the issue anew.

    Args:
        store: the open archive.
        repos: `owner/name` of those that are wanted.
        event: `issues`, `issue_comment`, `pull_request` or `release`; any other is ignored.
        payload: the delivery's JSON; its signature is checked already.
        delivery_id: GitHub's; one that was taken before is "seen", and nothing is done.

    Raises:
        InputError: a field of the payload is missing or odd.
        StoreError: the database refused; nothing of it is stored, so it can be sent again.
    """
    read = _READERS.get(event)
    if read is None:
        return "ignored"
    if not isinstance(payload, dict):
        raise InputError("the delivery is no JSON object")
    repo = _wanted(payload, repos)
    news = read(payload, repo, text_of(payload, "action") or "") if repo else None
    if repo is None or news is None:
        return "ignored"
    with store.unit_of_work() as session:
        if not add_delivery(session, delivery_id, event):
            return "seen"
        purge_deliveries(session)
        changed = _save(session, add_repository(session, repo), news)
    try:
        derive_changed(store, repo, changed)
    except StoreError as error:  # the rows are safe, and the next sync reads what was not read
        log.warning("a delivered issue was not read yet", numbers=changed, reason=error.message)
    return "stored"


def _wanted(payload: Row, repos: Sequence[str]) -> str | None:
    """The repository as the settings write it, or None if they do not name it."""
    name = text_of(part_of(payload, "repository"), "full_name") or ""
    return next((repo for repo in repos if repo.lower() == name.lower()), None)


def _read_issue(payload: Row, repo: str, action: str) -> _News:
    row = part_of(payload, "issue")
    if action in _LOST:
        return _News(gone=(id_of(row, "number"), action))
    return _News(issue=issue_record(row, repo))


def _read_pull(payload: Row, repo: str, _action: str) -> _News:
    return _News(issue=issue_record(part_of(payload, "pull_request"), repo))


def _read_comment(payload: Row, repo: str, action: str) -> _News:
    issue = issue_record(part_of(payload, "issue"), repo)
    row = part_of(payload, "comment")
    if action == "deleted":
        return _News(issue=issue, gone_comment=id_of(row, "id"))
    return _News(issue=issue, comment=comment_record({"issue_number": issue.number, **row}))


def _read_release(payload: Row, repo: str, action: str) -> _News | None:
    row = part_of(payload, "release")
    if action in _UNPUBLISHED or flag_of(row, "draft"):
        return None
    return _News(release=release_record(row, repo))


_READERS: Mapping[str, Callable[[Row, str, str], _News | None]] = {
    "issues": _read_issue,
    "pull_request": _read_pull,
    "issue_comment": _read_comment,
    "release": _read_release,
}


def _save(session: Session, repo_id: int, news: _News) -> list[int]:
    """Store it; the numbers of the issues to be read anew."""
    changed: list[int] = []
    if news.issue and not _is_outdated(news.issue, gone_issues(session, repo_id, [news.issue.number])):
        changed += save_issues(session, repo_id, [news.issue])
    if news.comment and not _is_outdated(news.comment, gone_comments(session, repo_id, [news.comment.id])):
        changed += save_comments(session, repo_id, [news.comment])
    if news.release:
        save_releases(session, repo_id, [news.release])
    if news.gone:
        withdraw(session, repo_id, *news.gone)
    if news.gone_comment and mark_comment_gone(session, repo_id, news.gone_comment) and news.issue:
        changed.append(news.issue.number)
    return changed


def _is_outdated(record: IssueRecord | CommentRecord, gone: Mapping[int, datetime]) -> bool:
    """Whether the row was written before it was marked gone."""
    gone_at = next(iter(gone.values()), None)
    return gone_at is not None and (record.updated_at is None or record.updated_at <= gone_at)
