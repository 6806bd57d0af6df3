"""Which issues must be read again: the stored mark that a stopped run leaves behind by itself.

An issue is stale when nothing was read out of it yet, when it or one of its comments was stored (or the
comment went) after it was read, or when it was read under other rules. So facts may be derived at any
time after the raw page is safe: a killed run is made good by whoever asks next.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import or_
from sqlmodel import Session, col, exists, select

from app.store.tables import CommentRow, IssueRow, ReadingRow


def stale_numbers(
    session: Session,
    repo_id: int,
    rules_version: str,
    *,
    after: int = 0,
    limit: int = 1_000_000,
    among: Sequence[int] | None = None,
) -> list[int]:
    """The next stale numbers above `after`, ascending; only `among` these, if any are given."""
    newer_comment = exists().where(
        col(CommentRow.repo_id) == col(IssueRow.repo_id),
        col(CommentRow.issue_number) == col(IssueRow.number),
        col(CommentRow.fetched_at) > col(ReadingRow.read_at),
    )
    query = (
        select(IssueRow.number)
        .join(
            ReadingRow,
            (col(ReadingRow.repo_id) == col(IssueRow.repo_id))
            & (col(ReadingRow.number) == col(IssueRow.number)),
            isouter=True,
        )
        .where(
            IssueRow.repo_id == repo_id,
            col(IssueRow.number) > after,
            or_(
                col(ReadingRow.number).is_(None),
                col(ReadingRow.rules_version) != rules_version,
                col(ReadingRow.read_at) < col(IssueRow.fetched_at),
                newer_comment,
            ),
        )
        .order_by(col(IssueRow.number))
        .limit(limit)
    )
    if among is not None:
        query = query.where(col(IssueRow.number).in_(list(among)))
    return list(session.exec(query))
