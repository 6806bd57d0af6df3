"""How fresh the copy of one repository is, and how much of it is still to come."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import func
from sqlmodel import Session, col, select

from app.store.records import GITHUB, SyncRunRecord
from app.store.tables import CommentRow, IssueRow, RepositoryRow, SyncCursorRow, SyncRunRow


def fresh_as_of(session: Session, repo_id: int) -> datetime | None:
    """When the repository's newest complete sync ended; None before the first."""
    query = (
        select(SyncRunRow.ended_at)
        .where(SyncRunRow.repo_id == repo_id, SyncRunRow.outcome == "complete")
        .order_by(col(SyncRunRow.ended_at).desc())
        .limit(1)
    )
    return session.exec(query).first()


def last_run_of(session: Session, repo_id: int) -> SyncRunRecord | None:
    """The repository's newest run that has ended, or None."""
    query = (
        select(SyncRunRow, RepositoryRow.full_name)
        .join(RepositoryRow, col(RepositoryRow.id) == col(SyncRunRow.repo_id))
        .where(SyncRunRow.repo_id == repo_id, col(SyncRunRow.ended_at).is_not(None))
        .order_by(col(SyncRunRow.id).desc())
        .limit(1)
    )
    found = session.exec(query).first()
    if found is None:
        return None
    row, name = found
    return SyncRunRecord(
        name, row.started_at, row.ended_at, row.outcome, row.requests, row.not_modified,
        row.remaining, row.stored, row.fault,
    )  # fmt: skip


def cursors_of(session: Session, repo_id: int) -> dict[str, tuple[dict[str, Any], datetime]]:
    """Where each stream stands, and when it moved there."""
    query = select(SyncCursorRow).where(SyncCursorRow.repo_id == repo_id).order_by(col(SyncCursorRow.stream))
    return {row.stream: (dict(row.position), row.moved_at) for row in session.exec(query)}


def count_stored(session: Session, repo_id: int) -> dict[str, int]:
    """GitHub's rows that are stored: {"issues", "comments"}, and "comments_told", which the issues tell."""
    issues, told = session.exec(
        select(func.count(), func.coalesce(func.sum(IssueRow.comments), 0)).where(
            IssueRow.repo_id == repo_id, IssueRow.origin == GITHUB, col(IssueRow.gone_at).is_(None)
        )
    ).one()
    comments = session.exec(
        select(func.count())
        .select_from(CommentRow)
        .where(CommentRow.repo_id == repo_id, col(CommentRow.gone_at).is_(None))
    ).one()
    return {"issues": issues, "comments": comments, "comments_told": int(told)}
