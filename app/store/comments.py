"""Comments, keyed by repository and GitHub's id; found by their issue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from sqlmodel import Session, col, select

from app.store.dialect import upsert
from app.store.records import CommentRecord
from app.store.tables import CommentRow, metadata


def save_comments(session: Session, repo_id: int, records: Iterable[CommentRecord]) -> list[int]:
    """Store comments by their id; an older or an unchanged one changes nothing.

    Returns, for each new or changed comment, the number of its issue.
    """
    latest: dict[int, CommentRecord] = {}
    for record in records:
        known = latest.get(record.id)
        if known is None or not _is_older(record.updated_at, known.updated_at):
            latest[record.id] = record
    stored = {
        key: (updated_at, body)
        for key, updated_at, body in session.exec(
            select(CommentRow.id, CommentRow.updated_at, CommentRow.body).where(
                CommentRow.repo_id == repo_id, col(CommentRow.id).in_(list(latest))
            )
        )
    }
    fresh = [
        record
        for record in latest.values()
        if record.id not in stored
        or (
            stored[record.id] != (record.updated_at, record.body)
            and not _is_older(record.updated_at, stored[record.id][0])
        )
    ]
    now = datetime.now(UTC)
    rows = [
        {
            "repo_id": repo_id, "id": record.id, "issue_number": record.issue_number,
            "author": record.author, "author_association": record.author_association,
            "body": record.body, "created_at": record.created_at, "updated_at": record.updated_at,
            "fetched_at": now, "raw": dict(record.raw) if record.raw is not None else None,
        }
        for record in fresh
    ]  # fmt: skip
    upsert(session, metadata.tables["comment"], rows, keys=("repo_id", "id"))
    return sorted(record.issue_number for record in fresh)


def _is_older(moment: datetime | None, than: datetime | None) -> bool:
    return moment is not None and than is not None and moment < than


def find_comments(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, list[CommentRecord]]:
    """The comments of these issues, oldest first."""
    query = (
        select(CommentRow)
        .where(CommentRow.repo_id == repo_id, col(CommentRow.issue_number).in_(list(numbers)))
        .order_by(col(CommentRow.created_at).nulls_first(), col(CommentRow.id))
    )
    found: dict[int, list[CommentRecord]] = {}
    for row in session.exec(query):
        record = CommentRecord(
            row.id, row.issue_number, row.body, row.author, row.author_association,
            row.created_at, row.updated_at, row.raw,
        )  # fmt: skip
        found.setdefault(row.issue_number, []).append(record)
    return found
