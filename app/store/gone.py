"""What GitHub no longer has: kept, and labelled as gone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import update
from sqlmodel import Session, col, select

from app.store.dialect import take_turn
from app.store.tables import CommentRow, IssueRow


def mark_gone(session: Session, repo_id: int, number: int, reason: str) -> bool:
    """Label an issue as gone, with the reason in at most 20 characters; whether that was new."""
    take_turn(session)
    found = session.connection().execute(
        update(IssueRow)
        .where(
            col(IssueRow.repo_id) == repo_id, col(IssueRow.number) == number, col(IssueRow.gone_at).is_(None)
        )
        .values(gone_at=datetime.now(UTC), gone_reason=reason[:20])
    )
    return found.rowcount > 0


def mark_comment_gone(session: Session, repo_id: int, comment_id: int) -> bool:
    """Label a comment as gone, and its issue as one to be read again; whether that was new."""
    take_turn(session)
    now = datetime.now(UTC)
    found = session.connection().execute(
        update(CommentRow)
        .where(
            col(CommentRow.repo_id) == repo_id,
            col(CommentRow.id) == comment_id,
            col(CommentRow.gone_at).is_(None),
        )
        .values(gone_at=now, fetched_at=now)
    )
    return found.rowcount > 0


def gone_issues(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, datetime]:
    """Those of these numbers that are gone, and since when."""
    query = select(IssueRow.number, IssueRow.gone_at).where(
        IssueRow.repo_id == repo_id, col(IssueRow.number).in_(list(numbers))
    )
    return {number: gone_at for number, gone_at in session.exec(query) if gone_at}


def gone_comments(session: Session, repo_id: int, ids: Sequence[int]) -> dict[int, datetime]:
    """Those of these comments that are gone, and since when."""
    query = select(CommentRow.id, CommentRow.gone_at).where(
        CommentRow.repo_id == repo_id, col(CommentRow.id).in_(list(ids))
    )
    return {key: gone_at for key, gone_at in session.exec(query) if gone_at}
