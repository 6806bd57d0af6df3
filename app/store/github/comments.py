"""Comments, keyed by repository and GitHub's id; found by their issue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from app.store.engine.connect import rows_with, take_turn, upsert
from app.store.github.presence import find_kept_out, mark_unread, note_seen
from app.store.records import CommentRecord
from app.store.tables import COMMENT

_COMMENT = COMMENT.c
_COLUMNS = [item.name for item in fields(CommentRecord)]
# Asked with every page, so built once.
_WITH_GONE = (
    select(*(_COMMENT[name] for name in _COLUMNS))
    .where(
        _COMMENT.repo_id == bindparam("repo_id"),
        _COMMENT.issue_number.in_(bindparam("numbers", expanding=True)),
    )
    .order_by(_COMMENT.created_at.nulls_first(), _COMMENT.id)
)
_COMMENTS = _WITH_GONE.where(_COMMENT.gone_at.is_(None))


def save_comments(
    session: Session, repo_id: int, records: Iterable[CommentRecord], *, seen_at: datetime | None = None
) -> list[int]:
    """Store comments by their id; an older or an unchanged one changes nothing.

    A gone comment that is saved is gone no more, unless it was marked so after `seen_at`.

    Args:
        seen_at: when GitHub was asked for these rows; None if they come from elsewhere.

    Returns:
        For each new or changed comment, the number of its issue.
    """
    take_turn(session)
    latest: dict[int, CommentRecord] = {}
    for record in records:
        known = latest.get(record.id)
        if known is None or not _is_older(record.updated_at, known.updated_at):
            latest[record.id] = record
    kept_out = find_kept_out(session, repo_id, {record.issue_number for record in latest.values()})
    latest = {key: record for key, record in latest.items() if record.issue_number not in kept_out}
    columns = (_COMMENT.updated_at, _COMMENT.body, _COMMENT.gone_at)
    stored = {row[0]: row for row in rows_with(session, repo_id, _COMMENT.id, latest, *columns)}
    fresh = {
        key: record
        for key, record in latest.items()
        if key not in stored or _is_news(record, stored[key], seen_at)
    }
    now = datetime.now(UTC)
    seen = {} if seen_at is None else {"seen_at": seen_at}
    rows = [
        {name: getattr(record, name) for name in _COLUMNS}
        | {"repo_id": repo_id, "fetched_at": now, "gone_at": None, **seen}
        for record in fresh.values()
    ]
    upsert(session, COMMENT, rows, keys=("repo_id", "id"))
    mark_unread(session, repo_id, sorted({record.issue_number for record in fresh.values()}))
    if seen_at is not None:
        note_seen(session, "comment", repo_id, sorted(latest.keys() - fresh.keys()), seen_at)
    return sorted(record.issue_number for record in fresh.values())


def _is_news(record: CommentRecord, stored: Any, seen_at: datetime | None) -> bool:
    if _is_older(record.updated_at, stored.updated_at):
        return False
    if stored.gone_at is not None:
        return seen_at is None or stored.gone_at <= seen_at
    return (stored.updated_at, stored.body) != (record.updated_at, record.body)


def _is_older(moment: datetime | None, than: datetime | None) -> bool:
    return moment is not None and than is not None and moment < than


def find_comments(
    session: Session, repo_id: int, numbers: Sequence[int], *, with_gone: bool = False
) -> dict[int, list[CommentRecord]]:
    """The comments of these issues, oldest first; those that GitHub deleted only if asked for."""
    query = _WITH_GONE if with_gone else _COMMENTS
    found: dict[int, list[CommentRecord]] = {}
    for row in session.connection().execute(query, {"repo_id": repo_id, "numbers": list(numbers)}):
        record = CommentRecord(*row)
        found.setdefault(record.issue_number, []).append(record)
    return found
