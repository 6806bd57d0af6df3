"""What GitHub no longer has: kept, and labelled as gone.

When GitHub last listed each row, and which rows a crawl did not list.

Lists have no tombstones: a row that was deleted is only missed. So each listed row notes the moment its
list was asked for, and a crawl that came to its end can tell what it did not see. The note has a fixed
length, so an engine that writes in place (SQLite) leaves the long columns of the row alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import or_, update
from sqlmodel import Session, col, exists, select

from app.store.engine.connect import take_turn
from app.store.records import GITHUB
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


KEYS_PER_QUERY = 900
"""Stays below the number of bound values that every SQLite build takes."""


def note_issues_seen(session: Session, repo_id: int, numbers: Sequence[int], seen_at: datetime) -> None:
    """Note that a list asked for at `seen_at` held these issues; counts as no change."""
    _note(session, IssueRow, repo_id, numbers, seen_at)


def note_comments_seen(session: Session, repo_id: int, keys: Sequence[int], seen_at: datetime) -> None:
    """Note that a list asked for at `seen_at` held these comments; counts as no change."""
    _note(session, CommentRow, repo_id, keys, seen_at)


def _note(
    session: Session, table: type[IssueRow | CommentRow], repo_id: int, keys: Sequence[int], seen_at: datetime
) -> None:
    key = col(IssueRow.number) if table is IssueRow else col(CommentRow.id)
    for start in range(0, len(keys), KEYS_PER_QUERY):
        session.connection().execute(
            update(table)
            .where(
                col(table.repo_id) == repo_id,
                key.in_(list(keys[start : start + KEYS_PER_QUERY])),
                or_(col(table.seen_at).is_(None), col(table.seen_at) < seen_at),
            )
            .values(seen_at=seen_at)
        )


def unseen_issues(session: Session, repo_id: int, since: datetime) -> list[int]:
    """Numbers of GitHub's issues that are not gone and that no list since then held, ascending."""
    query = (
        select(IssueRow.number)
        .where(
            IssueRow.repo_id == repo_id,
            IssueRow.origin == GITHUB,
            col(IssueRow.gone_at).is_(None),
            or_(col(IssueRow.seen_at).is_(None), col(IssueRow.seen_at) < since),
        )
        .order_by(col(IssueRow.number))
    )
    return list(session.exec(query))


def unseen_comments(session: Session, repo_id: int, since: datetime) -> list[int]:
    """Keys of comments that are not gone and that no list since then held, ascending.

    The comments of a gone issue are left out: they went with it, and are kept with it.
    """
    issue_is_gone = exists().where(
        col(IssueRow.repo_id) == col(CommentRow.repo_id),
        col(IssueRow.number) == col(CommentRow.issue_number),
        col(IssueRow.gone_at).is_not(None),
    )
    query = (
        select(CommentRow.id)
        .where(
            CommentRow.repo_id == repo_id,
            col(CommentRow.gone_at).is_(None),
            or_(col(CommentRow.seen_at).is_(None), col(CommentRow.seen_at) < since),
            ~issue_is_gone,
        )
        .order_by(col(CommentRow.id))
    )
    return list(session.exec(query))
